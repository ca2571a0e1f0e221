# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Writes RMSNorms in random spellings, drawn from the rows that the tool lists.

A row's text is a little program; its free names are operands. Everything that
a row leaves open is drawn: operand orders, the form and shape of constants,
Casts between steps, how an axis is written.
"""

import functools
import json
import re

import numpy as np
from onnx import helper

import addnorm

STEP = re.compile(r"(\w+) = ([\w.]+?)(?:<(.*)>)?\((.*)\)")
# Operators of rows that only exist from an opset on.
SINCE = {"RMSNormalization": 23}
OPERANDS = {"norm": "x", "mean": "x", "square": "x", "epsilon": "ms", "inverse": "mse"}
ROLES = ("scale", "row_scale", "epsilon", "length", "inverse_length")


@functools.cache
def rows():
    """{rule: [row]} of `onnx-addnorm patterns --json`."""
    found = {}
    for row in json.loads(addnorm.run("patterns", "--json").stdout)["patterns"]:
        steps = [STEP.fullmatch(line.strip()).groups() for line in row["text"].splitlines()]
        found.setdefault(row["rule"], []).append({**row, "steps": steps})
    return found


def is_possible(row, scope):
    def needs(word):
        return any(word in (text or "") for _, _, *texts in row["steps"] for text in texts)

    return (all(SINCE.get(op, 0) <= scope.opset for _, op, _, _ in row["steps"])
            and (scope.knows or not needs("length"))
            and (not needs("rank = 3") or scope.knows and scope.rank == 3))


class Norm:
    """One norm, written into a scope (see random_graph.Scope)."""

    def __init__(self, scope, rng, dtype):
        self.scope, self.rng = scope, rng
        self.dtype = np.dtype(dtype)  # of the sum
        self.used = []                # rows
        casts = {"float32": ["none", "none", "no_op", "random"],
                 "float16": ["none", "early", "late", "random"]}.get(self.dtype.name, ["none"])
        self.casts = rng.choice(casts)
        self.core = np.dtype("float32") if self.casts in ("early", "late") else self.dtype
        self.two_casts = rng.random() < 0.3
        self.epsilon = rng.choice([1e-6, 1e-5, 0.125, 0.0])
        self.widened = {}

    def write(self, total):
        """The norm's result."""
        y = self.expand("norm", total)
        if self.casts == "late" or self.casts == "random" and self.rng.random() < 0.5:
            y = self.cast(y, self.dtype)
        return y

    # ---- rules

    def expand(self, rule, operand):
        row = self.rng.choice([r for r in rows()[rule] if is_possible(r, self.scope)])
        self.used.append(f"{rule}/{row['name']}")
        self.scope.maker.is_opaque |= row["name"] == "simplified_layer_normalization"
        values = {OPERANDS[rule]: operand}
        for result, op, attributes, arguments in row["steps"]:
            names = [a.strip() for a in arguments.split(",") if a.strip()]
            if op.startswith("rule."):
                values[result] = self.expand(op[5:], values[names[0]])
            elif op == "Constant":
                values[result] = float(attributes.split("=")[1])
            elif op == "Identity":
                values[result] = values[names[0]]
            else:
                made = self.step(op, attributes or "", [values.get(n, n) for n in names])
                values[result] = self.maybe_cast(made)
        return values[result]

    def step(self, op, attributes, operands):
        scope, rng = self.scope, self.rng
        is_norm_op = op.endswith("Normalization")
        tensors = [self.widen(v) if v in scope.types else v for v in operands]
        if "scale" in operands and self.casts == "early" and not is_norm_op:
            tensors = [self.cast(v, self.dtype) if v in scope.types else v for v in tensors]
        dtype = next(scope.types[v] for v in tensors if v in scope.types)
        inputs = [self.cast(v, dtype) if v in scope.types else self.operand(v, dtype, op) for v in tensors]
        if op in ("Add", "Mul") and rng.random() < 0.3:
            inputs.reverse()
        if op.startswith("Reduce"):
            return self.reduce(op, inputs[0])
        extra = {}
        if is_norm_op:
            extra = {"axis": self.last_axis()} if rng.random() < 0.7 else {}
            # ONNX Runtime 1.32 crashes on functions that leave these out.
            extra |= {"epsilon": self.epsilon} if scope.is_function or rng.random() < 0.8 else {}
            extra |= {"stash_type": 1} if scope.is_function or rng.random() < 0.5 else {}
        elif op == "Shape":
            extra = {"start": self.last_axis()} if scope.opset >= 15 else {}
            return scope.node(op, inputs[0], dtype=np.int64, **extra)
        elif op == "ConstantOfShape":
            to = helper.np_dtype_to_tensor_dtype(self.core)
            extra = {"value": helper.make_tensor("value", to, [1], [1])}
            return scope.node(op, inputs[0], dtype=self.core, **extra)
        return scope.node(op, *inputs, dtype=dtype, **extra)

    def reduce(self, op, value):
        scope = self.scope
        axes = [self.last_axis()]
        extra = {"keepdims": 1} if self.rng.random() < 0.7 else {}
        since = 13 if op == "ReduceSum" else 18  # when axes became an input
        if scope.opset >= since:
            if self.rng.random() < 0.3:
                extra["noop_with_empty_axes"] = 0
            return scope.node(op, value, scope.constant(np.asarray(axes, np.int64)), **extra)
        return scope.node(op, value, axes=axes, **extra)

    def last_axis(self):
        return self.rng.choice([-1, -1, self.scope.rank - 1]) if self.scope.knows else -1

    # ---- operands

    def operand(self, role, dtype, op):
        scope, rng = self.scope, self.rng
        if role in ("scale", "row_scale"):
            return scope.weight(dtype, rows_only=role == "row_scale")
        value = {"epsilon": self.epsilon, "length": scope.length,
                 "inverse_length": 1 / scope.length}.get(role, role)
        if op == "Pow" and value == 2 and rng.random() < 0.3:
            dtype = np.dtype(rng.choice(["int64", "float32", "int32"]))
        shape = rng.choice([[], [], [1], [1] * (scope.rank - 1 if scope.knows else 1)])
        return scope.constant(np.full(shape, value, dtype), through=rng.choice(["", "", "", "Identity"]))

    # ---- Casts

    def cast(self, value, dtype):
        if self.scope.types[value] == dtype:
            return value
        return self.scope.node("Cast", value, dtype=dtype, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def widen(self, value):
        """The core's form of a value of the sum's type."""
        if self.casts not in ("early", "late") or self.scope.types[value] != self.dtype:
            return value
        if value not in self.widened or self.two_casts:
            self.widened[value] = self.cast(value, self.core)
        return self.widened[value]

    def maybe_cast(self, value):
        types = self.scope.types
        if types[value].kind != "f":
            return value
        if self.casts == "no_op" and self.rng.random() < 0.3:
            return self.scope.node("Cast", value, dtype=types[value],
                                   to=helper.np_dtype_to_tensor_dtype(types[value]))
        if self.casts == "random" and self.rng.random() < 0.25:
            other = np.dtype("float16" if types[value] == np.float32 else "float32")
            return self.cast(value, other)
        return value
