# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Optimised models mean the same as their originals, says who does not know this project.

For the models in models/, for the fixtures and for generated models: the ONNX
checker accepts the output if it accepted the input; ONNX Runtime (graph
optimisation disabled) and ONNX's reference evaluator give the same bits; inlining
our functions gives back the original operators; nothing else changed.
"""

import random
import re
import tempfile
import unittest

import numpy as np
import onnx
import onnx.parser
from onnx import helper

import addnorm
import generate
import structure

# How large a symbolic dimension is here, and what inputs that are not data hold.
DIMENSIONS = {"stack": generate.LENGTH, "batch": 2, "seq": 3, "sequence": 3, "tokens": 6, "n": 2, "heads": 2, "rank": 3,
              "batch_size": 2, "sequence_length": 3, "past_sequence_length": 4,
              "past_sequence_length + sequence_length": 7}
SPECIAL_INPUTS = {"shape": [2, 3, 4], "trips": 3, "keep": True, "attention_mask": 1}
# Adversarial rows: signed zeros, denormals, overflow of the square, infinities, NaN.
SPECIAL_VALUES = [0.0, -0.0, 1e-40, -1e-40, 6e-8, 3e4, -3e4, 1e20, -1e30, np.inf, -np.inf, np.nan, 1.0]


def feeds_of(model, rng, special):
    initialized = {t.name for t in model.graph.initializer}
    return {i.name: array_for(i, rng, special) for i in model.graph.input if i.name not in initialized}


def array_for(value, rng, special):
    tensor = value.type.tensor_type
    shape = [d.dim_value or DIMENSIONS[d.dim_param] for d in tensor.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if value.name in SPECIAL_INPUTS:
        return np.broadcast_to(np.asarray(SPECIAL_INPUTS[value.name], dtype), shape).copy()
    if dtype.kind in "iu":
        return rng.integers(0, 3, shape).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    data = rng.standard_normal(shape)
    if special:
        chosen = rng.random(shape) < 0.3
        data = np.where(chosen, rng.choice(SPECIAL_VALUES, shape), data)
    with np.errstate(over="ignore"):
        return np.asarray(data, dtype)


class OracleTest(unittest.TestCase):
    ran = {"models": 0, "sites": 0, "onnxruntime": 0, "reference": 0}

    @classmethod
    def tearDownClass(cls):
        print("\noracle:", ", ".join(f"{name} {count}" for name, count in cls.ran.items()))

    def check(self, model, sites=None):
        """Everything at the head of this file, for one model."""
        with tempfile.TemporaryDirectory() as folder:
            fused, report = addnorm.optimize(model, folder)
        count = len(addnorm.fused_nodes(fused)) - len(addnorm.fused_nodes(model))
        if sites is not None:
            self.assertEqual(count, sites, report)
        if count == 0:
            self.assertEqual(fused.SerializeToString(), model.SerializeToString())
            return
        if not addnorm.checker_complaint(model):
            self.assertIsNone(addnorm.checker_complaint(fused))
        self.assertEqual(structure.differences(model, fused), [])
        self.assertEqual(structure.untouched_fields_differ(model, fused), [])
        self.ran["models"] += 1
        self.ran["sites"] += count
        # The evaluator takes nodes as they come; ONNX Runtime sorts those of the main graph.
        in_order, fused = structure.sorted_copy(model), structure.sorted_copy(fused)
        for special in (False, True):
            for seed in range(2):
                feeds = feeds_of(model, np.random.default_rng(seed), special)
                if addnorm.is_in_reference(model):
                    self.compare(addnorm.run_reference, "reference", in_order, fused, feeds)
                if addnorm.is_in_onnxruntime(model):
                    self.compare(addnorm.run_onnxruntime, "onnxruntime", in_order, fused, feeds)

    def compare(self, run, name, model, fused, feeds):
        expected = run(model, feeds)
        self.assertEqual(run(fused, feeds), expected, f"{name}: bits differ")
        self.ran[name] += 1

    def test_models(self):
        folder = addnorm.ROOT / "models"
        table = dict(re.findall(r"^\| `(\S+\.onnx)` \| [\d,]+ \| (\d+) \|",
                                (folder / "README.md").read_text(), re.MULTILINE))
        self.assertEqual(sorted(table), sorted(p.name for p in folder.glob("*.onnx")))
        for name, sites in table.items():
            with self.subTest(name):
                self.check(onnx.load(folder / name), sites=int(sites))

    def test_fixtures(self):
        paths = sorted((addnorm.ROOT / "tests/fixtures").rglob("*.onnxtxt"))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path.name):
                self.check(onnx.parser.parse_model(path.read_text()))

    def test_generated_sites(self):
        rng = random.Random(1)
        for seed in range(60):
            spelling = generate.Spelling.random(rng)
            with self.subTest(spelling):
                self.check(generate.build(spelling, 3, seed), sites=3)

    def test_generated_near_misses(self):
        rng = random.Random(2)
        for seed in range(6 * len(generate.MISSES)):
            spelling = generate.Spelling.random(rng)
            miss = generate.MISSES[seed % len(generate.MISSES)]
            with self.subTest(miss=miss, spelling=spelling):
                self.check(generate.build(spelling, 3, seed, miss_at=1, miss=miss), sites=2)

    def test_order_of_nodes_does_not_matter(self):
        rng = random.Random(3)
        for seed in range(12):
            spelling = generate.Spelling.random(rng)
            with self.subTest(spelling):
                model = generate.build(spelling, 3, seed)
                nodes = list(model.graph.node)
                rng.shuffle(nodes)
                model = structure.with_nodes(model, nodes)
                with tempfile.TemporaryDirectory() as folder:
                    fused, report = addnorm.optimize(model, folder)
                self.assertEqual(len(addnorm.fused_nodes(fused)), 3, report)
                self.assertIsNone(addnorm.checker_complaint(fused))
                self.assertEqual(structure.differences(model, fused), [])


if __name__ == "__main__":
    unittest.main()
