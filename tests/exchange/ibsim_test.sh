#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The exported network runs in ibsim, the real ibnetdiscover prints it with every cable, and that is imported again.
# Arguments: program, topology, folder for files. Exit 77: ibsim is not installed.
set -euo pipefail
library=$(ls /usr/lib/*/umad2sim/libumad2sim.so 2>/dev/null | head -1 || true)
if ! command -v ibsim >/dev/null || ! PATH=$PATH:/usr/sbin command -v ibnetdiscover >/dev/null || [[ -z $library ]]; then
  echo "skipped: ibsim is not installed (apt-get install ibsim-utils infiniband-diags libumad2sim0)"
  exit 77
fi
export PATH=$PATH:/usr/sbin
mkdir -p "$3" && cd "$3"
"$1" export ibnetdiscover "$2" -o net.txt
ibsim -s net.txt </dev/null >ibsim.log 2>&1 &
simulator=$!
trap 'kill $simulator 2>/dev/null || true' EXIT
for _ in 1 2 3 4 5; do
  sleep 1
  LD_PRELOAD=$library timeout 20 ibnetdiscover >found.txt 2>found.err && [[ -s found.txt ]] && break
done
wanted=$(grep -c '^\[' net.txt)
found=$(grep -c '^\[' found.txt)
[[ $wanted == "$found" ]] || { echo "$wanted ends of cables written, $found discovered"; exit 1; }
"$1" import found.txt -o again.yaml
"$1" check again.yaml
