# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""verify can fail: fused models are broken, each in one place (mutants.py), and each is caught.

What is asserted of a mutant: the structure differs, and a difference points to
the place; where the numbers show it, words of the runs differ too and the
verdict is "different" (exit 1). Where they cannot (an epsilon one ulp off
behind a rounding to float16), it is no more than "equal on what was run", which
--require-proof refuses. The unbroken file is proven.
"""

import collections
import copy
import json
import re
import unittest

import numpy as np
import onnx
import onnx.parser
from onnx import helper, numpy_helper

import addnorm
import mutants
from verifying import MODELS, ROWS, VerifyTest, lines, save, words_differ

FIXTURES = ["variants/norm/divide", "variants/norm/scaled_inverse", "variants/mean/sum_of_squares",
            "variants/inverse/one_div_sqrt", "types/f16_early_dynamo", "types/f16_late_cast_weight",
            "types/bf16_early_torchscript", "types/f32_sum_through_f16", "types/f64", "residual/two_layers",
            "residual/two_weights_one_norm", "operands/opset_11"]


def kind(name, model):
    """"model", or the type of a fixture's first output, whose roundings hide what is finer."""
    return "model" if name in MODELS else onnx.TensorProto.DataType.Name(
        model.graph.output[0].type.tensor_type.elem_type)


class MutantTest(VerifyTest):
    applied = collections.Counter()

    @classmethod
    def tearDownClass(cls):
        print("\nmutants:", ", ".join(f"{name} {count}" for name, count in cls.applied.items()))

    def check(self, original, fused, mutant, subject, rows):
        broken = copy.deepcopy(fused)
        mutant.change(broken)
        path = save(broken, self.folder / "mutant.onnx")
        done = addnorm.run("verify", original, path, "--require-proof", "--json", *rows)
        report = json.loads(done.stdout)
        found = lines(report["structure"]["differences"])
        self.assertTrue(any(re.search(mutant.place, line) for line in found), found)
        seen = words_differ(report)
        if subject in mutant.seen_in and report["run"]["compared"]:
            self.assertTrue(seen, "the numbers do not show it")
        if not report["run"]["compared"]:
            self.assertFalse(mutant.is_valid, report["run"]["reason"])
            self.assertEqual((report["verdict"], done.returncode), ("not comparable", 3))
            self.assertTrue(report["run"]["reason"].startswith("B: "), report["run"]["reason"])
            return
        self.assertEqual(report["verdict"], "different" if seen else "equal on what was run")
        self.assertEqual(done.returncode, 1)
        if seen:
            first = report["run"]["first_difference"]
            self.assertTrue(first["different"] or "mismatch" in first, first)
            self.assertRegex(first["place"], mutant.first)

    def test_every_mutant_is_caught(self):
        for name in MODELS + FIXTURES:
            original, fused, path = self.fuse(name)
            rows = [] if name in MODELS else ROWS
            with self.subTest(name):
                self.assertEqual(self.verify(original, path, *rows, status=0)["verdict"], "proven")
            for mutant in mutants.MUTANTS:
                with self.subTest(name, mutant=mutant.name):
                    try:
                        self.check(original, fused, mutant, kind(name, fused), rows)
                    except mutants.Inapplicable:
                        continue
                    self.applied[mutant.name] += 1
        for mutant in mutants.MUTANTS:
            self.assertTrue(self.applied[mutant.name], f"{mutant.name} applies nowhere")


class HarmlessTest(VerifyTest):
    def test_what_changes_nothing_is_proven(self):
        original, fused, _ = self.fuse("llama-dynamo-f16")
        for change in (self.constant_of_the_same_value, self.names, self.no_value_info):
            with self.subTest(change.__name__):
                broken = copy.deepcopy(fused)
                change(broken)
                path = save(broken, self.folder / "same.onnx")
                self.assertEqual(self.verify(original, path, status=0)["verdict"], "proven")

    @staticmethod
    def constant_of_the_same_value(model):
        epsilon = mutants.attribute(mutants.call(model), "epsilon").f
        constant = mutants.the(n for n in mutants.body(model).node if n.attribute and n.attribute[0].ref_attr_name)
        constant.attribute[0].CopyFrom(helper.make_attribute("value_float", epsilon))

    @staticmethod
    def names(model):
        """Other names of nodes, of the function and of what is inside it."""
        function = mutants.body(model)
        for node in model.graph.node:
            node.name = ""
            if node.domain == addnorm.DOMAIN:
                node.op_type = "Other"
        function.name = "Other"
        for node in function.node:
            node.input[:] = ["_" + name for name in node.input]
            node.output[:] = ["_" + name for name in node.output]
        function.input[:] = ["_" + name for name in function.input]
        function.output[:] = ["_" + name for name in function.output]

    @staticmethod
    def no_value_info(model):
        del model.graph.value_info[:]

    def test_swapped_operands_are_a_note(self):
        for name in ["llama-dynamo-f16", "variants/norm/divide"]:
            original, fused, _ = self.fuse(name)
            add = mutants.nodes(mutants.body(fused), "Add")[0]
            add.input[:] = reversed(add.input)
            path = save(fused, self.folder / "swapped.onnx")
            report = self.verify(original, path, status=0)
            self.assertEqual(report["verdict"], "proven")
            self.assertTrue(report["structure"]["swapped_operands"])
            self.assertEqual(report["structure"]["differences"], [])
            strict = self.verify(original, path, "--strict-nan", status=1)
            self.assertIn("NaN", strict["error"])
            text = addnorm.run("verify", original, path).stdout
            self.assertIn("swapped operands: equal but for payloads of NaN", text)

    def test_another_payload_of_a_nan_is_a_note(self):
        model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]>
            g (float[4] x) => (float[4] y) <float[4] k = {1.0, 2.0, 3.0, 4.0}> { y = Identity(k) }""")
        paths = []
        for payload in (1, 2):
            array = np.ones(4, np.float32)
            array.view(np.uint32)[2] = 0x7fc00000 + payload
            model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "k"))
            paths.append(save(model, self.folder / f"{payload}.onnx"))
        report = self.verify(*paths, status=0)
        self.assertEqual(report["verdict"], "equal on what was run")
        output = report["run"]["rounds"][0]["outputs"][0]
        self.assertEqual((output["different"], output["nan_payloads"], output["first_index"]), (0, 1, 2))
        self.assertEqual(output["found"], "0x7fc00002 (nan)")
        self.verify(*paths, "--strict-nan", status=1)


if __name__ == "__main__":
    unittest.main()
