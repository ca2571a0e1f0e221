# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's verdict on float16 models, whose roundings it sometimes drops.

See "Roundings that ONNX Runtime drops" in tests/expected_differences.md. It drops them
where two Casts meet. So models that differ are compared once more with all functions
inlined and an Identity behind every node, where no Casts meet.
"""

import onnx
import onnx.inliner
from onnx import helper

import addnorm


def has_float16(model):
    tensors = [t.data_type for t in model.graph.initializer]
    values = [v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)]
    targets = [a.i for n in addnorm.all_nodes(model) if n.op_type == "Cast" for a in n.attribute]
    return onnx.TensorProto.FLOAT16 in tensors + values + targets


def separated(model):
    """The model without functions, an Identity behind each node of each graph."""
    copy = onnx.ModelProto()
    copy.CopyFrom(onnx.inliner.inline_local_functions(model) if model.functions else model)
    for graph in [copy.graph, *addnorm.all_graphs(copy.graph.node)]:
        separate(graph)
    return copy


def separate(graph):
    identities = []
    for node in graph.node:
        for index, name in enumerate(node.output):
            if name and node.op_type != "Constant":
                node.output[index] = f"{name}/before"
                identities.append(helper.make_node("Identity", [node.output[index]], [name]))
    # ONNX Runtime sorts the nodes itself.
    graph.node.extend(identities)


def same_in_onnxruntime(before, after, feeds):
    """Whether ONNX Runtime gives the same bits; None if it cannot run `before`."""
    try:
        expected = addnorm.run_onnxruntime(before, feeds)
    except Exception:
        return None
    if addnorm.run_onnxruntime(after, feeds) == expected:
        return True
    if not has_float16(before):
        return False
    return (addnorm.run_onnxruntime(separated(before), feeds)
            == addnorm.run_onnxruntime(separated(after), feeds))
