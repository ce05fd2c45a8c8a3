#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Large collectives on buffers that NCCL knows: registered by the program, or by NCCL as a graph captures them. Usage: registered.sh SYMMETRIC
export NCCL_NVLS_ENABLE=0
for operation in all_gather all_reduce reduce_scatter broadcast; do
  for register in 0 1; do
    echo "# graph, NCCL_GRAPH_REGISTER=$register"
    NCCL_GRAPH_REGISTER=$register timeout 40 "$1" 2 $operation plain graph 1048576 16777216 268435456 1073741824
  done
  for buffers in plain registered; do
    echo "# calls"
    timeout 40 "$1" 2 $operation $buffers calls 1048576 16777216 268435456 1073741824
  done
done
