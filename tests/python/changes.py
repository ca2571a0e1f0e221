# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""A table of small changes to a model, each to one place that is drawn at random.

A change takes a `Subject` and a generator and returns a new model, or None
where it has nothing to work on. Whether the result is still a site is not
known here; HARMLESS are the changes after which it is.
"""

import dataclasses

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import norm_oracle
import structure

REPLACEMENTS = {
    "Add": ["Sub", "Mul", "Max", "Sum"], "Mul": ["Add", "Sub", "Div", "Min"], "Div": ["Mul", "Add"],
    "Sub": ["Add"], "Sqrt": ["Exp", "Abs", "Identity", "Reciprocal"], "Reciprocal": ["Sqrt", "Neg", "Exp"],
    "Pow": ["Mul", "Add"], "ReduceMean": ["ReduceSum", "ReduceMax", "ReduceL2", "ReduceL1", "ReduceSumSquare"],
    "ReduceSum": ["ReduceMean", "ReduceSumSquare", "ReduceProd"],
    "ReduceSumSquare": ["ReduceSum", "ReduceMean", "ReduceL2"],
    "GlobalAveragePool": ["GlobalMaxPool"], "RMSNormalization": ["LayerNormalization"],
    "SimplifiedLayerNormalization": ["LayerNormalization"], "Cast": ["Identity"]}
UNARY = ["Neg", "Relu", "Abs", "Tanh", "Floor", "Sqrt", "Reciprocal", "Exp", "Dropout", "Softplus"]
SINGLE_CONSTANTS = [0.0, 1.0, 2.0, 3.0, -1.0, -0.5, 0.5, 4.0, 0.25, 1e-6, 1e-3, float("nan"), float("inf")]


def copied(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


@dataclasses.dataclass
class Subject:
    model: onnx.ModelProto
    values: dict  # name: array, for some input

    def __post_init__(self):
        self.model = copied(self.model)
        self.graph = self.model.graph
        self.makers = {o: node for node in self.graph.node for o in node.output if o}
        self.initializers = {t.name: t for t in self.graph.initializer}

    @property
    def opset(self):
        return next(o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx"))

    def fresh(self, stem):
        """A name that nothing has."""
        taken = {*self.values, *self.makers, *(i.name for i in self.graph.input)}
        return next(n for n in (f"{stem}_{i}" for i in range(1, 1000)) if n not in taken)

    def edges(self):
        """(node, index) of every operand."""
        return [(node, i) for node in self.graph.node for i, name in enumerate(node.input) if name]

    def inner(self):
        """Results of nodes, in the order of the file."""
        return [o for node in self.graph.node for o in node.output if o]

    def dtype(self, name):
        return self.values[name].dtype

    def is_float(self, name):
        return name in self.values and helper.np_dtype_to_tensor_dtype(self.dtype(name)) in norm_oracle.FLOATS

    def type_of(self, name):
        return helper.np_dtype_to_tensor_dtype(self.dtype(name))

    def depends_on(self, name, node):
        """Whether the value comes, at some distance, from the node."""
        stack, seen = [name], set()
        while stack:
            maker = self.makers.get(stack.pop())
            if maker is node:
                return True
            if maker is not None and id(maker) not in seen:
                seen.add(id(maker))
                stack += structure.reads(maker)
        return False

    def insert(self, before, op, inputs, **attributes):
        """A new node in front of `before` (None: at the end); its result."""
        name = self.fresh(op.lower())
        node = helper.make_node(op, inputs, [name], **attributes)
        nodes = list(self.graph.node)
        at = next((i for i, n in enumerate(nodes) if n is before), len(nodes))
        self.graph.node.insert(at, node)
        self.values[name] = self.values.get(inputs[0] if inputs else None, np.zeros([]))
        return name

    def add_initializer(self, stem, array):
        name = self.fresh(stem)
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        self.values[name] = np.asarray(array)
        return name

    def add_output(self, name):
        self.graph.output.append(helper.make_tensor_value_info(name, self.type_of(name), None))

    def constants(self):
        """(name, array, setter) of initializers and Constant nodes that main nodes read."""
        read = {name for node in self.graph.node for name in node.input}
        for tensor in self.graph.initializer:
            if tensor.name in read and np.prod(tensor.dims) > 0:
                yield tensor.name, numpy_helper.to_array(tensor), tensor.CopyFrom
        for node in self.graph.node:
            if node.op_type == "Constant" and node.output[0] in read and self.values[node.output[0]].size:
                yield node.output[0], self.values[node.output[0]], ConstantSetter(node)


class ConstantSetter:
    def __init__(self, node):
        self.node = node

    def __call__(self, tensor):
        del self.node.attribute[:]
        self.node.attribute.append(helper.make_attribute("value", tensor))


def pick(rng, items):
    items = list(items)
    return rng.choice(items) if items else None


# ---- changes that may break a site --------------------------------------------


def rewire(subject, rng):
    """One operand becomes another value of the same shape and type."""
    node, index = pick(rng, subject.edges())
    old = subject.values.get(node.input[index])
    if old is None:
        return None
    others = [name for name, v in subject.values.items()
              if name != node.input[index] and v.shape == old.shape and v.dtype == old.dtype
              and not subject.depends_on(name, node)]
    if not others:
        return None
    node.input[index] = rng.choice(others)
    return subject.model


def rewire_broadcasting(subject, rng):
    """One operand becomes another value of another shape, which broadcasting may allow."""
    edges = [(n, i) for n, i in subject.edges() if n.op_type in ("Add", "Mul", "Div", "Pow", "Sub")]
    edge = pick(rng, edges)
    if edge is None or edge[0].input[edge[1]] not in subject.values:
        return None
    node, index = edge
    others = [name for name, v in subject.values.items()
              if v.dtype == subject.dtype(node.input[index]) and not subject.depends_on(name, node)]
    node.input[index] = rng.choice(others)
    return subject.model


def axis(subject, rng):
    """Another axis, or other axes, of a reduction or a norm."""
    node = pick(rng, [n for n in subject.graph.node
                      if n.op_type.startswith("Reduce") or n.op_type.endswith("Normalization")])
    if node is None:
        return None
    rank = subject.values[node.input[0]].ndim
    axes = rng.choice([[rank - 1], [0], [rank - 2], [-2], [-1, -2], [-1, 0], [], [1], list(range(rank))])
    for attribute in node.attribute:
        if attribute.name == "axis" and axes:
            attribute.i = axes[0]
            return subject.model
        if attribute.name == "axes" and axes:
            attribute.ints[:] = axes
            return subject.model
    if len(node.input) > 1 and node.op_type.startswith("Reduce"):
        node.input[1] = subject.add_initializer("axes", np.asarray(axes, np.int64))
        return subject.model
    return None


def drop_axes(subject, rng):
    node = pick(rng, [n for n in subject.graph.node if n.op_type.startswith("Reduce")])
    if node is None:
        return None
    if len(node.input) > 1:
        del node.input[1:]
    else:
        keep = [a for a in node.attribute if a.name != "axes"]
        del node.attribute[:]
        node.attribute.extend(keep)
    return subject.model


def integer_attribute(subject, rng):
    """keepdims, noop_with_empty_axes, stash_type, the target of a Cast: another value."""
    choices = {"keepdims": [0, 1], "noop_with_empty_axes": [0, 1], "stash_type": [1, 10, 11],
               "to": [1, 6, 10, 11, 16], "axis": [-1, -2, 0, 1, 2], "start": [0, 1, 2]}
    found = [(n, a) for n in subject.graph.node for a in n.attribute if a.name in choices]
    edge = pick(rng, found)
    if edge is None:
        return None
    edge[1].i = rng.choice([v for v in choices[edge[1].name] if v != edge[1].i])
    return subject.model


def set_attribute(subject, rng):
    """An attribute that was absent."""
    node = pick(rng, [n for n in subject.graph.node if n.op_type.startswith("Reduce")])
    if node is None:
        return None
    name, value = rng.choice([("keepdims", 0), ("keepdims", 1), ("noop_with_empty_axes", 1)])
    if name in [a.name for a in node.attribute] or (name.startswith("noop") and subject.opset < 18):
        return None
    node.attribute.append(helper.make_attribute(name, value))
    return subject.model


def constant_value(subject, rng):
    """Another value of the same type and shape, for all who read it."""
    name, array, set_to = pick(rng, subject.constants()) or (None, None, None)
    if name is None:
        return None
    if array.dtype.kind in "iu":
        new = array + rng.choice([-2, -1, 1, 2])
    elif array.size == 1:
        new = np.full(array.shape, rng.choice(SINGLE_CONSTANTS))
    else:
        new = np.asarray(array, np.float64) * rng.choice([-1, 0, 2, 1e3])
    with np.errstate(all="ignore"):
        set_to(numpy_helper.from_array(np.asarray(new).astype(array.dtype), name))
    return subject.model


def constant_nudged(subject, rng):
    """The next number that the type can hold."""
    name, array, set_to = pick(rng, [c for c in subject.constants() if c[1].dtype.kind == "f"]) or (None,) * 3
    if name is None:
        return None
    set_to(numpy_helper.from_array(np.nextafter(array, array.dtype.type(rng.choice([-9, 9]))), name))
    return subject.model


def constant_shape(subject, rng):
    """The same elements in another shape, or repeated: a scalar becomes a vector."""
    name, array, set_to = pick(rng, subject.constants()) or (None, None, None)
    if name is None:
        return None
    if array.size == 1:
        shape = rng.choice([[], [1], [1, 1], [1, 1, 1], [1, 1, 1, 1], [4], [1, 4], [3, 1], [2, 1, 1], [2, 1, 1, 1]])
        new = np.broadcast_to(array.reshape([1] * len(shape)), shape)
        if np.prod(shape) > 1 and rng.random() < 0.7 and array.dtype.kind == "f":
            new = new * np.asarray(rng.choice([1, 2]), array.dtype) + np.arange(
                np.prod(shape)).reshape(shape).astype(array.dtype)
    else:
        shape = rng.choice([[1, *array.shape], [*array.shape, 1], [3, *array.shape], [2, 1, *array.shape],
                            [1, 1, 1, 1, *array.shape], [1], []])
        new = np.broadcast_to(array[..., None] if shape[-1:] == [1] and len(shape) > 1 else
                              array.reshape(-1)[0] if shape in ([1], []) else array, shape)
    set_to(numpy_helper.from_array(np.ascontiguousarray(new).reshape(shape).astype(array.dtype), name))
    return subject.model


def constant_type(subject, rng):
    """Another element type of a constant."""
    name, array, set_to = pick(rng, subject.constants()) or (None, None, None)
    if name is None:
        return None
    to = rng.choice([np.float32, np.float16, np.float64, np.int64, np.int32])
    with np.errstate(all="ignore"):
        set_to(numpy_helper.from_array(np.asarray(array, np.float64).astype(to), name))
    return subject.model


def overridable(subject, rng):
    """An initializer that a graph input of the same name overrides."""
    inputs = {i.name for i in subject.graph.input}
    tensor = pick(rng, [t for t in subject.graph.initializer if t.name not in inputs])
    if tensor is None:
        return None
    subject.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return subject.model


def constant_to_input(subject, rng):
    inputs = {i.name for i in subject.graph.input}
    tensor = pick(rng, [t for t in subject.graph.initializer if t.name not in inputs])
    if tensor is None:
        return None
    subject.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    subject.graph.initializer.remove(tensor)
    return subject.model


def input_to_constant(subject, rng):
    """A graph input becomes a weight, or depends on constants only."""
    value = pick(rng, subject.graph.input)
    if value is None or value.name in subject.initializers or value.name not in subject.values:
        return None
    array = subject.values[value.name]
    subject.graph.input.remove(value)
    if rng.random() < 0.5:
        subject.graph.initializer.append(numpy_helper.from_array(array, value.name))
    else:
        base = subject.add_initializer("table", array)
        op = rng.choice(["Identity", "Neg", "Constant"])
        node = (helper.make_node("Constant", [], [value.name], value=numpy_helper.from_array(array))
                if op == "Constant" else helper.make_node(op, [base], [value.name]))
        subject.graph.node.insert(0, node)
    return subject.model


def input_shape(subject, rng):
    """A graph input that broadcasts, has another rank, or says less of its shape."""
    value = pick(rng, [i for i in subject.graph.input if i.type.tensor_type.HasField("shape")])
    dims = value.type.tensor_type.shape.dim if value is not None else []
    if not dims:
        return None
    kind = rng.choice(["one", "drop_first", "scalar", "unnamed", "no_shape", "longer", "fixed"])
    if kind == "no_shape":
        value.type.tensor_type.ClearField("shape")
        return subject.model
    if kind == "drop_first":
        del dims[0]
    elif kind == "scalar":
        del dims[:]
    elif kind == "longer":
        dims.insert(0, type(dims[0])(dim_value=rng.choice([1, 2])))
    else:
        chosen = rng.choice(list(dims))
        size = chosen.dim_value or 3
        chosen.Clear()
        if kind in ("one", "fixed"):
            chosen.dim_value = 1 if kind == "one" else size
    return subject.model


def new_reader(subject, rng):
    """Something else reads a value: a node, a graph output, a branch."""
    name = pick(rng, [n for n in subject.inner() if subject.is_float(n)])
    kind = rng.choice(["node", "output", "branch", "cast_like", "shape"])
    outputs = {o.name for o in subject.graph.output}
    if name is None or kind == "output" and name in outputs:
        return None
    if kind == "output":
        subject.add_output(name)
    elif kind == "branch":
        add_branch(subject, name)
    else:
        made = {"node": ("Neg", [name]), "shape": ("Shape", [name]), "cast_like": ("CastLike", [
            subject.inner()[0], name])}[kind]
        if kind == "cast_like" and subject.opset < 15:
            return None
        out = subject.insert(None, *made)
        subject.values[out] = (np.zeros([1], np.int64) if kind == "shape" else subject.values[name])
        subject.add_output(out)
    return subject.model


def add_branch(subject, name):
    """An If at the end, one branch of which captures the value."""
    def branch(op, out):
        node = helper.make_node(op, [name], [out])
        value = onnx.ValueInfoProto(name=out)
        value.type.tensor_type.elem_type = subject.type_of(name)
        return helper.make_graph([node], out, [], [value])
    go = subject.add_initializer("go", np.asarray(True))
    out = subject.fresh("chosen")
    subject.graph.node.append(helper.make_node(
        "If", [go], [out], then_branch=branch("Neg", "captured"), else_branch=branch("Abs", "captured_2")))
    subject.values[out] = subject.values[name]
    subject.add_output(out)


def remove_reader(subject, rng):
    """A graph output goes, or a node whose results nobody needs."""
    if len(subject.graph.output) < 2:
        return None
    subject.graph.output.remove(rng.choice(list(subject.graph.output)))
    return subject.model


def swap_operands(subject, rng):
    """Also where the order matters."""
    node = pick(rng, [n for n in subject.graph.node if len(n.input) == 2])
    if node is None:
        return None
    node.input[:] = [node.input[1], node.input[0]]
    return subject.model


def replace_operator(subject, rng):
    node = pick(rng, [n for n in subject.graph.node if n.op_type in REPLACEMENTS])
    if node is None:
        return None
    old = node.op_type
    node.op_type = rng.choice(REPLACEMENTS[old])
    if old == "Cast":
        del node.attribute[:]
    if node.op_type == "ReduceSum" and subject.opset >= 13 and len(node.input) == 1:
        axes = [list(a.ints) for a in node.attribute if a.name == "axes"]
        keep = [a for a in node.attribute if a.name != "axes"]
        del node.attribute[:]
        node.attribute.extend(keep)
        if axes:
            node.input.append(subject.add_initializer("axes", np.asarray(axes[0], np.int64)))
    return subject.model


def with_constant(op, value, shape=()):
    """An inserter of an operator with a second operand, of the first one's type."""
    def insert(subject, before, name):
        array = np.full(shape, value, subject.dtype(name))
        return subject.insert(before, op, [name, subject.add_initializer("by", array)])
    return insert


def clip(low, high):
    def insert(subject, before, name):
        dtype = subject.dtype(name)
        bounds = [subject.add_initializer(n, np.asarray(v, dtype)) for n, v in (("low", low), ("high", high))]
        return subject.insert(before, "Clip", [name, *bounds])
    return insert


def reshape(shape=None):
    """Without a shape: to the value's own."""
    def insert(subject, before, name):
        array = np.asarray(subject.values[name].shape if shape is None else shape, np.int64)
        return subject.insert(before, "Reshape", [name, subject.add_initializer("shape", array)])
    return insert


def transpose(permuted):
    def insert(subject, before, name):
        rank = subject.values[name].ndim
        return subject.insert(before, "Transpose", [name], perm=permuted(rank)) if rank > 1 else None
    return insert


def slice_all(subject, before, name):
    ends = [subject.add_initializer(n, np.asarray([v], np.int64)) for n, v in (("start", 0), ("end", 2**31))]
    return subject.insert(before, "Slice", [name, *ends])


def quantize(subject, before, name):
    """There and back."""
    operands = [subject.add_initializer("step", np.asarray(0.125, subject.dtype(name))),
                subject.add_initializer("zero", np.asarray(0, np.int8))]
    return subject.insert(before, "DequantizeLinear", [
        subject.insert(before, "QuantizeLinear", [name, *operands]), *operands])


def cast_to_integer(subject, before, name):
    """There and back."""
    to = subject.type_of(name)
    return subject.insert(before, "Cast", [subject.insert(before, "Cast", [name], to=TensorProto.INT64)], to=to)


def unary(op):
    return lambda subject, before, name: subject.insert(before, op, [name])


# Each inserts an operator that reads a value in front of a node; its result, or None if it cannot read the value.
INSERTERS = {
    **{op: unary(op) for op in ["Identity", "Abs", "Relu", "Sqrt", "Reciprocal", "Exp", "Dropout"]},
    "Clip": clip(-100, 100), "Transpose": transpose(lambda rank: list(range(rank))), "Reshape": reshape(),
    "MulTwo": with_constant("Mul", 2.0), "MulOnes": with_constant("Mul", 1.0, [4]),
    "Add": with_constant("Add", 1.0), "Sub": with_constant("Sub", 0.5), "Max": with_constant("Max", -50),
    "Pow": with_constant("Pow", 3.0),
    "Slice": slice_all, "Quantize": quantize, "CastToInteger": cast_to_integer}


def insert_operator(subject, rng):
    """A node on one edge, or on all edges of a value."""
    node, index = pick(rng, [(n, i) for n, i in subject.edges() if subject.is_float(n.input[i])]) or (None, 0)
    if node is None:
        return None
    name = node.input[index]
    inserter = rng.choice([
        *map(unary, UNARY), clip(*rng.choice([(-100, 100), (0, 60000), (-60000, 60000)])),
        with_constant("Mul", rng.choice([1.0, 2.0, 0.0, -1.0])), with_constant("Add", rng.choice([1.0, 2.0, 0.0])),
        INSERTERS["MulOnes"], INSERTERS["Max"], reshape(rng.choice([None, [-1], [1, -1]])),
        transpose(lambda rank: rng.sample(range(rank), rank))])
    readers = [n for n in subject.graph.node if name in n.input]
    if rng.random() < 0.5 and name in subject.makers:
        out = insert_before(subject, inserter, name, readers)
    else:
        out = insert_on_edge(subject, inserter, node, index)
    return subject.model if out is not None else None


def insert_before(subject, inserter, name, readers):
    """These readers of the value read what the inserter makes of it."""
    out = inserter(subject, readers[0], name)
    if out is not None:
        for reader in readers:
            reader.input[:] = [out if n == name else n for n in reader.input]
    return out


def insert_on_edge(subject, inserter, node, index):
    out = inserter(subject, node, node.input[index])
    if out is not None:
        node.input[index] = out
    return out


def insert_cast(subject, rng):
    """A Cast to another type and, mostly, one back."""
    node, index = pick(rng, [(n, i) for n, i in subject.edges() if subject.is_float(n.input[i])]) or (None, 0)
    if node is None:
        return None
    name = node.input[index]
    to = rng.choice([1, 10, 11, 16, 6, 7])
    out = subject.insert(node, "Cast", [name], to=to)
    if rng.random() < 0.8:
        out = subject.insert(node, "Cast", [out], to=subject.type_of(name))
    node.input[index] = out
    return subject.model


def bypass(subject, rng):
    """A node goes; its readers read its first operand."""
    node = pick(rng, [n for n in subject.graph.node if n.input and len(n.output) == 1])
    if node is None:
        return None
    old, new = node.output[0], node.input[0]
    if old in {o.name for o in subject.graph.output}:
        return None
    subject.graph.node.remove(node)
    for reader in subject.graph.node:
        reader.input[:] = [new if n == old else n for n in reader.input]
    return subject.model


def duplicate(subject, rng):
    """A node twice; one reader reads the copy."""
    node = pick(rng, [n for n in subject.graph.node if len(n.output) == 1 and n.input])
    edges = [(n, i) for n, i in subject.edges() if node is not None and n.input[i] == node.output[0]]
    if not edges:
        return None
    reader, index = rng.choice(edges)
    twin = onnx.NodeProto()
    twin.CopyFrom(node)
    twin.name = ""
    twin.output[0] = subject.fresh("twin")
    at = next(i for i, n in enumerate(subject.graph.node) if n is reader)
    reader.input[index] = twin.output[0]
    subject.graph.node.insert(at, twin)
    return subject.model


def epsilon_after_root(subject, rng):
    """Sqrt(mean + eps) becomes Sqrt(mean) + eps."""
    for add in [n for n in subject.graph.node if n.op_type == "Add"]:
        root = next((n for n in subject.graph.node if n.op_type == "Sqrt" and n.input[0] == add.output[0]), None)
        index = next((i for i, n in enumerate(add.input) if n in subject.makers
                      and subject.makers[n].op_type != "Constant"), None)
        if root is not None and index is not None:
            mean = add.input[index]
            middle, out = add.output[0], root.output[0]
            root.input[0], root.output[0] = mean, middle
            add.input[index], add.output[0] = middle, out
            nodes = [n for n in subject.graph.node if n is not root]
            at = next(i for i, n in enumerate(nodes) if n is add)
            nodes.insert(at, root)
            kept = [copied_node(n) for n in nodes]
            del subject.graph.node[:]
            subject.graph.node.extend(kept)
            return subject.model
    return None


def copied_node(node):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def float_attribute(subject, rng):
    found = [a for n in subject.graph.node for a in n.attribute if a.type == AttributeProto.FLOAT]
    attribute = pick(rng, found)
    if attribute is None:
        return None
    attribute.f = rng.choice(SINGLE_CONSTANTS)
    return subject.model


def computed_constant(subject, rng):
    """A constant operand that now depends on an input: constant + 0 * something."""
    edges = [(n, i) for n, i in subject.edges()
             if n.input[i] in subject.initializers and subject.is_float(n.input[i])]
    node, index = pick(rng, edges) or (None, 0)
    source = pick(rng, [i.name for i in subject.graph.input
                        if i.name in subject.values and subject.is_float(i.name)])
    if node is None or source is None:
        return None
    name = node.input[index]
    if subject.dtype(source) != subject.dtype(name) or subject.opset < 13:
        return None
    total = subject.insert(node, "ReduceMax", [source], keepdims=0)
    least = subject.insert(node, rng.choice(["Mul", "Min", "Add"]), [name, total])
    node.input[index] = least
    return subject.model


# ---- changes after which a site is a site ---------------------------------------


def commute(subject, rng):
    node = pick(rng, [n for n in subject.graph.node if n.op_type in ("Add", "Mul") and len(n.input) == 2])
    if node is None:
        return None
    node.input[:] = [node.input[1], node.input[0]]
    return subject.model


def insert_identity(subject, rng):
    node, index = pick(rng, [(n, i) for n, i in subject.edges() if subject.is_float(n.input[i])]) or (None, 0)
    if node is None:
        return None
    node.input[index] = subject.insert(node, "Identity", [node.input[index]])
    return subject.model


def extra_reader_of_result(subject, rng):
    """The graph's results and inputs may be read by anyone."""
    names = [v.name for v in (*subject.graph.output, *subject.graph.input)
             if v.name in subject.values and subject.is_float(v.name)]
    name = pick(rng, names)
    if name is None:
        return None
    subject.add_output(subject.insert(None, "Neg", [name]))
    return subject.model


def shuffle_nodes(subject, rng):
    nodes = [copied_node(n) for n in subject.graph.node]
    rng.shuffle(nodes)
    del subject.graph.node[:]
    subject.graph.node.extend(nodes)
    return subject.model


def negated_operand(subject, rng):
    """What the residual or the branch is made of does not matter."""
    value = pick(rng, [i for i in subject.graph.input if i.name in subject.values and subject.is_float(i.name)
                       and subject.values[i.name].ndim > 1])
    adds = [n for n in subject.graph.node if n.op_type == "Add" and value is not None and value.name in n.input]
    if not adds:
        return None
    add = rng.choice(adds)
    out = subject.insert(add, rng.choice(["Neg", "Tanh", "Abs"]), [value.name])
    add.input[:] = [out if n == value.name else n for n in add.input]
    return subject.model


CHANGES = [rewire, rewire, rewire, rewire_broadcasting, axis, drop_axes, integer_attribute, set_attribute,
           constant_value, constant_value, constant_nudged, constant_shape, constant_shape, constant_type,
           overridable, constant_to_input, input_to_constant, input_shape, new_reader, new_reader,
           remove_reader, swap_operands, replace_operator, replace_operator, insert_operator,
           insert_operator, insert_cast, insert_cast, bypass, duplicate, epsilon_after_root,
           float_attribute, computed_constant]
HARMLESS = [commute, insert_identity, extra_reader_of_result, shuffle_nodes, negated_operand]
