#!/usr/bin/env bash
# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
#
# Every fault, prefix and mutation, where the test suite tries a sample, and files
# of 2 GiB. Takes about an hour of CPU. ADDNORM_BIN names the binary; arguments go
# to the sweeps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for sweep in fault_sweep prefix_mutation; do
  build/venv/bin/python -B "tests/python/${sweep}_test.py" --all "$@"
done
build/venv/bin/python -B tests/python/large_files_test.py --heavy
