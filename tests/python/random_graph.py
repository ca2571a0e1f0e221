# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Random graphs of ordinary operators in which some sites are hidden.

A site is a residual Add and a norm of spelled.py. Sites are in the main
graph, in branches, loop bodies and functions. Everything else is no site: Adds
that no norm reads, norms of what is no Add, mean-subtracting norms.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import spelled

DIMENSIONS = {2: ["tokens"], 3: ["batch", "seq"], 4: ["batch", "heads", "seq"]}
UNARY = ["Neg", "Abs", "Tanh", "Relu", "Sigmoid", "Identity", "Floor"]
DOMAIN = "test.blocks"


class Scope:
    """The nodes of one graph or function, and the values that may be read there."""

    def __init__(self, maker, outer=None, is_function=False):
        self.maker, self.rng = maker, maker.rng
        self.opset, self.rank, self.length = maker.opset, maker.rank, maker.length
        self.nodes, self.initializers = [], []
        self.pool = list(outer.pool) if outer else []  # values of the model's shape and type
        self.types = dict(outer.types) if outer else {}
        self.sums = []                                 # of sites in this very graph
        self.is_function = is_function
        self.is_inner = outer is not None
        self.knows = not is_function                   # whether ranks and lengths are known
        self.value_info = []

    def node(self, op, *inputs, dtype=None, domain="", **attributes):
        name = self.maker.fresh(op.lower())
        node = helper.make_node(op, inputs, [name], domain=domain, **attributes)
        if self.rng.random() < 0.5:
            node.name = f"node_{name}"
        self.nodes.append(node)
        self.types[name] = np.dtype(dtype if dtype is not None else self.types[inputs[0]])
        return name

    def constant(self, array, through=""):
        as_node = self.is_function or self.maker.constants == "nodes" or (
            self.maker.constants == "mixed" and self.rng.random() < 0.5)
        if as_node:
            name = self.node("Constant", dtype=array.dtype, value=numpy_helper.from_array(array))
        else:
            home = self.maker.main_initializers if self.maker.captures else self.initializers
            name = next((t.name for t in home if t.data_type == helper.np_dtype_to_tensor_dtype(array.dtype)
                         and np.array_equal(numpy_helper.to_array(t), array) and array.size == 1
                         and self.maker.shares), None)
            if name is None:
                name = self.maker.fresh("constant")
                home.append(numpy_helper.from_array(array, name))
        self.types[name] = array.dtype
        return self.node(through, name) if through else name

    def random_row(self, dtype, *shape):
        elements = [self.rng.uniform(-2, 2) for _ in range(int(np.prod(shape)))]
        return np.asarray(elements).reshape(shape).astype(dtype)

    def weight(self, dtype, rows_only=False):
        """An operand of the fused op: a constant row, or one made of it, or an input."""
        rng = self.rng
        shape = rng.choice([[self.length], [self.length]] + [[1, self.length]] * self.knows + [[1]] * (not rows_only))
        kind = rng.choice(["constant"] * 3 + ["one_plus", "cast", "Identity"] + ["input"] * (
            not rows_only and not self.is_function))
        if kind == "input":
            return self.maker.input_row(self, np.dtype(dtype))
        if kind == "cast":
            wide = "float32" if np.dtype(dtype) == np.float16 else dtype
            row = self.constant(self.random_row(wide, *shape))
            return self.node("Cast", row, dtype=dtype, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        row = self.constant(self.random_row(dtype, *shape))
        if kind == "one_plus":
            return self.node("Add", *rng.sample([row, self.constant(np.ones([], dtype))], 2))
        return self.node("Identity", row) if kind == "Identity" else row

    # ---- what is hidden

    def site(self):
        a, b = self.rng.choice(self.pool), self.rng.choice(self.pool)
        total = self.node("Add", a, b)
        if self.rng.random() < 0.3:  # something reads the sum before the norm does
            self.add(self.node(self.rng.choice(["Neg", "Tanh"]), total))
        x = self.node("Identity", total) if self.rng.random() < 0.1 else total
        if not self.is_function and self.rng.random() < 0.15:
            y = self.maker.called_norm(self, x)
        else:
            norm = spelled.Norm(self, self.rng, self.maker.dtype)
            y = norm.write(x)
            self.maker.used.update(norm.used)
        self.maker.sites.append(total)
        self.sums.append(total)
        # ONNX's inference does not see through Loop, computed shapes and ONNX Runtime's
        # own operator, nor, in an inner graph, constants of outer ones.
        if self.rng.random() < 0.3 or self.maker.is_opaque or self.is_inner:
            self.value_info.append(self.maker.info(total))
        if self.rng.random() < 0.8:
            self.add(total)
        if self.rng.random() < 0.9:
            self.add(self.in_type(y))

    def in_type(self, value):
        to = self.maker.dtype
        if self.types[value] == to:
            return value
        return self.node("Cast", value, dtype=to, to=helper.np_dtype_to_tensor_dtype(to))

    def add(self, value):
        self.pool.append(value)

    # ---- what is not

    def filler(self):
        kind = self.rng.choice(FILLERS)
        self.add(kind(self, self.rng.choice(self.pool), self.rng.choice(self.pool)))

    def second_norm(self):
        """Of the sum of a site: the first one takes the Add."""
        if self.sums:
            self.add(self.in_type(spelled.Norm(self, self.rng, self.maker.dtype).write(
                self.rng.choice(self.sums))))


def unary(scope, v, u):
    return scope.node(scope.rng.choice(UNARY), v)


def binary(scope, v, u):
    return scope.node(scope.rng.choice(["Add", "Sub", "Mul", "Max", "Min"]), v, u)


def chosen(scope, v, u):
    return scope.node("Where", scope.node("Less", v, u, dtype=bool), v, u, dtype=scope.types[v])


def matmul(scope, v, u):
    return scope.node("MatMul", v, scope.constant(scope.random_row(scope.types[v], scope.length, scope.length)))


def bias(scope, v, u):
    row = scope.constant(scope.random_row(scope.types[v], scope.length))
    return scope.node("Add", *scope.rng.sample([v, row], 2))


def transposed(scope, v, u):
    perm = list(range(scope.rank))
    scope.rng.shuffle(perm)
    turned = scope.node("Neg", scope.node("Transpose", v, perm=perm))
    return scope.node("Transpose", turned, perm=[perm.index(i) for i in range(scope.rank)])


def reshaped(scope, v, u):
    scope.maker.is_opaque = True
    flat = scope.node("Reshape", v, scope.constant(np.asarray([-1, scope.length], np.int64)))
    shape = scope.node("Shape", u, dtype=np.int64)
    return scope.node("Reshape", scope.node("Neg", flat), shape)


def rotated(scope, v, u):
    size = scope.length // 2
    indices = np.asarray([*range(size, scope.length), *range(size)], np.int64)
    return scope.node("Gather", v, scope.constant(indices), axis=-1)


def concatenated(scope, v, u):
    both = scope.node("Concat", v, u, axis=-1)
    return scope.node("MatMul", both, scope.constant(
        scope.random_row(scope.types[v], 2 * scope.length, scope.length)))


def softmax(scope, v, u):
    return scope.node("Softmax", v, axis=-1)


def there_and_back(scope, v, u):
    other = np.dtype("float16" if scope.types[v] == np.float32 else "float32")
    cast = scope.node("Cast", v, dtype=other, to=helper.np_dtype_to_tensor_dtype(other))
    return scope.in_type(scope.node("Neg", cast))


def clipped(scope, v, u):
    bound = [scope.constant(np.asarray(x, scope.types[v])) for x in (-3, 3)]
    return scope.node("Clip", v, *bound)


def norm_without_add(scope, v, u):
    return scope.in_type(spelled.Norm(scope, scope.rng, scope.maker.dtype).write(scope.node("Tanh", v)))


def layer_norm(scope, v, u):
    def mean(x):
        axes = np.asarray([-1], np.int64)
        if scope.opset >= 18:
            return scope.node("ReduceMean", x, scope.constant(axes), keepdims=1)
        return scope.node("ReduceMean", x, axes=[-1], keepdims=1)
    dtype = scope.types[v]
    total = scope.node("Add", v, u)
    centred = scope.node("Sub", total, mean(total))
    square = scope.node("Pow", centred, scope.constant(np.asarray(2, dtype)))
    root = scope.node("Sqrt", scope.node("Add", mean(square), scope.constant(np.asarray(1e-3, dtype))))
    row = scope.constant(scope.random_row(dtype, scope.length))
    return scope.node("Mul", scope.node("Div", centred, root), row)


FILLERS = [unary, unary, binary, binary, chosen, matmul, bias, transposed, reshaped, rotated,
           concatenated, softmax, there_and_back, clipped, norm_without_add, layer_norm]


class Maker:
    """One random model: `model`, the names of its sites' sums, the rows used."""

    def __init__(self, rng):
        self.rng = rng
        self.opset = rng.randint(13, 24)
        self.dtype = np.dtype(rng.choice(["float32"] * 3 + ["float16"] * 2 + ["float64"]))
        self.rank = rng.choice([2, 3, 3, 3, 4])
        self.length = rng.choice([4, 6, 8, 16])
        self.constants = rng.choice(["initializers", "nodes", "mixed"])
        self.shares = rng.random() < 0.7
        self.captures = rng.random() < 0.5  # constants of inner graphs are in the main graph
        self.is_opaque = False              # shapes may be unknown to ONNX's inference
        self.count, self.sites, self.used = 0, [], set()
        self.main_initializers, self.inputs, self.functions = [], [], []
        self.model = self.make()

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def info(self, name, dtype=None, shape=None):
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype or self.dtype)),
            self.shape if shape is None else shape)

    def input_row(self, scope, dtype):
        name = self.fresh("weight")
        self.inputs.append(self.info(name, dtype, [self.length]))
        scope.types[name] = dtype
        return name

    def fill(self, scope, sites, depth=0):
        """Puts so many sites, some of them in inner graphs, between other nodes."""
        while True:
            for _ in range(self.rng.randint(0, 3)):
                scope.filler()
            if sites <= 0:
                return
            places = [self.in_branch, self.in_loop, self.in_function] if depth < 2 and not scope.is_function else []
            if places and self.rng.random() < 0.4:
                inside = self.rng.randint(1, sites)
                self.rng.choice(places)(scope, inside, depth + 1)
                sites -= inside
            else:
                scope.site()
                sites -= 1
                if self.rng.random() < 0.15:
                    scope.second_norm()

    # ---- inner graphs

    def in_branch(self, scope, sites, depth):
        graphs = []
        shares = [sites, 0] if self.rng.random() < 0.6 else [sites - sites // 2, sites // 2]
        for count in shares:
            inner = Scope(self, scope)
            self.fill(inner, count, depth)
            # A branch returns what it makes itself.
            out = inner.node("Neg", inner.pool[-1])
            graphs.append(helper.make_graph(
                inner.nodes, self.fresh("branch"), [], [self.info(out)], inner.initializers,
                value_info=inner.value_info))
        self.rng.shuffle(graphs)
        go = self.fresh("go")
        self.inputs.append(self.info(go, bool, []))
        scope.add(scope.node("If", go, dtype=self.dtype, then_branch=graphs[0], else_branch=graphs[1]))

    def in_loop(self, scope, sites, depth):
        self.is_opaque = True
        inner = Scope(self, scope)
        step, go, carried = (self.fresh(s) for s in ("step", "go", "carried"))
        inner.types[carried], inner.types[go] = self.dtype, np.dtype(bool)
        inner.pool.append(carried)
        inner.pool = inner.pool[-3:]
        self.fill(inner, sites, depth)
        on, out = inner.node("Identity", go), inner.node("Tanh", inner.pool[-1])
        body = helper.make_graph(
            inner.nodes, self.fresh("body"),
            [self.info(step, np.int64, []), self.info(go, bool, []), self.info(carried)],
            [self.info(on, bool, []), self.info(out)], inner.initializers,
            value_info=inner.value_info)
        trips = scope.constant(np.asarray(2, np.int64))
        start = scope.rng.choice(scope.pool)
        scope.add(scope.node("Loop", trips, scope.constant(np.asarray(True)), start, dtype=self.dtype, body=body))

    def in_function(self, scope, sites, depth):
        inner = Scope(self, is_function=True)
        first, second = self.fresh("first"), self.fresh("second")
        inner.types.update({first: self.dtype, second: self.dtype})
        inner.pool = [first, second]
        self.fill(inner, sites, depth)
        out = inner.node("Neg", inner.pool[-1])
        name = self.fresh("Block")
        self.add_function(name, [first, second], out, inner.nodes)
        for _ in range(self.rng.choice([1, 1, 2])):
            a, b = self.rng.choice(scope.pool), self.rng.choice(scope.pool)
            scope.add(scope.node(name, a, b, domain=DOMAIN, dtype=self.dtype))

    def called_norm(self, scope, x):
        """The result of a function that is a norm, which knows its caller's shapes."""
        inner = Scope(self, is_function=True)
        inner.knows = True
        operand = self.fresh("operand")
        inner.types[operand] = self.dtype
        norm = spelled.Norm(inner, self.rng, self.dtype)
        y, name = norm.write(operand), self.fresh("Norm")
        self.used.update(norm.used)
        self.add_function(name, [operand], y, inner.nodes)
        for _ in range(self.rng.choice([0, 0, 1])):  # nested
            outer = self.fresh("Outer")
            call = helper.make_node(name, ["p"], ["q"], domain=DOMAIN)
            self.add_function(outer, ["p"], "q", [call])
            name = outer
        self.is_opaque = True
        return scope.node(name, x, domain=DOMAIN, dtype=inner.types[y])

    def add_function(self, name, inputs, output, nodes):
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(DOMAIN, 1)]
        calls = any(n.domain == DOMAIN for n in nodes)
        self.functions.append(helper.make_function(
            DOMAIN, name, inputs, [output], nodes, imports[:2 if calls else 1]))

    # ---- the whole

    def make(self):
        rng = self.rng
        names = DIMENSIONS[self.rank]
        self.shape = [*([d if rng.random() < 0.7 else {"tokens": 3, "batch": 2, "heads": 2, "seq": 3}[d]
                         for d in names]), self.length]
        main = Scope(self)
        self.main_initializers = main.initializers
        for stem in ("hidden", "other"):
            name = self.fresh(stem)
            self.inputs.append(self.info(name))
            main.types[name] = self.dtype
            main.pool.append(name)
        self.fill(main, rng.randint(0, 4))
        outputs = rng.sample(main.pool[2:], min(len(main.pool) - 2, rng.randint(1, 4)))
        outputs = list(dict.fromkeys(outputs)) or [main.node("Neg", main.pool[0])]
        graph = helper.make_graph(main.nodes, "random", self.inputs, [self.info(o) for o in outputs],
                                  main.initializers, value_info=main.value_info,
                                  doc_string=rng.choice(["", "a random graph"]))
        imports = [helper.make_opsetid("", self.opset)]
        if self.functions:
            imports.append(helper.make_opsetid(DOMAIN, 1))
        model = helper.make_model(graph, opset_imports=imports, functions=self.functions,
                                  ir_version=rng.choice([8, 9, 10]), producer_name="random_graph")
        if rng.random() < 0.5:
            model.metadata_props.add(key="seed", value="drawn")
        if rng.random() < 0.3:
            try:
                model = onnx.shape_inference.infer_shapes(model)
            except Exception:  # of an operator that it does not know
                pass
        return model
