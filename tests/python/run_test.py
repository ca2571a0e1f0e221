# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""`run` gives what ONNX Runtime and the reference evaluator give.

For the models in models/ and for generated ones, and their fused forms; NumPy
itself writes and reads the .npy files. Needs nothing beside the repository.
"""

import itertools
import json
import pathlib
import random
import tempfile
import unittest

import numpy as np
import onnx
import onnx.reference
from onnx import TensorProto, helper

import addnorm
import generate
import running
from oracle_test import feeds_of

# What NumPy has a type for, by ONNX type.
NUMPY_TYPES = {TensorProto.FLOAT: "f4", TensorProto.DOUBLE: "f8", TensorProto.FLOAT16: "f2",
               TensorProto.INT8: "i1", TensorProto.INT16: "i2", TensorProto.INT32: "i4",
               TensorProto.INT64: "i8", TensorProto.UINT8: "u1", TensorProto.UINT16: "u2",
               TensorProto.UINT32: "u4", TensorProto.UINT64: "u8", TensorProto.BOOL: "?"}


def identity(data_type, shape):
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", data_type, shape)],
        [helper.make_tensor_value_info("y", data_type, shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run_reference(model, feeds):
    with np.errstate(all="ignore"):
        results = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    return {o.name: np.asarray(r) for o, r in zip(model.graph.output, results)}


class RunTest(unittest.TestCase):
    def assert_near(self, want, have, what, tolerance):
        for name, array in want.items():
            self.assertIsNone(running.complaint(array, have[name], tolerance), f"{what}: {name}")

    def check(self, model, feeds):
        """The model and its fused form, against both oracles; the two forms against each other, by bits."""
        have = running.run_arrays(model, feeds)
        tolerance = running.tolerance_of(model)
        if addnorm.is_in_onnxruntime(model):
            self.assert_near(running.run_onnxruntime(model, feeds), have, "ONNX Runtime", tolerance)
        if addnorm.is_in_reference(model):
            self.assert_near(run_reference(model, feeds), have, "reference evaluator", tolerance)
        with tempfile.TemporaryDirectory() as folder:
            fused, _ = addnorm.optimize(model, folder)
        for threads in (1, 2):
            again = running.run_arrays(fused, feeds, "--threads", threads)
            for name, array in have.items():
                self.assertEqual(addnorm.bits(again[name]), addnorm.bits(array), f"fused, {threads} threads: {name}")

    def test_models(self):
        for path in sorted((addnorm.ROOT / "models").glob("*.onnx")):
            with self.subTest(path.name):
                model = onnx.load(path)
                self.check(model, feeds_of(model, np.random.default_rng(0), special=False))

    def test_generated_models(self):
        rng = random.Random(4)
        for seed in range(30):
            spelling = generate.Spelling.random(rng)
            with self.subTest(spelling):
                model = generate.build(spelling, 3, seed)
                self.check(model, feeds_of(model, np.random.default_rng(seed), special=False))

    def test_generated_inputs(self):
        """Runs without any file, and twice the same."""
        for path in sorted((addnorm.ROOT / "models").glob("*.onnx")):
            with self.subTest(path.name):
                reports = [json.loads(running.call(path, "--json", *options).stdout)
                           for options in ((), ("--threads", 1), ("--seed", 1))]
                self.assertEqual(reports[0]["outputs"], reports[1]["outputs"])
                self.assertNotEqual(reports[0]["outputs"], reports[2]["outputs"])

    def test_planned_peak_is_the_measured_one(self):
        for path in sorted((addnorm.ROOT / "models").glob("*.onnx")):
            with self.subTest(path.name):
                plan = json.loads(running.call(path, "--plan", "--json").stdout)["plan"]
                measured = plan["measured_peak_bytes"]
                self.assertLessEqual(abs(plan["planned_peak_bytes"] - measured), 0.05 * measured)
                self.assertGreater(plan["naive_peak_bytes"], measured)

    def test_npy_files_that_numpy_writes(self):
        rng = np.random.default_rng(0)
        shapes = ([2, 3], [3, 1, 2], [4], [], [0, 2])
        for (data_type, code), shape in itertools.product(NUMPY_TYPES.items(), shapes):
            model = identity(data_type, shape)
            array = np.asarray(rng.integers(0, 100, shape)).astype(code)
            variants = {"C": array, "Fortran": array.copy(order="F"),
                        "big-endian": array.astype(array.dtype.newbyteorder(">"))}
            for name, variant in variants.items():
                with self.subTest(code=code, shape=shape, variant=name):
                    have = running.run_arrays(model, {"x": variant})["y"]
                    self.assertEqual(addnorm.bits(have), addnorm.bits(array))

    def test_npy_formats(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        for version in ((1, 0), (2, 0), (3, 0)):
            with self.subTest(version), tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "m.onnx").write_bytes(
                    identity(TensorProto.FLOAT, [2, 3]).SerializeToString())
                with open(pathlib.Path(folder, "x.npy"), "wb") as file:
                    np.lib.format.write_array(file, array, version=version)
                running.call(pathlib.Path(folder, "m.onnx"), "--inputs", folder, "--outputs", folder)
                (have, _), = running.read_tensors(folder, "output")
                np.testing.assert_array_equal(have, array)

    def test_a_format_without_outputs_is_refused(self):
        path = addnorm.ROOT / "models" / "prenorm-rmsnormalization-f32.onnx"
        for name in ("npy", "pb"):
            done = addnorm.run("run", path, "--format", name)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--format requires --outputs", done.stderr)

    def test_bfloat16_is_stored_as_its_bits(self):
        bits = np.array([0x3F80, 0xC000, 0x7FC0], np.uint16)
        for stored in (bits, bits.view("V2")):
            have = running.run_arrays(identity(TensorProto.BFLOAT16, [3]), {"x": stored})["y"]
            self.assertEqual(have.view(np.uint16).tolist(), bits.tolist())


if __name__ == "__main__":
    unittest.main()
