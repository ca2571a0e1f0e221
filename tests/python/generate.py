# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Random decoders in miniature: residual Adds and RMSNorms in one spelling of many.

`Spelling.random` draws a spelling; `build` makes a model of some sites from it.
A miss is one change to one site after which it must not be fused any more.
"""

import dataclasses
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LENGTH = 8
HALF_OR_FLOAT = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}


@dataclasses.dataclass(frozen=True)
class Spelling:
    opset: int
    dtype: str        # of the residual stream
    square: str       # pow, pow_int64, mul
    inverse: str      # reciprocal, one_div_sqrt, divide
    cast: str         # none; early or late: a float core, narrowed before or after the weight
    weight: str       # none, left, right, one_plus
    constants: str    # initializers or nodes
    rank_1: bool      # single elements have shape [1]
    epsilon_left: bool
    product_commuted: bool
    keepdims_given: bool
    epsilon: float

    @staticmethod
    def random(rng):
        dtype = rng.choice(["float32", "float32", "float16"])
        return Spelling(
            opset=rng.choice([13, 14, 17, 18, 20, 21, 23]), dtype=dtype,
            square=rng.choice(["pow", "pow_int64", "mul"]),
            inverse=rng.choice(["reciprocal", "one_div_sqrt", "divide"]),
            cast=rng.choice(["none", "early", "late"]),
            weight=rng.choice(["none", "left", "right", "one_plus"]),
            constants=rng.choice(["initializers", "nodes"]), rank_1=rng.random() < 0.5,
            epsilon_left=rng.random() < 0.3, product_commuted=rng.random() < 0.3,
            keepdims_given=rng.random() < 0.7, epsilon=rng.choice([1e-6, 1e-5, 0.0, 0.125]))


MISSES = ("inner_reader", "inner_output", "axis", "exponent", "epsilon_vector", "keepdims",
          "clip_between", "sum_reduction", "other_square", "bias", "sub")


class Builder:
    def __init__(self, spelling, rng):
        self.spelling = spelling
        self.rng = rng
        self.nodes, self.initializers, self.outputs = [], [], []
        self.count = 0

    def node(self, op, *inputs, **attributes):
        self.count += 1
        name = f"{op.lower()}_{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"node_{self.count}", **attributes))
        return name

    def constant(self, array, fresh=False):
        """A constant as the spelling has them; initializers of one value are shared."""
        if self.spelling.constants == "nodes":
            return self.node("Constant", value=numpy_helper.from_array(array))
        for tensor in self.initializers:
            old = numpy_helper.to_array(tensor)
            if not fresh and old.dtype == array.dtype and np.array_equal(old, array):
                return tensor.name
        self.initializers.append(numpy_helper.from_array(array, f"constant_{len(self.initializers)}"))
        return self.initializers[-1].name

    def scalar(self, value, dtype):
        return self.constant(np.full([1] if self.spelling.rank_1 else [], value, dtype))

    def random_array(self, dtype, *shape):
        return (np.asarray([self.rng.uniform(-2, 2) for _ in range(int(np.prod(shape)))])
                .reshape(shape).astype(dtype))

    def maybe_swapped(self, op, swapped, a, b):
        return self.node(op, b, a) if swapped else self.node(op, a, b)

    # ---- one site

    def square(self, x, core, miss):
        if miss == "other_square":
            x = self.node("Abs", x)
        if self.spelling.square == "mul":
            return self.node("Mul", x, self.node("Sqrt", x) if miss == "exponent" else x)
        exponent = 3 if miss == "exponent" else 2
        return self.node("Pow", x, self.scalar(
            exponent, np.int64 if self.spelling.square == "pow_int64" else core))

    def mean(self, square, miss):
        axes = [1] if miss == "axis" else [-1]
        attributes = {"keepdims": 1} if self.spelling.keepdims_given else {}
        if miss == "keepdims":
            attributes = {"keepdims": 0}
        # ReduceSum has taken its axes as an input since 13, ReduceMean since 18.
        op, since = ("ReduceSum", 13) if miss == "sum_reduction" else ("ReduceMean", 18)
        if self.spelling.opset >= since:
            return self.node(op, square, self.constant(np.asarray(axes, np.int64)), **attributes)
        return self.node(op, square, axes=axes, **attributes)

    def normed(self, x, core, miss):
        mean = self.mean(self.square(x, core, miss), miss)
        if miss == "epsilon_vector":
            epsilon = self.constant(np.full([LENGTH], self.spelling.epsilon, core))
        else:
            epsilon = self.scalar(self.spelling.epsilon, core)
        root = self.node("Sqrt", self.maybe_swapped("Add", self.spelling.epsilon_left, mean, epsilon))
        if miss == "inner_reader":
            self.outputs.append((self.node("Neg", root), core))
        if miss == "inner_output":
            self.outputs.append((root, core))
        if self.spelling.inverse == "divide":
            return self.node("Div", x, root)
        one = self.scalar(1, core) if self.spelling.inverse == "one_div_sqrt" else None
        inverse = self.node("Div", one, root) if one else self.node("Reciprocal", root)
        return self.maybe_swapped("Mul", self.spelling.product_commuted, x, inverse)

    def scaled(self, normed, dtype):
        if self.spelling.weight == "none":
            return normed
        weight = self.constant(self.random_array(dtype, LENGTH), fresh=True)
        if self.spelling.weight == "one_plus":
            weight = self.node("Add", weight, self.scalar(1, dtype))
        return self.maybe_swapped("Mul", self.spelling.weight == "left", normed, weight)

    def norm(self, x, miss):
        dtype = np.dtype(self.spelling.dtype)
        core = dtype if self.spelling.cast == "none" else np.dtype("float32")
        if miss == "clip_between":
            x = self.node("Clip", x, self.scalar_0(-100, dtype), self.scalar_0(100, dtype))
        if self.spelling.cast == "none":
            return self.scaled(self.normed(x, core, miss), dtype)
        normed = self.normed(self.node("Cast", x, to=TensorProto.FLOAT), core, miss)
        to = HALF_OR_FLOAT[self.spelling.dtype]
        if self.spelling.cast == "early":
            return self.scaled(self.node("Cast", normed, to=to), dtype)
        return self.node("Cast", self.scaled(normed, core), to=to)

    def scalar_0(self, value, dtype):  # Clip asks for rank 0
        return self.constant(np.asarray(value, dtype))

    def site(self, residual, miss=None):
        """The next residual, behind one Add and its norm."""
        dtype = np.dtype(self.spelling.dtype)
        weights = self.constant(self.random_array(dtype, LENGTH, LENGTH), fresh=True)
        branch = self.node("MatMul", residual, weights)
        if miss == "bias":
            branch = self.constant(self.random_array(dtype, LENGTH), fresh=True)
        total = self.node("Sub" if miss == "sub" else "Add", residual, branch)
        return total, self.norm(total, miss)


def build(spelling, sites, seed, miss_at=None, miss=None):
    """A model of so many sites; the one numbered `miss_at` is a near miss."""
    builder = Builder(spelling, random.Random(seed))
    data_type = HALF_OR_FLOAT[spelling.dtype]
    residual = "hidden"
    for index in range(sites):
        total, y = builder.site(residual, miss if index == miss_at else None)
        # Tanh keeps float16 in range.
        residual = builder.node("Tanh", builder.node("Sub", total, builder.node("Neg", y)))
    outputs = [(residual, np.dtype(spelling.dtype)), *builder.outputs]
    graph = helper.make_graph(
        builder.nodes, "decoder",
        [helper.make_tensor_value_info("hidden", data_type, ["stack", LENGTH, LENGTH])],
        [helper.make_tensor_value_info(name, HALF_OR_FLOAT[dtype.name], [None] * 3)
         for name, dtype in outputs], builder.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", spelling.opset)],
                             ir_version=8)
