# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of a whole model that change nothing of what it computes."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import addnorm
import structure


def copied(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def graphs_of(model):
    """The main graph and all graphs inside; those of functions too."""
    yield model.graph
    yield from addnorm.all_graphs(model.graph.node)
    for function in model.functions:
        yield from addnorm.all_graphs(function.node)


def node_lists(model):
    return [g.node for g in graphs_of(model)] + [f.node for f in model.functions]


def renamed(model, rng):
    """(the model with other names for all values and nodes, {new name: old name})"""
    model = copied(model)
    names = Names(rng)
    rename_graph(model.graph, names)
    old_names = {new: old for old, new in names.of.items()}
    for function in model.functions:
        inner = Names(rng)
        function.input[:] = [inner.new(n) for n in function.input]
        function.output[:] = [inner.new(n) for n in function.output]
        rename_infos(function.value_info, inner)
        rename_nodes(function.node, inner)
        old_names.update({new: old for old, new in inner.of.items()})
    return model, old_names


class Names:
    def __init__(self, rng):
        self.rng, self.of = rng, {}

    def new(self, old):
        if old and old not in self.of:
            self.of[old] = f"{self.rng.choice(['/m/', '', 'x.'])}{self.rng.getrandbits(40)}_{len(self.of)}"
        return self.of.get(old, "")


def rename_infos(infos, names):
    for info in infos:
        info.name = names.new(info.name)


def rename_graph(graph, names):
    rename_infos((*graph.input, *graph.output, *graph.value_info, *graph.initializer), names)
    for sparse in graph.sparse_initializer:
        sparse.values.name = names.new(sparse.values.name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = names.new(annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = names.new(entry.value)
    rename_nodes(graph.node, names)


def rename_nodes(nodes, names):
    for number, node in enumerate(nodes):
        node.name = f"renamed_{number}" if names.rng.random() < 0.7 else ""
        node.input[:] = [names.new(n) for n in node.input]
        node.output[:] = [names.new(n) for n in node.output]
        for attribute in node.attribute:
            for graph in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                rename_graph(graph, names)


def shuffled(model, rng):
    """The nodes of each graph in any order."""
    model = copied(model)
    for nodes in node_lists(model):
        order = [copy_of(n) for n in nodes]
        rng.shuffle(order)
        del nodes[:]
        nodes.extend(order)
    return model


def resorted(model, rng):
    """The nodes of each graph in another legal order."""
    model = shuffled(model, rng)
    for nodes in sorted(node_lists(model), key=lambda nodes: -len(nodes)):
        order = [copy_of(n) for n in structure.in_order(nodes)]
        del nodes[:]
        nodes.extend(order)
    return model


def copy_of(node):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def commuted(model, rng):
    """Some Adds and Muls with their operands exchanged."""
    model = copied(model)
    for nodes in node_lists(model):
        for node in nodes:
            if node.op_type in ("Add", "Mul") and not node.domain and rng.random() < 0.6:
                node.input[:] = [node.input[1], node.input[0]]
    return model


def with_constant_nodes(model, rng):
    """Initializers that nobody can override become Constant nodes."""
    model = copied(model)
    for graph in graphs_of(model):
        inputs = {i.name for i in graph.input}
        kept, made = [], []
        for tensor in graph.initializer:
            if tensor.name in inputs or tensor.data_location == onnx.TensorProto.EXTERNAL:
                kept.append(tensor)
                continue
            value = onnx.TensorProto()
            value.CopyFrom(tensor)
            value.name = ""
            made.append(helper.make_node("Constant", [], [tensor.name], value=value))
        nodes = made + [copy_of(n) for n in graph.node]
        kept = [t.SerializeToString() for t in kept]
        del graph.initializer[:], graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(onnx.TensorProto.FromString(t) for t in kept)
    return model


def with_initializers(model, rng):
    """Constant nodes of graphs become initializers."""
    model = copied(model)
    for graph in graphs_of(model):
        kept = []
        for node in graph.node:
            is_constant = node.op_type == "Constant" and not node.domain
            array = structure.value_of_constant_node(node) if is_constant else None
            if array is None or np.asarray(array).dtype.kind in "SUO":
                kept.append(copy_of(node))
                continue
            graph.initializer.append(numpy_helper.from_array(np.asarray(array), node.output[0]))
        del graph.node[:]
        graph.node.extend(kept)
    return model


def with_raw_data(model):
    """Every initializer of the main graph with its elements in raw_data."""
    model = copied(model)
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.STRING:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    return model
