# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""A table of ways to break a fused model, each in one place.

A change takes a ModelProto and edits it; it raises Inapplicable where the
model has nothing to work on. Each says where a report has to point, and
whether numbers show it: verify_mutation_test.py asserts both.
"""

import dataclasses
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import addnorm

FLOATS = {TensorProto.FLOAT: np.uint32, TensorProto.FLOAT16: np.uint16, TensorProto.DOUBLE: np.uint64,
          TensorProto.BFLOAT16: np.uint16}
HALVES = {TensorProto.FLOAT16, TensorProto.BFLOAT16}
LARGE = 256  # elements; more than any constant that is compared by its number


class Inapplicable(Exception):
    pass


def the(found):
    """The first, or none: then the change has nothing to work on."""
    for item in found:
        return item
    raise Inapplicable


def body(model):
    return the(f for f in model.functions if f.domain == addnorm.DOMAIN)


def call(model):
    return the(addnorm.fused_nodes(model))


def nodes(function, op_type):
    return [n for n in function.node if n.op_type == op_type]


def makes(function, name):
    return the(n for n in function.node if name in n.output)


def put_before(function, node, *new):
    place = next(i for i, n in enumerate(function.node) if n == node)
    for offset, made in enumerate(new):
        function.node.insert(place + offset, made)


def rewire(function, old, new, but=()):
    for node in function.node:
        if not any(node == other for other in but):
            node.input[:] = [new if name == old else name for name in node.input]


def attribute(node, name):
    return the(a for a in node.attribute if a.name == name)


def one_ulp_up(value):
    return float(np.nextafter(np.float32(value), np.float32(np.inf)))


# ---- changes ----------------------------------------------------------------


def epsilon_one_ulp(model):
    if not any(a.ref_attr_name for n in body(model).node for a in n.attribute):
        raise Inapplicable  # it is an operand
    epsilon = attribute(call(model), "epsilon")
    epsilon.f = one_ulp_up(epsilon.f)


def epsilon_constant_one_ulp(model):
    """Where epsilon is an operand: the initializer or Constant that is it."""
    name = call(model).input[-1]
    tensor = the([t for t in model.graph.initializer if t.name == name] +
                 [n.attribute[0].t for n in model.graph.node
                  if n.op_type == "Constant" and n.output[0] == name and n.attribute[0].HasField("t")])
    array = numpy_helper.to_array(tensor)
    if array.size != 1 or array.dtype.kind != "f" or "epsilon" not in body(model).input:
        raise Inapplicable
    tensor.CopyFrom(numpy_helper.from_array(np.nextafter(array, array + 1), name))


def dropped_epsilon(model):
    function = body(model)
    add = the(n for n in nodes(function, "Add") if n != nodes(function, "Add")[0])
    mean = the(n for n in add.input if makes_by(function, n) in ("ReduceMean", "Div", "Mul", "Cast"))
    rewire(function, add.output[0], mean, but=[add])


def makes_by(function, name):
    return next((n.op_type for n in function.node if name in n.output), None)


def constant_in_place_of_reference(model):
    constant = the(n for n in nodes(body(model), "Constant") if n.attribute[0].ref_attr_name)
    constant.attribute[0].CopyFrom(helper.make_attribute("value_float", 3e-5))


def reciprocal_for_divide(model):
    """x / root becomes x * (1 / root)."""
    function = body(model)
    divide = the(n for n in nodes(function, "Div") if makes_by(function, n.input[1]) == "Sqrt"
                 and makes_by(function, n.input[0]) != "Constant")
    inverse = helper.make_node("Reciprocal", [divide.input[1]], ["mutant"])
    put_before(function, divide, inverse)
    the(n for n in nodes(function, "Div") if n == divide).CopyFrom(
        helper.make_node("Mul", [divide.input[0], "mutant"], divide.output))


def power_for_root(model):
    """1 / sqrt(x) becomes x ^ -0.5."""
    function = body(model)
    root = the(nodes(function, "Sqrt"))
    inverse = the(n for n in function.node if root.output[0] in n.input and n.op_type in ("Reciprocal", "Div")
                  and (n.op_type == "Reciprocal" or makes_by(function, n.input[0]) == "Constant"))
    put_before(function, root, helper.make_node("Constant", [], ["mutant"],
                                              value=helper.make_tensor("", TensorProto.FLOAT, [], [-0.5])))
    inverse.CopyFrom(helper.make_node("Pow", [root.input[0], "mutant"], inverse.output))


def scaling(model):
    """(function, the product with the scale, the factor's name) of a body."""
    function = body(model)
    product = the(n for n in nodes(function, "Mul") if function.output[0] in n.output and "scale" in n.input)
    return function, product, the(n for n in product.input if n != "scale")


def late_for_early(model):
    """The result is rounded after the scale, not before."""
    function, product, factor = scaling(model)
    narrow = makes(function, factor)
    if narrow.op_type != "Cast":
        raise Inapplicable
    to = attribute(narrow, "to").i
    if to not in HALVES:
        raise Inapplicable
    wide = helper.make_node("Cast", ["scale"], ["wide_scale"], to=TensorProto.FLOAT)
    late = helper.make_node("Cast", ["mutant"], product.output, to=to)
    put_before(function, product, wide)
    product = makes(function, function.output[0])
    product.CopyFrom(helper.make_node("Mul", ["wide_scale", narrow.input[0]], ["mutant"]))
    function.node.append(late)


def early_for_late(model):
    """The result is rounded before the scale too."""
    function = body(model)
    last = makes(function, function.output[0])
    product = makes(function, last.input[0]) if last.op_type == "Cast" else the([])
    if product.op_type != "Mul":
        raise Inapplicable
    to = attribute(last, "to").i
    factor = the(n for n in product.input if n != "scale")
    put_before(function, product, helper.make_node("Cast", [factor], ["narrow"], to=to),
               helper.make_node("Cast", ["narrow"], ["wide_again"], to=TensorProto.FLOAT))
    rewire(function, factor, "wide_again", but=[n for n in function.node if "narrow" in n.output])


def unrounded_sum(model):
    """The norm reads the sum before it is rounded."""
    function = body(model)
    add = nodes(function, "Add")[0]
    cast = the(n for n in nodes(function, "Cast") if n.input[0] == add.output[0])
    to = attribute(cast, "to").i
    narrow = call_type(model)
    if to != TensorProto.FLOAT or narrow not in HALVES:
        raise Inapplicable
    wide = [helper.make_node("Cast", [name], [f"wide_{i}"], to=to) for i, name in enumerate(add.input)]
    put_before(function, add, *wide, helper.make_node("Add", ["wide_0", "wide_1"], ["unrounded"]))
    rewire(function, cast.output[0], "unrounded")


def call_type(model):
    """The element type of the call's weight, or of the graph's first input."""
    scale = call(model).input[2] if len(call(model).input) > 2 else None
    types = [t.data_type for t in model.graph.initializer if t.name == scale]
    return (types + [model.graph.input[0].type.tensor_type.elem_type])[0]


def swapped_outputs(model):
    node = the(n for n in reversed(addnorm.fused_nodes(model)) if len(n.output) > 1 and all(n.output))
    node.output[:] = [node.output[1], node.output[0]]


def missing_cast(model):
    """The body's first Cast, of the sum."""
    function = body(model)
    cast = the(nodes(function, "Cast"))
    if HALVES.isdisjoint([attribute(cast, "to").i, call_type(model)]):
        raise Inapplicable  # it changes nothing
    rewire(function, cast.output[0], cast.input[0], but=[cast])


def missing_rounding(model):
    """A Cast to a half type and the one back."""
    function = body(model)
    back = the(n for n in nodes(function, "Cast") if makes_by(function, n.input[0]) == "Cast")
    rewire(function, back.output[0], makes(function, back.input[0]).input[0], but=[back])


def wrong_axis(model):
    function = body(model)
    reduction = the(n for n in function.node if n.op_type.startswith("Reduce"))
    if len(reduction.input) > 1:
        value = makes(function, reduction.input[1]).attribute[0]
        value.CopyFrom(helper.make_attribute(value.name, helper.make_tensor("", TensorProto.INT64, [1], [-2])))
    else:
        attribute(reduction, "axes").ints[:] = [-2]


def wrong_axis_of_operator(model):
    norm = the(n for n in body(model).node if n.op_type == "RMSNormalization")
    kept = [a for a in norm.attribute if a.name != "axis"]
    del norm.attribute[:]
    norm.attribute.extend([*kept, helper.make_attribute("axis", -2)])


def wrong_exponent(model):
    function = body(model)
    power = the(n for n in nodes(function, "Pow") if n.input[0] != n.input[1])
    constant = makes(function, power.input[1])
    kind = the(a for a in constant.attribute if a.name == "value").t
    constant.attribute[0].t.CopyFrom(
        numpy_helper.from_array(np.full_like(numpy_helper.to_array(kind), 4 - numpy_helper.to_array(kind) / 2)))


def dropped_reader(model):
    """A later reader of a sum reads the sum before."""
    calls = [n for n in addnorm.fused_nodes(model) if len(n.output) > 1 and n.output[1]]
    later = the(n for n in calls if n.input[0] in [other.output[1] for other in calls])
    earlier = the(n for n in calls if n.output[1] == later.input[0])
    later.input[0] = earlier.input[0]


def another_weight(model):
    calls = addnorm.fused_nodes(model)
    other = the(n for n in calls[1:] if len(n.input) > 2 and n.input[2] != calls[0].input[2])
    calls[0].input[2] = other.input[2]


def sum_for_result(model):
    """A reader of the normalised value reads the sum."""
    node = the(n for n in addnorm.fused_nodes(model) if len(n.output) > 1 and n.output[1])
    reader = the(n for n in model.graph.node if node.output[0] in n.input)
    reader.input[:] = [node.output[1] if name == node.output[0] else name for name in reader.input]


def flipped_bit(model):
    """The lowest bit of one element in the middle of the largest weight that a MatMul reads."""
    read = {name for n in model.graph.node if n.op_type == "MatMul" for name in n.input}
    weights = [t for t in model.graph.initializer if t.name in read and t.data_type in FLOATS
               and np.prod(t.dims) > LARGE]
    weight = the(sorted(weights, key=lambda t: (-np.prod(t.dims), t.name)))
    array = numpy_helper.to_array(weight).copy()
    array.reshape(-1).view(FLOATS[weight.data_type])[array.size // 2] ^= 1
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))


def other_operator_outside(model):
    sigmoid = the(n for n in model.graph.node if n.op_type in ("Sigmoid", "Softmax"))
    sigmoid.op_type = "Tanh"
    del sigmoid.attribute[:]


# ---- the table --------------------------------------------------------------


# Kinds of subjects: "model" (whole, its rows are what they are), or the type of
# a block's first output. Blocks are given small rows too, where epsilon counts.
EVERYWHERE = frozenset(["model", "FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"])
WIDE_BLOCKS = frozenset(["FLOAT", "DOUBLE"])
NOWHERE = frozenset()


@dataclasses.dataclass(frozen=True)
class Mutant:
    change: Callable
    place: str  # a pattern for a difference of structure
    # Kinds of subjects in which the numbers must show it; elsewhere they may.
    seen_in: frozenset = EVERYWHERE
    first: str = r"AddRmsNorm_|output '"  # where values first differ
    is_valid: bool = True  # it runs, wherever it applies

    @property
    def name(self):
        return self.change.__name__


MUTANTS = [
    Mutant(epsilon_one_ulp, r"constant float.*, expected constant float|RMSNormalization<epsilon",
           seen_in=frozenset(["FLOAT"])),
    Mutant(epsilon_constant_one_ulp, r"constant (float|double)\[.*, expected constant", seen_in=WIDE_BLOCKS),
    Mutant(dropped_epsilon, r"expected Add"),
    Mutant(constant_in_place_of_reference, r"constant float\[\] 2\.99\d+e-05"),
    Mutant(reciprocal_for_divide, r"Mul \(version \d+\), expected Div"),
    Mutant(power_for_root, r"Pow \(version \d+\), expected (Reciprocal|Div)", seen_in=WIDE_BLOCKS),
    Mutant(late_for_early, r"Cast.*expected Mul"),
    Mutant(early_for_late, r"Cast.*expected Mul"),
    Mutant(unrounded_sum, r"Add \(version \d+\), expected Cast"),
    Mutant(swapped_outputs, r"Mul.*expected Add|Add.*expected|RMSNormalization.*expected Add",
           first=r"value '|output '", is_valid=False),
    Mutant(missing_cast, r"Add \(version \d+\), expected Cast", is_valid=False),
    Mutant(missing_rounding, r"Add \(version \d+\), expected Cast"),
    Mutant(wrong_axis, r"constant int64\[1\] -2, expected constant int64\[1\] -1|Reduce\w+<axes = \[-2\]"),
    Mutant(wrong_axis_of_operator, r"axis = -2"),
    Mutant(wrong_exponent, r"constant (float|double)\[\] 3, expected constant (float|double)\[\] 2"),
    Mutant(dropped_reader, r"'residual'|'hidden_states'|Gather"),
    Mutant(another_weight, r"weight' \| '.*weight'"),
    Mutant(sum_for_result, r"Add making 'sum'", first=r"value '"),
    Mutant(flipped_bit, r"another weight", seen_in=NOWHERE, first=r"MatMul"),
    Mutant(other_operator_outside, r"Tanh.*expected", first=r"Tanh"),
]
