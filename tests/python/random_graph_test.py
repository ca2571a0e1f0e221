# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Sites hidden in random graphs: all of them are found, nothing else is, no bit changes.

See random_graph.py for the graphs and sampling.py for the options.
"""

import tempfile
import unittest
import warnings

import numpy as np
import onnx.numpy_helper

import addnorm
import meaning
import norm_oracle
import oracle_test
import random_graph
import roundings
import sampling
import spelled
import structure

SIZES = {"tokens": 3, "batch": 2, "heads": 2, "seq": 3}
CHOSEN, REST = sampling.options(count=1000)


def feeds_for(model, special, seed):
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(value)
        for dim in copy.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = SIZES[dim.dim_param]
        feeds[value.name] = oracle_test.array_for(copy, rng, special)
    return feeds


def optimised(model):
    with tempfile.TemporaryDirectory() as folder:
        return addnorm.optimize(model, folder)


def fused_sums(report):
    return sorted(site["sum"] for site in report["sites"] if site["verdict"] == "fused")


class RandomGraphTest(unittest.TestCase):
    sampler = sampling.Sampler(CHOSEN)
    used = set()

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")

    @classmethod
    def tearDownClass(cls):
        print(f"\nseed {CHOSEN.seed}: {cls.sampler.summary()}, rows used {len(cls.used)}")

    def test_hidden_sites_are_fused(self):
        for number in self.sampler.numbers():
            maker = random_graph.Maker(self.sampler.generator(number))
            self.used |= maker.used
            with self.subTest(number=number, opset=maker.opset):
                self.check(number, maker)
        if CHOSEN.count >= 600 and CHOSEN.only is None:
            rows = {f"{rule}/{row['name']}" for rule, found in spelled.rows().items() for row in found}
            self.assertEqual(self.used, rows)

    def check(self, number, maker):
        model, counts = maker.model, self.sampler.counts
        fused, report = optimised(model)
        counts["models"] += 1
        counts["sites"] += len(maker.sites)
        self.assertEqual(sorted(set(fused_sums(report)) - set(maker.sites)), [])
        for name in sorted(set(maker.sites) - set(fused_sums(report))):
            reasons = [s["reason"] for s in report["sites"] if s.get("sum") == name and "reason" in s]
            if any("ONNX Runtime would" in reason for reason in reasons):
                counts["sites kept for ONNX Runtime"] += 1
                maker.sites.remove(name)
                continue
            self.fail(self.sampler.failed(
                number, f"{name} is not fused: {reasons}", model, lambda m: stays(m, name), "FUSED: 1"))
        self.assertEqual(len(addnorm.fused_nodes(fused)), len(maker.sites))
        problem = other_meaning(model, fused, counts)
        if problem:
            self.fail(self.sampler.failed(
                number, problem, model,
                lambda m: other_meaning(m, optimised(m)[0]), f"FUSED: {len(maker.sites)}"))


def stays(model, total):
    """Whether the sum is made in the main graph, has a norm there, and is not fused."""
    made = any(total in n.output for n in model.graph.node)
    if not made:
        return any(total in n.output for n in addnorm.all_nodes(model)) and (
            total not in fused_sums(optimised(model)[1]))
    oracle = norm_oracle.Oracle(
        structure.with_nodes(model, structure.in_order(model.graph.node)),
        lambda v: [d.dim_value or SIZES[d.dim_param] for d in v.type.tensor_type.shape.dim])
    return bool(oracle.norms_of(total)) and total not in fused_sums(optimised(model)[1])


def other_meaning(model, fused, counts=None):
    """What the fused model does in another way; None if nothing."""
    if problem := meaning.difference(model, fused):
        return problem
    for special in (False, True):
        feeds = feeds_for(model, special, 1)
        for judge, name, can in [(meaning.same_in_reference, "reference evaluator", addnorm.is_in_reference),
                                 (roundings.same_in_onnxruntime, "ONNX Runtime", addnorm.is_in_onnxruntime)]:
            same = judge(model, fused, feeds) if can(model) else None
            if counts is not None:
                counts[name + (" cannot run it" if same is None else " runs")] += 1
            if same is False:
                return f"{name}: bits differ"
    return None


if __name__ == "__main__":
    sampling.main(CHOSEN, REST)
