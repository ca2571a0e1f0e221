# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""The same sites are fused, whatever things are called and however they are stored.

For the models in models/, for the fixtures, for generated decoders and for random
graphs. Also: what is fused once is not fused again, and not a byte of it changes.
"""

import pathlib
import random
import tempfile
import unittest

import onnx
import onnx.external_data_helper
import onnx.parser

import addnorm
import generate
import random_graph
import rewrites
import sampling

# Of its two sites one can be fused; which one, the order of the nodes decides.
ORDER_DECIDES = "acyclic_alone"
# Shapes follow from elements of tensors, and those of data files are not read for it.
SHAPE_IN_DATA = "shapes_differ_inferred"
CHOSEN, REST = sampling.options(count=40)


def models(sampler):
    """(name, model) of all that the tests go through."""
    for path in sorted((addnorm.ROOT / "models").glob("*.onnx")):
        yield path.name, onnx.load(path)
    for path in sorted((addnorm.ROOT / "tests/fixtures").rglob("*.onnxtxt")):
        if path.parent.name != "not_yet":
            yield path.stem, onnx.parser.parse_model(path.read_text())
    for number in sampler.numbers():
        rng = sampler.generator(number)
        yield f"decoder {number}", generate.build(generate.Spelling.random(rng), 2, number)
        yield f"graph {number}", random_graph.Maker(rng).model


def sites_of(report, names=None):
    """(sum, op) of each fused site; the names as they were before renaming."""
    return sorted(((names or {}).get(site["sum"], site["sum"]), site["op"])
                  for site in report["sites"] if site["verdict"] == "fused")


def fused_before(model):
    return len(addnorm.fused_nodes(model))


class InvarianceTest(unittest.TestCase):
    sampler = sampling.Sampler(CHOSEN)

    @classmethod
    def setUpClass(cls):
        cls.all, cls.refused = [], []
        for name, model in models(cls.sampler):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    fused, report = addnorm.optimize(model, folder)
                except AssertionError as error:
                    cls.refused.append(f"{name}: {error}")
                    continue
            cls.all.append((name, model, fused, report))
            cls.sampler.counts["models"] += 1
            cls.sampler.counts["sites"] += report["fused"]

    @classmethod
    def tearDownClass(cls):
        print(f"\nseed {CHOSEN.seed}: {cls.sampler.summary()}")

    def compare(self, rewrite, same_ops=True):
        for name, model, _, report in self.all:
            rng = random.Random(f"{CHOSEN.seed}/{name}")
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                changed = rewrite(model, rng)
                changed, names = changed if isinstance(changed, tuple) else (changed, None)
                fused, found = addnorm.optimize(changed, folder)
                expected, got = sites_of(report), sites_of(found, names)
                if not same_ops and name == ORDER_DECIDES:
                    expected, got = len(expected), len(got)
                elif not same_ops:
                    expected, got = [s for s, _ in expected], [s for s, _ in got]
                stays = [s for s in found["sites"] if s["verdict"] != "fused"]
                self.assertEqual(got, expected, stays)
                self.assertEqual(len(addnorm.fused_nodes(fused)), report["fused"] + fused_before(model))
                self.sampler.counts["rewritten models"] += 1

    def test_every_model_is_read(self):
        self.assertEqual(self.refused, [])

    def test_names_do_not_matter(self):
        self.compare(rewrites.renamed)

    def test_the_order_of_nodes_does_not_matter(self):
        self.compare(rewrites.resorted, same_ops=False)

    def test_nodes_need_no_order(self):
        self.compare(rewrites.shuffled, same_ops=False)

    def test_commuted_operands_do_not_matter(self):
        self.compare(rewrites.commuted, same_ops=False)

    def test_constant_nodes_are_as_good_as_initializers(self):
        self.compare(rewrites.with_constant_nodes)

    def test_initializers_are_as_good_as_constant_nodes(self):
        self.compare(rewrites.with_initializers)

    def test_the_place_of_data_does_not_matter(self):
        for name, model, _, report in self.all:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                external = rewrites.with_raw_data(model)
                onnx.external_data_helper.convert_model_to_external_data(
                    external, location="weights.bin", size_threshold=0)
                source, target = pathlib.Path(folder, "in.onnx"), pathlib.Path(folder, "out.onnx")
                onnx.save(external, source)
                done = addnorm.run("optimize", source, target, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                found = onnx.load(target, load_external_data=False)
                if name != SHAPE_IN_DATA:
                    self.assertEqual(len(addnorm.fused_nodes(found)),
                                     report["fused"] + fused_before(model), done.stdout)
                    self.sampler.counts["models with external data"] += 1

    def test_once_is_enough(self):
        for name, _, fused, report in self.all:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                source, target = pathlib.Path(folder, "in.onnx"), pathlib.Path(folder, "out.onnx")
                source.write_bytes(fused.SerializeToString())
                again, found = addnorm.optimize(source, folder)
                self.assertEqual(found["fused"], 0)
                self.assertEqual(found["already_fused"], report["fused"] + report["already_fused"])
                self.assertEqual(target.read_bytes(), source.read_bytes())


if __name__ == "__main__":
    sampling.main(CHOSEN, REST)
