# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""No result and no verdict depends on the SIMD target or on the number of threads.

Models are run, and verified after they were optimised, on every target that this
machine has, with 1 and 4 threads: the bits of outputs and the reports must be the
same. The models of models/, and some of ../shared/corpus if it is there; with
--all every one of it.
"""

import collections
import json
import pathlib
import random
import re
import sys
import tempfile
import unittest

import addnorm

THREADS = (1, 4)
SAMPLE = 5
ALL = "--all" in sys.argv


def targets():
    """What the refusal of a wrong name lists."""
    done = addnorm.run("run", "model.onnx", "--simd", "NONE")
    assert done.returncode == 2, done.stderr
    return re.search(r"\{(.*)\}", done.stderr).group(1).split(",")


def models():
    """[(model, folder of inputs or None)]"""
    found = [(path, None) for path in sorted((addnorm.ROOT / "models").glob("*.onnx"))]
    folders = sorted(path.parent for path in (addnorm.SHARED / "corpus").glob("*/model.onnx"))
    if not ALL:
        folders = random.Random(1).sample(folders, min(SAMPLE, len(folders)))
    return found + [(folder / "model.onnx", inputs if (inputs := folder / "test_data_set_0").exists() else None)
                    for folder in folders]


def ways():
    return [["--simd", target, "--threads", str(threads)] for target in targets() for threads in THREADS]


def outputs(model, inputs, way):
    """The bytes of all outputs, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        done = addnorm.run("run", model, "--outputs", folder, *(["--inputs", inputs] if inputs else []), *way)
        if done.returncode != 0:
            return done.stderr
        return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def verdict(original, fused, way):
    """The report, without what says how it was made."""
    done = addnorm.run("verify", original, fused, "--rounds", "1", "--json", *way)
    report = json.loads(done.stdout)
    report.pop("command", None)
    # Not with every model, by how long a round takes.
    report["run"].pop("only_weights_shared", None)
    kernels = report["kernels"]
    if kernels["compared"]:
        kernels["words"] = [result.pop("comparison")["different"] for result in kernels["results"]]
        assert kernels.pop("targets") == [way[1]], way
    return report


class SimdTest(unittest.TestCase):
    def test_all_targets_and_threads_give_the_same(self):
        counts = collections.Counter()
        for model, inputs in models():
            with self.subTest(model), tempfile.TemporaryDirectory() as folder:
                results = [outputs(model, inputs, way) for way in ways()]
                self.assertTrue(all(result == results[0] for result in results))
                counts["run" if isinstance(results[0], dict) else "not run"] += 1
                fused = pathlib.Path(folder, "out.onnx")
                done = addnorm.run("optimize", model, fused, "--data=copy")
                self.assertEqual(done.returncode, 0, done.stderr)
                reports = [verdict(model, fused, way) for way in ways()]
                for way, report in zip(ways(), reports):
                    self.assertEqual(report, reports[0], way)
                counts[reports[0]["verdict"]] += 1
        print(f"{len(ways())} ways: {dict(counts)}", file=sys.stderr)
        self.assertGreater(counts["run"], 0)
        self.assertEqual(counts["proven"], len(models()))

    def test_the_scalar_target_is_there(self):
        self.assertEqual(targets()[-1], "SCALAR")
        self.assertEqual(len(set(targets())), len(targets()))

    def test_a_target_that_is_none_is_a_usage_error(self):
        model = addnorm.ROOT / "models/prenorm-rmsnormalization-f32.onnx"
        for arguments in (["run", model], ["verify", model], ["bench", model]):
            done = addnorm.run(*arguments, "--simd", "AVX9")
            self.assertEqual(done.returncode, 2)
            self.assertIn("AVX9", done.stderr)
            self.assertIn(",".join(targets()), done.stderr)

    def test_the_target_is_what_computes(self):
        done = addnorm.run("bench", "--kernel", "--shapes", "1x64", "--types", "f32", "--caches", "warm", "--seconds",
                           "0.01", "--simd", "scalar", "--json", "--threads", "1")
        self.assertEqual(json.loads(done.stdout)["machine"]["simd"], "SCALAR", done.stderr)

    def test_the_command_that_repeats_a_verification_names_it(self):
        model = addnorm.ROOT / "models/prenorm-rmsnormalization-f32.onnx"
        report = json.loads(addnorm.run("verify", model, model, "--simd", "scalar", "--json").stdout)
        self.assertIn("--simd SCALAR", report["command"])


if __name__ == "__main__":
    if ALL:
        sys.argv.remove("--all")
    unittest.main()
