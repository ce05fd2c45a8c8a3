#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All series of symmetric.txt. Usage: symmetric.sh SECONDS: starts no further series after them.
export NCCL_NVLS_ENABLE=0
series() { # GPUS OPERATION BUFFERS WAY [KERNEL [BLOCKS]]
  ((SECONDS > limit)) && return
  local settings=()
  [[ ${5:-} ]] && settings+=("NCCL_SYM_KERNEL=$5")
  [[ ${6:-} ]] && settings+=("NCCL_SYM_CTAS=$6")
  env "${settings[@]}" timeout 40 ./symmetric "$1" "$2" "$3" "$4" || echo "# failed: $*"
}
limit=$1
for operation in all_reduce all_gather reduce_scatter; do
  for buffers in symmetric plain; do series 2 $operation $buffers graph; done
  series 2 $operation symmetric calls
done
series 2 all_reduce plain calls
for blocks in "" 1 4 16 64; do
  for kernel in AllReduce_AGxLL_R AllReduce_RSxLD_AGxST; do series 2 all_reduce symmetric graph $kernel $blocks; done
  for kernel in AllGather_LL AllGather_ST; do series 2 all_gather symmetric graph $kernel $blocks; done
  for kernel in ReduceScatter_LL ReduceScatter_LD; do series 2 reduce_scatter symmetric graph $kernel $blocks; done
done
