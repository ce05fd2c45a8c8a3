#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each of two processes bound to one virtual CPU. Usage: bound.sh SYMMETRIC, the program of ../h200-2gpu-symmetric
export NCCL_NVLS_ENABLE=0
for round in 1 2 3; do
  for bind in 0,1 0,2 0,16 2,1 2,2 4,1 4,16 8,1 8,4 20,1 20,8; do
    echo "# bound $bind round $round"
    BIND=$bind timeout 40 "$1" 2 all_reduce plain calls 256
  done
done
