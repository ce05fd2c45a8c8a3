# SPDX-License-Identifier: Apache-2.0
"""What tests of sweeps have in common: a small scenario to vary."""

BASE = """schema: fabricast/scenario/1
name: base
topology:
  schema: fabricast/topology/1
  name: cluster
  hosts: [{name: node, count: 4, type: server-2s-rome-4a100}]
  fabric: {leaf_spine: {switch: qm8700, cable: 5 m}}
workload: {benchmark: all_reduce_perf, sizes: [1 MiB, 64 MiB]}
"""
