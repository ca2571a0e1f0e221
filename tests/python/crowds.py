# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Models in which very many nodes, functions or names meet in one place, each valid.

    for name, make in CROWDS.items():
        model = make(20_000)
"""

import onnx
from onnx import TensorProto, helper

WIDTH = 4
OPSET = 17
HEAD = [helper.make_node("Add", ["a", "b"], ["x"])]


def model(nodes, outputs, weights=(), functions=(), imports=(), element=TensorProto.FLOAT):
    """Nodes after x = a + b, of that type of elements."""
    row = helper.make_tensor_value_info
    constants = [helper.make_tensor("two", TensorProto.FLOAT, [], [2.0]),
                 helper.make_tensor("eps", TensorProto.FLOAT, [], [1e-5]),
                 helper.make_tensor("w", TensorProto.FLOAT, [WIDTH], [1.0] * WIDTH), *weights]
    graph = helper.make_graph(
        [*HEAD, *nodes], "g", [row(name, element, [2, WIDTH]) for name in "ab"],
        [row(name, TensorProto.FLOAT, None) for name in outputs], constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, opset_imports=[*opsets, *imports], ir_version=8, functions=list(functions))


def norm(i, x="x", scale="w", root="Div"):
    """The nodes of a norm of x that makes y<i>; without a scale where it is None."""
    node = helper.make_node
    nodes = [node("Pow", [x, "two"], [f"sq{i}"]),
             node("ReduceMean", [f"sq{i}"], [f"ms{i}"], axes=[-1], keepdims=1),
             node("Add", [f"ms{i}", "eps"], [f"mse{i}"]),
             node("Sqrt", [f"mse{i}"], [f"rms{i}"])]
    if root == "Mul":
        nodes.append(node("Reciprocal", [f"rms{i}"], [f"r{i}"]))
    n = f"n{i}" if scale else f"y{i}"
    nodes.append(node(root, [x, f"r{i}" if root == "Mul" else f"rms{i}"], [n]))
    if scale:
        nodes.append(node("Mul", [n, scale], [f"y{i}"]))
    return nodes


def each(count, make):
    return [node for i in range(count) for node in make(i)]


def joined(count, make, **options):
    """`make(i)` makes y<i>; all are summed up, as a graph may have one output only."""
    total = helper.make_node("Sum", [f"y{i}" for i in range(count)], ["y"])
    return model([*each(count, make), total], ["y"], **options)


def unary(op, operand="x", **attributes):
    return lambda i: [helper.make_node(op, [operand], [f"y{i}"], **attributes)]


def chain(count, op):
    nodes = [helper.make_node(op, ["x" if i == 0 else f"v{i - 1}"], [f"v{i}"]) for i in range(count)]
    return model(nodes, [f"v{count - 1}"])


def cast_then(count, make, to=TensorProto.FLOAT):
    """All of them after one Cast."""
    return joined(count, lambda i: make(i) if i else [helper.make_node("Cast", ["x"], ["c"], to=to), *make(0)])


def widened(i, x="x"):
    return [helper.make_node("Cast", [x], [f"f{i}"], to=TensorProto.FLOAT), *norm(i, f"f{i}")]


def widened_outputs(count):
    """Norms of Casts of a float16 sum, each Cast an output of the graph."""
    return model(each(count, widened), [f"{name}{i}" for i in range(count) for name in "fy"],
                 element=TensorProto.FLOAT16)


def in_functions(count):
    """A function for each norm."""
    functions = [helper.make_function("my", f"F{i}", ["a", "w"], ["y0"], [
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Constant", [], ["eps"], value_float=1e-5), *norm(0, "a")],
        [helper.make_opsetid("", OPSET)]) for i in range(count)]
    return joined(count, lambda i: [helper.make_node(f"F{i}", ["x", "w"], [f"y{i}"], domain="my")],
                  functions=functions)


def many_calls(count):
    """Calls of one long function that is no norm, though it has many beginnings of one."""
    length = count // 20
    body = [helper.make_node("ReduceSumSquare", ["a"], [f"s{i}"], axes=[-1], keepdims=1) for i in range(length)]
    body.append(helper.make_node("Sum", [f"s{i}" for i in range(length)], ["r"]))
    function = helper.make_function("my", "F", ["a"], ["r"], body, [helper.make_opsetid("", OPSET)])
    return joined(count, lambda i: [helper.make_node("F", ["x"], [f"y{i}"], domain="my")], functions=[function])


def in_branches(count):
    """An If for each norm, the norm in one of its branches."""
    def branch(i, nodes, name):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

    def make(i):
        nodes = norm(i)
        nodes[-1].output[0] = f"t{i}"
        other = helper.make_node("Relu", ["x"], [f"e{i}"])
        return [helper.make_node("If", ["c"], [f"y{i}"], then_branch=branch(i, nodes, f"t{i}"),
                                 else_branch=branch(i, [other], f"e{i}"))]
    return joined(count, make, weights=[helper.make_tensor("c", TensorProto.BOOL, [], [True])])


def many_outputs(count):
    return model(each(count, lambda i: [helper.make_node("Add", ["x", "b"], [f"x{i}"]), *norm(i, f"x{i}")]),
                 [f"y{i}" for i in range(count)])


def sites(count):
    """A chain of sites that share constants and the weight."""
    def make(i):
        last = "x" if i == 0 else f"y{i - 1}"
        return [helper.make_node("Add", [last, "b"], [f"x{i}"]), *norm(i, f"x{i}", root="Mul")]
    return model(each(count, make), [f"y{count - 1}"])


def many_domains(count):
    return joined(count, unary("Relu"), imports=[helper.make_opsetid(f"d{i}", 1) for i in range(count)])


CROWDS = {
    "Pow": lambda n: joined(n, lambda i: [helper.make_node("Pow", ["x", "two"], [f"y{i}"])]),
    "norms": lambda n: joined(n, norm),
    "norms by Mul": lambda n: joined(n, lambda i: norm(i, root="Mul")),
    "norms without a weight": lambda n: joined(n, lambda i: norm(i, scale=None)),
    "norms without a weight by Mul": lambda n: joined(n, lambda i: norm(i, scale=None, root="Mul")),
    "inverse roots": lambda n: joined(n, lambda i: [*norm(i, root="Mul")[:-2], helper.make_node(
        "Relu", [f"r{i}"], [f"y{i}"])]),
    "norms of a Cast": lambda n: cast_then(n, lambda i: norm(i, "c")),
    "norms of a rounding Cast": lambda n: cast_then(n, lambda i: widened(i, "c"), TensorProto.FLOAT16),
    "norms of Casts that are outputs": widened_outputs,
    "weights first": lambda n: joined(n, lambda i: [
        *norm(i, root="Mul")[:-2], helper.make_node("Mul", ["x", "w"], [f"v{i}"]),
        helper.make_node("Mul", [f"v{i}", f"r{i}"], [f"y{i}"])]),
    "squares by Mul": lambda n: joined(n, lambda i: [helper.make_node("Mul", ["x", "x"], [f"y{i}"])]),
    "means of one square": lambda n: joined(n, lambda i: [
        *([helper.make_node("Pow", ["x", "two"], ["sq"])] if i == 0 else []),
        helper.make_node("ReduceMean", ["sq"], [f"y{i}"], axes=[-1], keepdims=1)]),
    "Mul": lambda n: joined(n, lambda i: [helper.make_node("Mul", ["x", "w"], [f"y{i}"])]),
    "Add": lambda n: joined(n, lambda i: [helper.make_node("Add", ["x", "b"], [f"y{i}"])]),
    "sums with norms": lambda n: joined(n, lambda i: [
        helper.make_node("Add", ["x", "b"], [f"x{i}"]), *norm(i, f"x{i}")]),
    "sites": sites,
    "ReduceMean": lambda n: joined(n, unary("ReduceMean", axes=[-1], keepdims=1)),
    "ReduceSumSquare": lambda n: joined(n, unary("ReduceSumSquare", axes=[-1], keepdims=1)),
    "ReduceL2": lambda n: joined(n, unary("ReduceL2", axes=[-1], keepdims=1)),
    "LpNormalization": lambda n: joined(n, unary("LpNormalization")),
    "Abs": lambda n: joined(n, unary("Abs")),
    "Casts": lambda n: joined(n, unary("Cast", to=TensorProto.FLOAT)),
    "chain of Casts": lambda n: model([helper.make_node("Cast", [f"c{i - 1}" if i else "x"], [f"c{i}"],
                                                        to=TensorProto.FLOAT) for i in range(n)], [f"c{n - 1}"]),
    "chain of Relu": lambda n: chain(n, "Relu"),
    "functions": in_functions,
    "calls": many_calls,
    "branches": in_branches,
    "outputs": many_outputs,
    "domains": many_domains,
    "weights": lambda n: joined(n, lambda i: [helper.make_node("Mul", ["x", f"w{i}"], [f"y{i}"])],
                                weights=[helper.make_tensor(f"w{i}", TensorProto.FLOAT, [1], [1.0])
                                         for i in range(n)]),
}


if __name__ == "__main__":
    import pathlib
    import sys
    for name, make in CROWDS.items():
        for count in map(int, sys.argv[2:]):
            path = pathlib.Path(sys.argv[1], f"{name.replace(' ', '_')}-{count}.onnx")
            path.write_bytes(make(count).SerializeToString())
