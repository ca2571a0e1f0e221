# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle that near_miss_generator_test.py relies on sees what it has to see."""

import unittest

import onnx.parser

import norm_oracle

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
main_graph (float[2,3,4] a, float[2,3,4] b) => (float[2,3,4] y)
<float[4] w = {1.0, 2.0, 0.5, 3.0}, float two = {2.0}, float eps = {1e-6}, int64[1] last = {-1},
 float low = {-30000.0}, float high = {30000.0}>
{
  s = Add(a, b)
  x = Identity(s)
  p = Pow(x, two)
  m = ReduceMean(p, last)
  e = Add(m, eps)
  r = Sqrt(e)
  i = Reciprocal(r)
  n = Mul(x, i)
  y = Mul(n, w)
}
"""


def oracle(*edits):
    text = MODEL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return norm_oracle.Oracle(
        onnx.parser.parse_model(text), lambda v: [d.dim_value for d in v.type.tensor_type.shape.dim])


class NormOracleTest(unittest.TestCase):
    def verdict(self, *edits, epsilon=1e-6, y="y", scale="w"):
        return oracle(*edits).why_no_norm(y, "a", "b", scale, epsilon)

    def test_a_norm_is_one(self):
        self.assertIsNone(self.verdict())
        self.assertIsNone(self.verdict(y="n", scale=None))
        self.assertEqual(oracle().norms_of("s"), ["n", "y"])

    def test_spellings_and_float_casts_do_not_matter(self):
        for edit in [("Pow(x, two)", "Mul(x, x)"), ("i = Reciprocal(r)\n  n = Mul(x, i)", "n = Div(x, r)"),
                     ("y = Mul(n, w)", "c = Cast<to = 10>(n)\n  d = Cast<to = 1>(c)\n  y = Mul(w, d)")]:
            with self.subTest(edit[1]):
                self.assertIsNone(self.verdict(edit))

    def test_other_computations_are_none(self):
        for edit in [
                ("{2.0}", "{3.0}"), ("{2.0}", "{2.0000002}"), ("{-1}", "{1}"), ("{-1}", "{0}"),
                ("x = Identity(s)", "x = Clip(s, low, high)"), ("x = Identity(s)", "x = Relu(s)"),
                ("p = Pow(x", "p = Pow(a"), ("n = Mul(x", "n = Mul(a"),
                ("ReduceMean", "ReduceSum"), ("ReduceMean", "ReduceMax"), ("Reciprocal(r)", "Reciprocal(e)"),
                ("e = Add(m, eps)\n  r = Sqrt(e)", "e = Sqrt(m)\n  r = Add(e, eps)"),
                ("p = Pow(x, two)", "c = ReduceMean(x, last)\n  d = Sub(x, c)\n  p = Pow(d, two)"),
                ("Mul(n, w)", "Add(n, w)"), ("Mul(n, w)", "Mul(n, b)")]:
            with self.subTest(edit[1]):
                self.assertIsNotNone(self.verdict(edit))
                self.assertNotIn("y", oracle(edit).norms_of("s"))

    def test_a_sign_is_seen(self):
        self.assertIsNotNone(self.verdict(("x = Identity(s)", "x = Neg(s)")))

    def test_epsilon_is_the_one_that_is_said(self):
        self.assertIsNotNone(self.verdict(epsilon=1e-5))
        self.assertIsNotNone(self.verdict(("1e-6", "-0.5"), epsilon=-0.5))
        self.assertIsNone(self.verdict(("e = Add(m, eps)", "e = Identity(m)"), epsilon=0.0))


if __name__ == "__main__":
    unittest.main()
