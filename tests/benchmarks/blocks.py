# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a model whose matrix products have realistic sizes, for `bench MODEL`.

    build/venv/bin/python tests/benchmarks/blocks.py blocks.onnx [hidden [blocks]]

Blocks of a pre-norm decoder without attention: norm, product to four times the
width, product back, residual Add; the norm spelled as TorchScript exports it.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main(path, hidden=1024, blocks=4):
    random = np.random.default_rng(0)
    nodes, weights = [], []

    def weight(name, *shape):
        values = random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]))
        weights.append(numpy_helper.from_array(values, name))
        return name

    def node(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    for name, value in (("two", 2), ("eps", 1e-6), ("one", 1)):
        weights.append(numpy_helper.from_array(np.float32(value), name))

    def norm(x, name):
        mean = node("ReduceMean", node("Pow", x, "two"), axes=[-1], keepdims=1)
        inverse = node("Div", "one", node("Sqrt", node("Add", mean, "eps")))
        return node("Mul", node("Mul", x, inverse), weight(name, hidden))

    x = "x"
    for i in range(blocks):
        wide = node("MatMul", norm(x, f"norm{i}"), weight(f"up{i}", hidden, 4 * hidden))
        x = node("Add", x, node("MatMul", node("Relu", wide), weight(f"down{i}", 4 * hidden, hidden)))
    nodes.append(helper.make_node("Identity", [norm(x, "norm")], ["y"]))
    graph = helper.make_graph(
        nodes, "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["sequence", hidden])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["sequence", hidden])], weights)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, path)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
