# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""What `optimize` costs on big models: CPU time, memory, and wall time against `cp`.

A benchmark, not a test: it prints and judges nothing. It makes the models with
../shared/tools/big_model.py (3 GB of disk, a sparse file of 13 GB). The page
cache is warm for both; `optimize` synchronises its output, `cp` does not.

    build/venv/bin/python tests/benchmarks/optimize_size.py [--bin BINARY] [--runs 3] [MODEL...]
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKER = ROOT.parent / "shared/tools/big_model.py"
MODELS = ["big13", "emb1500", "nodes100k"]


def measured(command):
    """(CPU seconds, wall seconds, peak MiB) of one process."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1024


def best(command, output, runs):
    """The run with the least wall time, of several; the output is removed before each."""
    results = []
    for _ in range(runs):
        output.unlink(missing_ok=True)
        results.append(measured(command))
    return min(results, key=lambda result: result[1])


def benchmark(kind, binary, folder, runs):
    model, output = folder / f"{kind}.onnx", folder / "out.onnx"
    made = subprocess.run([sys.executable, MAKER, model, kind], check=True, capture_output=True, text=True)
    sites = re.search(r"sites (\d+)", made.stdout)[1]
    # Both read the file once before, so that both find it in the page cache.
    measured(["cat", model])
    cpu, wall, memory = best([binary, "optimize", model, output], output, runs)
    _, copy_wall, _ = best(["cp", "--reflink=never", model, output], output, runs)
    megabytes = model.stat().st_size / 1e6
    print(f"{kind:10} {megabytes:9.1f} {sites:>6} {cpu:9.3f} {memory:9.1f} {wall:9.3f} {copy_wall:9.3f}")
    output.unlink()
    for path in folder.glob(f"{kind}*"):
        path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--bin", default=ROOT / "build/release/onnx-addnorm")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    if not MAKER.exists():
        raise SystemExit(f"{MAKER} is missing")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="optimize_size."))
    try:
        print(f"{'model':10} {'MB':>9} {'sites':>6} {'CPU s':>9} {'peak MiB':>9} {'wall s':>9} {'cp s':>9}")
        for kind in args.models or MODELS:
            benchmark(kind, args.bin, folder, args.runs)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
