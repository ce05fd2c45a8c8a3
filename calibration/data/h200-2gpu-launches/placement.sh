#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One series of few bytes for each group of virtual CPUs that both processes are bound to, twice. Usage: placement.sh
export NCCL_NVLS_ENABLE=0
cpus=$(nproc)
for round in 1 2; do
  for way in calls graph; do
    for ((first = 0; first < cpus; first += cpus / 8)); do
      last=$((first + cpus / 8 - 1))
      echo "# cpus $first-$last $way round $round"
      timeout 40 taskset -c $first-$last ./symmetric 2 all_reduce plain $way 256 4096
    done
    echo "# cpus any $way round $round"
    timeout 40 ./symmetric 2 all_reduce plain $way 256 4096
  done
done
