# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's verdict, also on float16 models whose nodes it takes in another order.

See "Norm operators in float16" in tests/expected_differences.md. Models with such an
operator that differ are compared once more with all functions inlined and an Identity
behind every node, where each node is alone.
"""

import onnx
import onnx.inliner
from onnx import helper

import addnorm

NORM_OPERATORS = ("RMSNormalization", "SimplifiedLayerNormalization")


def has_half_norm_operator(model):
    tensors = [t.data_type for t in model.graph.initializer]
    values = [v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)]
    targets = [a.i for n in addnorm.all_nodes(model) if n.op_type == "Cast" for a in n.attribute]
    return (onnx.TensorProto.FLOAT16 in tensors + values + targets
            and any(n.op_type in NORM_OPERATORS for n in addnorm.all_nodes(model)))


def separated(model):
    """The model without functions, an Identity behind each node of each graph."""
    copy = onnx.ModelProto()
    copy.CopyFrom(onnx.inliner.inline_local_functions(model) if model.functions else model)
    # The inner graphs first: separating replaces the nodes that hold them.
    for graph in [*reversed(list(addnorm.all_graphs(copy.graph.node))), copy.graph]:
        separate(graph)
    return copy


def separate(graph):
    nodes = []
    for node in graph.node:
        nodes.append(node)
        for index, name in enumerate(node.output):
            if name and node.op_type != "Constant":
                node.output[index] = f"{name}/before"
                nodes.append(helper.make_node("Identity", [node.output[index]], [name]))
    copies = [n.SerializeToString() for n in nodes]
    del graph.node[:]
    graph.node.extend(onnx.NodeProto.FromString(n) for n in copies)


def same_in_onnxruntime(before, after, feeds):
    """Whether ONNX Runtime gives the same bits; None if it cannot run `before`."""
    try:
        expected = addnorm.run_onnxruntime(before, feeds)
    except Exception:
        return None
    if addnorm.run_onnxruntime(after, feeds) == expected:
        return True
    if not has_half_norm_operator(before):
        return False
    return (addnorm.run_onnxruntime(separated(before), feeds)
            == addnorm.run_onnxruntime(separated(after), feeds))
