# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Files cut off anywhere, with a bit flipped, with another length: no crash, no silent difference.

Options are in sweeping.py. A mutation may leave a valid model. So exit 0 of `optimize` demands that the
output is a model and either the input's bytes or, with our functions inlined
by the onnx package, the same operators; and exit 0 of `run` that the sum is
the one of what NumPy or the onnx package read. Any other end is exit 3 (4 where
a mutation names another data file) with one line. Each run takes under 1 s of
CPU and under 256 MiB.
"""

import collections
import contextlib
import io
import os
import pathlib
import signal
import sys
import tempfile
import unittest
import warnings

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

import addnorm
import fault_scenarios
import fault_server
import meaning
import mutations
from sweeping import OPTIONS, REST, part, sample

MOST_KIB = 256 << 10
MOST_SECONDS = 1.0
MOST_KIB_RUN = 1 << 20  # where the model is executed
MOST_SECONDS_RUN = 5.0
ADDRESS_SPACE = 1 << 30  # so that a wrong length cannot take the machine down
SMALL = ["graphs/site_in_loop.onnxtxt", "graphs/site_in_function.onnxtxt"]
SITE = addnorm.ROOT / "tests/fixtures/operands/plain.onnxtxt"
VERIFY = "ask verify"
RESIDUAL = np.linspace(0, 1, 8, dtype=np.float32).reshape(1, 2, 4)


def run_problem(done, codes):
    """What no input may do; None if nothing."""
    if done.signal:
        return f"died of {signal.Signals(done.signal).name}: {done.stderr!r}"
    if done.peak_kib > MOST_KIB or "out of memory" in done.stderr:
        return f"took {done.peak_kib} KiB: {done.stderr!r}"
    if done.cpu_seconds > MOST_SECONDS:
        return f"took {done.cpu_seconds} s of CPU"
    if done.exit_code == 0:
        return None
    if done.exit_code not in codes:
        return f"exit {done.exit_code}, expected {codes}: {done.stderr!r}"
    return fault_scenarios.message_problem(done.stderr)


def output_problem(before, after):
    """What is wrong with the output for the input; None if it is the same model, perhaps with fused sites."""
    if before == after:
        return None
    old, new = parsed(before), parsed(after)
    if old is None or new is None:
        return f"protobuf refuses {'the input' if old is None else 'the output'}"
    if not addnorm.fused_nodes(new):
        return "nothing is fused, and the bytes differ"
    if is_odd(old):
        return VERIFY
    return meaning.difference(old, new)


def parsed(data):
    try:
        return onnx.ModelProto.FromString(data)
    except Exception:
        return None


def is_odd(model):
    """Whether Python's packages cannot tell the model from another: an attribute has no type or no value."""
    if any(not a.type for n in addnorm.all_nodes(model) for a in n.attribute):
        return True
    try:
        return bool(meaning.difference(model, model))
    except Exception:
        return True


def array_problem(read, outputs, undamaged, other):
    """`run` took an input that `read` makes an array of: then s = residual + branch.

    NumPy is stricter with what has no meaning (padding, a minor version): then
    nothing else may have changed.
    """
    try:
        array = read()
    except Exception:
        array = undamaged
    with np.errstate(all="ignore"):
        wanted = array + other
    have = np.load(outputs / "s.npy")
    same = have.dtype == wanted.dtype and np.array_equal(have, wanted, equal_nan=True)
    return None if same else "the sum is not that of what Python reads"


def read_tensor(path):
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


class PrefixMutationTest(unittest.TestCase):
    counts = collections.Counter()

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.stack = contextlib.ExitStack()
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory(dir=fault_scenarios.fast_folder()))
        cls.folder = pathlib.Path(folder)
        cls.server = cls.stack.enter_context(fault_server.Server(folder))
        (cls.folder / "models").mkdir()
        fault_scenarios.write_model(cls.folder / "models/model.onnx", ("w.bin", "sub/other.bin"))
        cls.models = {"external data": (cls.folder / "models/model.onnx").read_bytes()}
        for path in SMALL:
            text = (addnorm.ROOT / "tests/fixtures" / path).read_text()
            cls.models[path] = onnx.parser.parse_model(text).SerializeToString()
        for path in sorted((addnorm.ROOT / "models").glob("*.onnx")):
            cls.models[path.name] = path.read_bytes()

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()
        counted = ", ".join(f"{count} {name}" for name, count in sorted(cls.counts.items()))
        print(f"\n{counted}; lost: {cls.counts['lost']}", file=sys.stderr)

    def sweep(self, made, name, attempt):
        problems = []
        for about, make in made:
            self.counts[name] += 1
            found = attempt(make())
            if found:
                problems.append(f"{about}: {found}")
        if problems:
            shown = problems if OPTIONS.all else problems[:20]
            self.fail(f"{len(problems)} problems\n" + "\n".join(shown))

    # ---- models

    def optimize(self, data):
        source, target = self.folder / "models/model.onnx", self.folder / "models/out.onnx"
        source.write_bytes(data)
        target.unlink(missing_ok=True)
        done = self.server.run(["optimize", source, target], memory=ADDRESS_SPACE, seconds=30)
        if source.read_bytes() != data:
            self.counts["lost"] += 1
            return "the input has changed"
        rest = set(os.listdir(source.parent)) - {"model.onnx", "w.bin", "sub"}
        if rest != ({"out.onnx"} if done.exit_code == 0 else set()):
            return f"exit {done.exit_code} left {sorted(rest)}"
        found = run_problem(done, [3, 4])
        if found or done.exit_code != 0:
            return found
        self.counts["accepted"] += 1
        found = output_problem(data, target.read_bytes())
        return self.verify(source, target) if found == VERIFY else found

    def verify(self, source, target):
        """For what Python cannot compare. An invalid model may have attributes that nobody can."""
        done = self.server.run(["verify", source, target, "--structure-only", "--require-proof"])
        if done.exit_code == 0:
            return None
        if b"of a kind that is not compared" in done.stdout and addnorm.checker_complaint(onnx.load(source)):
            self.counts["accepted, not comparable"] += 1
            return None
        return f"verify: {done.stdout} {done.stderr}"

    def test_the_models_as_they_are(self):
        for name, data in self.models.items():
            with self.subTest(name):
                self.assertIsNone(self.optimize(data))
                self.assertNotEqual((self.folder / "models/out.onnx").read_bytes(), data)

    def test_prefixes_of_models(self):
        for name, data in self.models.items():
            with self.subTest(name):
                # Most of a large model's are cut in a payload: a part of them tells as much.
                most = None if len(data) < 10_000 else 2_000
                self.sweep(sample(mutations.prefixes(data), 200, most), "prefixes", self.optimize)

    def test_flipped_bits_of_a_model(self):
        flips = mutations.flips(self.models["external data"])
        self.sweep(sample(flips, 700), "mutations", self.optimize)

    def test_other_lengths_in_models(self):
        for name, data in self.models.items():
            with self.subTest(name):
                most = None if len(data) < 10_000 else 2_000
                self.sweep(sample(mutations.with_lengths(data), 200, most), "mutations", self.optimize)

    # ---- models that are run

    def test_changed_bytes_of_models_that_are_run(self):
        """No crash, whatever the model computes then; more time and memory than for the files alone."""
        models = sorted(self.runnable(), key=len)[:150]
        self.sweep(sample(mutations.with_bytes(models, 2_000, OPTIONS.seed), 300), "mutations", self.run_and_verify)

    def runnable(self):
        """The models of the fixtures, and the smaller ones of models/."""
        for path in sorted((addnorm.ROOT / "tests/fixtures").rglob("*.onnxtxt")):
            yield onnx.parser.parse_model(path.read_text()).SerializeToString()
        yield from (path.read_bytes() for path in (addnorm.ROOT / "models").glob("*.onnx"))

    def run_and_verify(self, data):
        path = self.folder / "run.onnx"
        path.write_bytes(data)
        for command, codes in (["run", path, "--threads", "1"], {0, 3, 4}), (["verify", path, path], {0, 1, 3, 4}):
            done = self.server.run(command, memory=4 << 30, seconds=30)
            if done.signal:
                return f"{command[0]} died of {signal.Signals(done.signal).name}: {done.stderr!r}"
            if done.exit_code not in codes:
                return f"{command[0]}: exit {done.exit_code}: {done.stderr!r}"
            if done.cpu_seconds > MOST_SECONDS_RUN or done.peak_kib > MOST_KIB_RUN:
                return f"{command[0]} took {done.cpu_seconds} s of CPU and {done.peak_kib} KiB"
        return None

    # ---- inputs of run

    def run_with(self, name, read):
        """A function that tries the bytes as the input `residual`."""
        inputs, outputs = self.folder / "given", self.folder / "made"
        fault_scenarios.empty(inputs)
        other = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 2, 4)
        np.save(inputs / "branch.npy", other)
        (self.folder / "site.onnx").write_bytes(onnx.parser.parse_model(SITE.read_text()).SerializeToString())

        def attempt(data):
            fault_scenarios.empty(outputs)
            (inputs / name).write_bytes(data)
            done = self.server.run(["run", "site.onnx", "--inputs", "given", "--outputs", "made", "--format", "npy",
                                    "--threads", "1"], memory=ADDRESS_SPACE, seconds=30)
            found = run_problem(done, [3, 4])
            if found or done.exit_code != 0:
                return found or ("left outputs" if any(outputs.iterdir()) else None)
            self.counts["accepted"] += 1
            return array_problem(lambda: read(inputs / name), outputs, RESIDUAL, other)

        return attempt

    def test_npy_inputs(self):
        buffer = io.BytesIO()
        np.save(buffer, RESIDUAL)
        data = buffer.getvalue()
        attempt = self.run_with("residual.npy", lambda path: np.load(path, allow_pickle=False))
        self.assertIsNone(attempt(data))
        self.sweep(sample(mutations.prefixes(data), 100), "prefixes", attempt)
        self.sweep(sample(mutations.flips(data), 250), "mutations", attempt)
        header = int.from_bytes(data[8:10], "little")
        for number in part((0, 1, header - 1, header + 1, 2**15, 2**16 - 1)):
            other = data[:8] + number.to_bytes(2, "little") + data[10:]
            self.sweep([(f"header length {number}", lambda: other)], "mutations", attempt)

    def test_pb_inputs(self):
        data = numpy_helper.from_array(RESIDUAL, "residual").SerializeToString()
        attempt = self.run_with("input_0.pb", read_tensor)
        self.assertIsNone(attempt(data))
        self.sweep(sample(mutations.prefixes(data), 100), "prefixes", attempt)
        self.sweep(sample(mutations.flips(data), 250), "mutations", attempt)
        self.sweep(sample(mutations.with_lengths(data), 100), "mutations", attempt)


if __name__ == "__main__":
    fault_server.exit_unless_here()
    unittest.main(argv=[sys.argv[0], *REST])
