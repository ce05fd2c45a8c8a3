#!/usr/bin/env bash
# Installs the build into a folder of its own, builds the user's project against it, and runs it. Arguments: build folder,
# source folder, work folder.
set -euo pipefail
build=$1 source=$2 work=$3
rm -rf "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/tests/install" -B "$work/user" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release "${@:4}" >/dev/null
cmake --build "$work/user" >/dev/null
"$work/user/forecast" "$source/scenarios/osu-latency-fdr-gpudirect.yaml" | grep -E '^0 1\.0[0-9]+$'
"$work/user/forecast" "$work/prefix/share/fabricast/scenarios/traffic-incast-roce.yaml" packet | grep -E '^[1-9][0-9]+ pauses$'
"$work/prefix/bin/fabricast" --version
test -f "$work/prefix/share/fabricast/topologies/fdr-kepler-pair.yaml"
