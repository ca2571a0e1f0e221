# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Says whether two models compute their values in the same way, operation by operation.

A value's print is a hash of the operator that makes it, its attributes by
meaning and its operands' prints in order. Not compared: names, the form of
constants (initializer, Constant node, Cast of one, rank of a single
element), Identity, and attributes that have their default.
"""

import hashlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

import addnorm

# A body spells these even where the original node left them out.
DEFAULTS = {("epsilon", float(np.float32(1e-5))), ("stash_type", 1)}


def hashed(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def print_of_constant(array):
    return hashed("constant", array.dtype.name, array.size == 1 or array.shape, array.tobytes())


def value_of_constant_node(node):
    """The array of a Constant node; None where the caller gives it, or for a sparse one."""
    attribute = node.attribute[0]
    if attribute.ref_attr_name or attribute.name == "sparse_value":
        return None
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return numpy_helper.to_array(value)
    is_float = attribute.name in ("value_float", "value_floats")
    return np.asarray(value, np.float32 if is_float else None)


class Printer:
    """Prints of the values of one graph; `outer` holds those of the graphs around it."""

    def __init__(self, nodes, initializers, outer):
        self.prints = dict(outer)
        self.arrays = {}
        for tensor in initializers:
            self.prints[tensor.name] = hashed("initializer", tensor.name)
            if tensor.data_location != onnx.TensorProto.EXTERNAL:
                self.set_constant(tensor.name, numpy_helper.to_array(tensor))
        for node in in_order(nodes):
            self.visit(node)

    def set_constant(self, name, array):
        self.arrays[name] = array
        self.prints[name] = print_of_constant(array)

    def visit(self, node):
        source = node.input[0] if node.input else None
        if node.op_type == "Constant":
            array = value_of_constant_node(node)
            if array is not None:
                return self.set_constant(node.output[0], array)
        elif node.op_type == "Cast" and source in self.arrays:
            dtype = helper.tensor_dtype_to_np_dtype(node.attribute[0].i)
            return self.set_constant(node.output[0], self.arrays[source].astype(dtype))
        elif node.op_type == "Identity":
            self.prints[node.output[0]] = self.print_of(source)
            return None
        domain = "" if node.domain == "ai.onnx" else node.domain
        operands = [self.print_of(name) for name in node.input]
        whole = hashed(domain, node.op_type, self.attributes(node), operands)
        for index, name in enumerate(node.output):
            self.prints[name] = hashed(whole, index)
        return None

    def print_of(self, name):
        return self.prints.get(name, name)

    def attributes(self, node):
        def is_default(a):
            is_number = a.type in (a.FLOAT, a.INT) and not a.ref_attr_name
            return is_number and (a.name, helper.get_attribute_value(a)) in DEFAULTS

        return sorted((a.name, self.attribute(a)) for a in node.attribute if not is_default(a))

    def attribute(self, attribute):
        if attribute.ref_attr_name:
            return "@" + attribute.ref_attr_name
        if attribute.HasField("g"):
            inner = Printer(attribute.g.node, attribute.g.initializer, self.prints)
            return repr([inner.print_of(o.name) for o in attribute.g.output])
        if attribute.HasField("t"):  # by meaning: not by name, nor by the field that holds it
            array = numpy_helper.to_array(attribute.t)
            return hashed(str(array.dtype), array.shape, array.tobytes())
        return repr(helper.get_attribute_value(attribute))


def reads(node):
    """Names that the node or a graph in it reads."""
    inner = [n for graph in addnorm.all_graphs([node]) for n in graph.node]
    outputs = [o.name for graph in addnorm.all_graphs([node]) for o in graph.output]
    return [*outputs, *(name for n in [node, *inner] for name in n.input)]


def in_order(nodes):
    """The nodes, each behind those whose results it or a graph in it reads."""
    makers = {name: node for node in nodes for name in node.output if name}
    done, order = set(), []

    for node in nodes:
        stack = [node]
        while stack:
            if len(stack) > len(makers) + 1:
                raise ValueError("the nodes make a cycle")
            waiting = [makers[r] for r in reads(stack[-1])
                       if r in makers and id(makers[r]) not in done and makers[r] is not stack[-1]]
            if waiting and id(stack[-1]) not in done:
                stack.append(waiting[0])
                continue
            top = stack.pop()
            if id(top) not in done:
                done.add(id(top))
                order.append(top)
    return order


def with_nodes(model, nodes):
    """A copy of the model that has these nodes in its main graph."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def sorted_copy(model):
    """A copy of the model whose nodes are in order, in subgraphs and functions too."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graphs = [copy.graph, *copy.functions]
    for graph in graphs:
        nodes = in_order([clone(node) for node in graph.node])
        del graph.node[:]
        graph.node.extend(nodes)
        graphs += [g for node in graph.node for a in node.attribute
                   for g in [a.g] * a.HasField("g") + list(a.graphs)]
    return copy


def clone(node):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def prints_of_model(model):
    """{value: print} of the main graph, and of functions under 'function: value'."""
    prints = Printer(model.graph.node, model.graph.initializer, {}).prints
    for function in model.functions:
        if function.domain != addnorm.DOMAIN:
            inner = Printer(function.node, [], {}).prints
            prints.update({f"{function.name}: {o}": inner[o] for o in function.output})
    return prints


def differences(before, after):
    """Values that both have and that `after`, once inlined, makes in another way."""
    old = prints_of_model(before)
    new = prints_of_model(addnorm.inlined(after))
    survivors = {o for node in after.graph.node for o in node.output if o}
    survivors |= {o.name for o in after.graph.output}
    survivors |= {name for name in old if ": " in name and name in new}
    missing = [o.name for o in before.graph.output if o.name not in new and o.name in old]
    return missing + sorted(v for v in survivors & set(old) if old[v] != new.get(v))


def untouched_fields_differ(before, after):
    """What no rewrite may touch, and yet differs."""
    def rest(model):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        for name in ("opset_import", "functions", "ir_version"):
            copy.ClearField(name)
        for name in ("node", "initializer", "value_info"):
            copy.graph.ClearField(name)
        return copy.SerializeToString(deterministic=True)

    problems = []
    if rest(before) != rest(after):
        problems.append("a field of the model or of its graph")
    if not {t.SerializeToString() for t in after.graph.initializer} <= {
            t.SerializeToString() for t in before.graph.initializer}:
        problems.append("an initializer")
    old_nodes = {n.SerializeToString() for n in addnorm.all_nodes(before)}
    for node in addnorm.all_nodes(after):
        if node.domain != addnorm.DOMAIN and not list(addnorm.all_graphs([node])):
            if node.SerializeToString() not in old_nodes:
                problems.append(f"node {node.name or node.output[0]!r}")
    kept = {v.name: v for v in after.graph.value_info}
    alive = {o for node in after.graph.node for o in node.output}
    problems += [f"value_info of {v.name!r}" for v in before.graph.value_info
                 if v.name in alive and kept.get(v.name) != v]
    return problems
