#!/usr/bin/env bash
# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh [SECONDS [TARGET...]]: builds the fuzz targets with clang and runs each
# for so long (60 seconds; 0: only builds). What a run learns stays in
# build/fuzz/corpus, so the next one goes on from there; what it finds is in
# build/fuzz/findings. Exit 1 if there is a finding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${1:-60}
targets=("${@:2}")
((${#targets[@]})) ||
  targets=(read read_write_read optimize optimize_verify external_data model_text)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
seeds=build/fuzz/seeds
build/venv/bin/python -B tests/fuzz/make_seeds.py "$seeds"
((seconds)) || exit 0

# kind_of TARGET: the folder of its seeds.
kind_of() {
  case $1 in
    external_data) echo external_data ;;
    model_text) echo text ;;
    *) echo model ;;
  esac
}

found=0
for target in "${targets[@]}"; do
  kind=$(kind_of "$target")
  mkdir -p "build/fuzz/corpus/$target" build/fuzz/findings
  echo "== $target, $seconds seconds"
  # Leaks are looked for at the end of a run and at each finding.
  "build/fuzz/addnorm_fuzz_$target" "build/fuzz/corpus/$target" \
    "tests/fuzz/corpus/$kind" "$seeds/$kind" \
    -dict=tests/fuzz/onnx.dict -artifact_prefix="build/fuzz/findings/$target-" \
    -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -max_len=16384 \
    -print_final_stats=1 -entropic=0 || found=1
done
exit $found
