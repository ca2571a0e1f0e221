# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""What tests on random models share: their options, their failures, smaller failures.

    random_graph_test.py --count 5000 --seed 7 --failures /tmp/found

The models of one seed are the same everywhere; model I of seed S alone is
`--seed S --only I`. Each failure is made smaller and written to the folder
of --failures as ONNX text, ready to become a fixture.
"""

import argparse
import collections
import os
import pathlib
import random
import sys
import unittest

import onnx
import onnx.parser
import onnx.printer

import addnorm
import structure


def options(count):
    """(the options, the rest of the command line)

    ADDNORM_SAMPLES is the share of the models that builds which are slow try.
    """
    count = max(1, round(count * float(os.environ.get("ADDNORM_SAMPLES", "1"))))
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=count, help="how many models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of the one model to try")
    parser.add_argument("--failures", type=pathlib.Path, help="where failing models are written")
    parser.add_argument("--list-missed", action="store_true",
                        help="name the models where a norm stays that the numbers know")
    return parser.parse_known_args()


def main(chosen, rest):
    print(f"seed {chosen.seed}, {chosen.count} models", file=sys.stderr)
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])


class Sampler:
    """Draws models, counts what happened, keeps failures."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.counts = collections.Counter()

    def numbers(self):
        return [self.chosen.only] if self.chosen.only is not None else range(self.chosen.count)

    def generator(self, number):
        return random.Random(f"{self.chosen.seed}/{number}")

    def summary(self):
        return ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))

    def failed(self, number, problem, model, still_fails, directive):
        """A message; the model, made smaller, goes into the folder of failures."""
        message = f"--seed {self.chosen.seed} --only {number}: {problem}"
        folder = self.chosen.failures
        if folder is None:
            return message
        folder.mkdir(parents=True, exist_ok=True)
        small = shrunk(model, still_fails)
        path = folder / f"seed_{self.chosen.seed}_{number}.onnxtxt"
        path.write_text(f"# {problem}\n# PASS: fuse-add-rms-norm\n# {directive}\n{text_of(small)}\n")
        try:
            same = still_fails(onnx.parser.parse_model(path.read_text()))
        except Exception:
            same = False
        if not same:
            path.with_suffix(".onnx").write_bytes(small.SerializeToString())
        return f"{message}\n{path}"


def text_of(model):
    lines = onnx.printer.to_text(model).splitlines()
    return "\n".join(line.rstrip() for line in lines)


# ---- making a failing model smaller -------------------------------------------


def shrunk(model, still_fails, attempts=400):
    """A smaller model that fails too: fewer results, values cut off, nothing unneeded."""
    def fails(candidate):
        nonlocal attempts
        attempts -= 1
        try:
            return attempts >= 0 and still_fails(candidate)
        except Exception:
            return False

    best, progress = model, True
    while progress and attempts > 0:
        progress = False
        for candidate in smaller(best):
            if fails(candidate):
                best, progress = candidate, True
                break
    return best


def smaller(model):
    """Models with one thing less, the largest steps first."""
    outputs = list(model.graph.output)
    for keep in outputs:
        if len(outputs) > 1:
            yield without_unneeded(model, [keep])
    for drop in outputs:
        if len(outputs) > 1:
            yield without_unneeded(model, [o for o in outputs if o is not drop])
    types = {v.name: v for v in inferred(model)}
    for node in reversed(model.graph.node):
        for name in node.output:
            if name in types and node.op_type != "Constant":
                yield cut(model, node, types[name])
    tidy = without_unneeded(model, outputs)
    if len(tidy.SerializeToString()) < len(model.SerializeToString()):
        yield tidy


def inferred(model):
    try:
        return onnx.shape_inference.infer_shapes(model).graph.value_info
    except Exception:
        return []


def cut(model, node, value):
    """A node's result becomes an input of the graph."""
    copy = structure.with_nodes(model, [n for n in model.graph.node if n is not node])
    copy.graph.input.append(value)
    return without_unneeded(copy, list(copy.graph.output))


def without_unneeded(model, outputs):
    """Without what these results do not need."""
    needed, kept = {o.name for o in outputs}, []
    for node in reversed(structure.in_order(model.graph.node)):
        if needed & set(node.output):
            kept.append(node)
            needed.update(structure.reads(node))
    copy = structure.with_nodes(model, [n for n in model.graph.node if any(n is k for k in kept)])
    wanted = {o.name for o in outputs}
    keep_fields(copy.graph, "output", wanted)
    keep_fields(copy.graph, "initializer", needed)
    keep_fields(copy.graph, "input", needed)
    keep_fields(copy.graph, "value_info", {o for n in kept for o in n.output} - wanted)
    called = {(n.domain, n.op_type) for n in addnorm.all_nodes(copy)}
    functions = [f for f in copy.functions if (f.domain, f.name) in called]
    copy.ClearField("functions")
    copy.functions.extend(functions)
    return copy


def keep_fields(graph, field, names):
    kept = [f for f in getattr(graph, field) if f.name in names]
    graph.ClearField(field)
    getattr(graph, field).extend(kept)
