# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""What tests of verify have in common: models, and a run of the command with its report."""

import json
import pathlib
import tempfile
import unittest

import onnx
import onnx.parser

import addnorm

MODELS = ["llama-dynamo-f16", "llama-torchscript-f32", "prenorm-rmsnormalization-f32"]
# Enough rows that rare roundings are met.
ROWS = ["--dim", "batch=16", "--dim", "seq=64"]


def load(name):
    if name in MODELS:
        return onnx.load(addnorm.ROOT / "models" / f"{name}.onnx")
    return onnx.parser.parse_model((addnorm.ROOT / "tests/fixtures" / f"{name}.onnxtxt").read_text())


def save(model, path):
    pathlib.Path(path).write_bytes(model.SerializeToString())
    return path


def words_differ(report):
    results = [o for r in report["run"]["rounds"] for o in r["outputs"]]
    return any(o["different"] or "mismatch" in o for o in results)


def lines(differences):
    return [f"{d['place_a']} | {d['place_b']} | {d['what']}" for d in differences]


class VerifyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def verify(self, *arguments, status):
        """The report of verify --json."""
        done = addnorm.run("verify", *arguments, "--json")
        self.assertEqual(done.returncode, status, done.stdout[-2000:] + done.stderr)
        return json.loads(done.stdout)

    def fuse(self, name):
        """(path of the original, the fused model, path of it)."""
        fused, _ = addnorm.optimize(load(name), self.folder)
        return self.folder / "in.onnx", fused, self.folder / "out.onnx"
