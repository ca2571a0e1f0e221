# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the external scorer beside this repository and reads what it says.

The lists tests/{corpus,cases}_must_pass.txt hold names that have passed once
and must go on passing. They only grow; update_must_pass.py adds to them.
"""

import re
import subprocess
import sys

import addnorm

SCORER = addnorm.SHARED / "tools/score.py"


def is_available(kind):
    return SCORER.exists() and (addnorm.SHARED / kind).is_dir()


def list_path(kind):
    return addnorm.ROOT / f"tests/{kind}_must_pass.txt"


def must_pass(kind):
    lines = list_path(kind).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def passing(output):
    """Names that the scorer's verbose output calls ok."""
    return set(re.findall(r"^(\S+): ok\b", output, re.MULTILINE))


def score(kind):
    """The scorer's whole output; its exit status says only whether all is well."""
    done = subprocess.run(
        [sys.executable, SCORER, kind, addnorm.SHARED / kind, "--bin", addnorm.BINARY, "-v"],
        capture_output=True, text=True)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(f"score.py {kind}: exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def report_missing(kind, output):
    """Prints what should have passed and did not; returns how many there are."""
    ok = passing(output)
    missing = [name for name in must_pass(kind) if name not in ok]
    for name in missing:
        said = [line for line in output.splitlines() if line.startswith(name + ":")]
        print(said[0] if said else f"{name}: the scorer does not know it")
    return len(missing)
