# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison that oracle_test.py relies on sees what it has to see."""

import unittest

import onnx.parser

import structure

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
main_graph (float[4] a, float[4] b) => (float[4] y)
<float eps = {0.25}, float two = {2.0}>
{
  s = Add(a, b)
  p = Pow(s, two)
  m = ReduceMean<axes = [-1], keepdims = 1>(p)
  e = Add(m, eps)
  y = Div(s, e)
}
"""
CALL = """
<ir_version: 8, opset_import: ["" : 17, "ai.addnorm" : 1]>
main_graph (float[4] a, float[4] b) => (float[4] y)
{
  y, s = ai.addnorm.F<epsilon = 0.25>(a, b)
}
<domain: "ai.addnorm", opset_import: ["" : 17]>
F <epsilon> (p, q) => (r, total)
{
  two = Constant<value = float[1] {2.0}>()
  eps = Constant<value_float: float = @epsilon>()
  total = Add(p, q)
  square = Pow(total, two)
  mean = ReduceMean<axes = [-1], keepdims = 1>(square)
  sum = Add(mean, eps)
  r = Div(total, sum)
}
"""


def edited(text, old, new):
    assert old in text, old
    return onnx.parser.parse_model(text.replace(old, new))


class StructureTest(unittest.TestCase):
    def setUp(self):
        self.model = onnx.parser.parse_model(MODEL)

    def test_a_function_with_the_same_operations_is_equal(self):
        self.assertEqual(structure.differences(self.model, onnx.parser.parse_model(CALL)), [])

    def test_other_operations_are_not(self):
        for old, new in [
                ("epsilon = 0.25", "epsilon = 0.125"),
                ("{2.0}", "{3.0}"),
                ("axes = [-1]", "axes = [0]"),
                ("keepdims = 1", "keepdims = 0"),
                ("Add(p, q)", "Add(q, p)"),
                ("Add(mean, eps)", "Add(eps, mean)"),
                ("Pow(total, two)", "Mul(total, total)"),
                ("Div(total, sum)", "Div(p, sum)"),
                ("(a, b)\n}", "(b, a)\n}")]:
            with self.subTest(new):
                self.assertIn("y", structure.differences(self.model, edited(CALL, old, new)))

    def test_a_missing_cast_is_seen(self):
        model = edited(MODEL, "y = Div(s, e)", "c = Cast<to = 1>(s)\n y = Div(c, e)")
        self.assertIn("y", structure.differences(model, onnx.parser.parse_model(CALL)))

    def test_a_difference_in_a_branch_is_seen(self):
        text = MODEL.replace("float[4] b)", "float[4] b, bool c)").replace(
            "y = Div(s, e)", """y = If(c) <then_branch = t () => (float[4] u) { u = Neg(s) },
                                           else_branch = f () => (float[4] v) { v = Abs(s) }>""")
        model = onnx.parser.parse_model(text)
        self.assertEqual(structure.differences(model, model), [])
        self.assertEqual(structure.differences(model, edited(text, "Abs(s)", "Abs(e)")), ["y"])

    def test_untouched_fields(self):
        self.assertEqual(structure.untouched_fields_differ(self.model, self.model), [])
        changed = onnx.parser.parse_model(MODEL)
        changed.graph.doc_string = "new"
        self.assertTrue(structure.untouched_fields_differ(self.model, changed))
        self.assertTrue(structure.untouched_fields_differ(
            self.model, edited(MODEL, "{0.25}", "{0.5}")))
        self.assertTrue(structure.untouched_fields_differ(
            self.model, edited(MODEL, "Pow(s, two)", "Pow(s, eps)")))


if __name__ == "__main__":
    unittest.main()
