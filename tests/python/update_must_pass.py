# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Adds what passes now to tests/{corpus,cases}_must_pass.txt; never takes anything out.

    ADDNORM_BIN=build/release/onnx-addnorm build/venv/bin/python tests/python/update_must_pass.py
"""

import sys

import scored


def update(kind):
    path = scored.list_path(kind)
    head = [line for line in path.read_text().splitlines() if line.startswith("#")]
    old = set(scored.must_pass(kind))
    output = scored.score(kind)
    names = old | scored.passing(output)
    path.write_text("\n".join(head + sorted(names)) + "\n")
    print(f"{path.name}: {len(names)} names, {len(names - old)} new")
    print(output.splitlines()[-1])
    return scored.report_missing(kind, output)


if __name__ == "__main__":
    # Not a short cut out of any(): both lists are to be updated.
    sys.exit(1 if sum([update("corpus"), update("cases")]) else 0)
