# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Commands and their error paths under valgrind's memcheck: no wrong read or write, no value from nowhere, no leak.

    ctest --preset release -L valgrind

What the address sanitizer does not see is what this is for: memory that was
never written, in the program as users run it and in the libraries that Debian
compiled. Valgrind has no AVX-512 and says so by cpuid, so that Highway and
oneDNN take AVX2. Nothing is suppressed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnx.parser

import addnorm
import fault_scenarios

MEMCHECK = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite"]

# Floats of both kinds of products: rows, and blocks by oneDNN.
PRODUCTS = """<ir_version: 10, opset_import: ["" : 18]>
main_graph (float[4,16] a, float[16,8] b, float[1,16] c) => (float[4,8] y, float[1,8] z, float16[4,8] h)
{ y = MatMul(a, b)  z = MatMul(c, b)  h = Cast<to = 10>(y) }"""

# (the exit code, the words), in a folder with m.onnx, other.onnx, products.onnx, w.bin, sub/other.bin, cut.onnx,
# bad.txt and out/. One after the other: later ones read what earlier ones wrote.
COMMANDS = [
    (0, "optimize m.onnx fused.onnx --explain"),
    (0, "optimize m.onnx out/fused.onnx --data copy --json"),
    (0, "optimize m.onnx onnx.onnx --target onnx --mixed"),
    (0, "optimize m.onnx out/fused.onnx --force --verify"),
    (0, "optimize fused.onnx --dry-run"),
    (0, "inspect fused.onnx --nodes Mul --json"),
    (0, "verify m.onnx fused.onnx --require-proof --rounds 1 --threads 2"),
    (1, "verify m.onnx other.onnx --rounds 1 --reduce reduced --threads 1"),
    (0, "run fused.onnx --dim batch=3 --outputs made --format npy --threads 2"),
    (0, "run m.onnx --inputs given --profile --plan"),
    (0, "run products.onnx --json"),
    (0, "bench --kernel --shapes 1x64 --types f32 --seconds 0.01 --threads 1 --json"),
    (0, "patterns --text"),
    (2, ""),
    (2, "optimise m.onnx"),
    (2, "optimize m.onnx fused.onnx"),
    (2, "optimize m.onnx m.onnx --force"),
    (1, "optimize m.onnx none.onnx --expect-fused 7"),
    (3, "optimize cut.onnx none.onnx"),
    (3, "inspect bad.txt"),
    (3, "run m.onnx --inputs wrong"),
    (4, "optimize missing.onnx none.onnx"),
    (4, "optimize m.onnx /dev/full --data keep"),
    (4, "optimize m.onnx no/folder.onnx --json"),
]


class ValgrindTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        external = ("w.bin", "sub/other.bin")
        fault_scenarios.write_model(cls.folder / "m.onnx", external)
        fault_scenarios.write_model(cls.folder / "other.onnx", external, epsilon="0.5")
        (cls.folder / "products.onnx").write_bytes(onnx.parser.parse_model(PRODUCTS).SerializeToString())
        (cls.folder / "cut.onnx").write_bytes((cls.folder / "m.onnx").read_bytes()[:-40])
        (cls.folder / "bad.txt").write_text("<ir_version: 10> g (float[1] x) => (float[1] y) { y = Relu(x ")
        for name in ("out", "wrong", "given"):
            (cls.folder / name).mkdir()
        np.save(cls.folder / "given/residual.npy", np.ones((3, 1024), np.float32))
        (cls.folder / "wrong/residual.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4', ")

    def memcheck(self, words):
        return subprocess.run([*MEMCHECK, addnorm.BINARY, *words], cwd=self.folder, capture_output=True, text=True,
                              timeout=600, env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"})

    def test_commands(self):
        for code, words in COMMANDS:
            with self.subTest(words):
                done = self.memcheck(words.split())
                self.assertEqual(done.returncode, code, f"{words}\n{done.stderr}")

    def test_that_an_error_would_be_seen(self):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("skipped: no C compiler")
        (self.folder / "bad.c").write_text("#include <stdlib.h>\nint main(void) { int* p = malloc(4); return *p != 0; }\n")
        subprocess.run([compiler, "-O0", "-o", self.folder / "bad", self.folder / "bad.c"], check=True)
        done = subprocess.run([*MEMCHECK, self.folder / "bad"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 99, done.stderr)


def why_not_here():
    if not shutil.which("valgrind"):
        return "no valgrind"
    if addnorm.is_sanitized():
        return "a sanitizer has its own allocator"
    return None


if __name__ == "__main__":
    if why_not_here():
        print(f"skipped: {why_not_here()}", file=sys.stderr)
        sys.exit(addnorm.SKIPPED)
    unittest.main()
