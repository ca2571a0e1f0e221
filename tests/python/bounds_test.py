# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""What small models may ask for: memory that is not there, years of work, crowds of nodes in one place.

Memory: one line and exit 4, with nothing allocated. Time: runs are unlimited,
but end with the signal that ends them, and calls that expand to years are
refused. Crowds (crowds.py): time that grows with the model, not with its square.
"""

import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time
import unittest

import onnx.parser

import addnorm
import crowds

HEAD = '<ir_version: 8, opset_import: ["" : 18, "my" : 1]> '
CROWD = 5_000
MOST_SECONDS = 10.0  # of CPU, for a crowd: up to 2 are usual; what is quadratic takes more
MOST_SIGNAL_SECONDS = 1.0  # a loaded machine's; 0.01 are usual


def physical_bytes():
    words = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return sum(int(words[name].split()[0]) for name in ("MemTotal", "SwapTotal")) << 10


def die_first():
    """In the child: if the kernel must kill a process, then this one."""
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")


class BoundsTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def save(self, text):
        path = self.folder / "m.onnx"
        path.write_bytes(onnx.parser.parse_model(HEAD + text).SerializeToString())
        return path

    # ---- memory

    def check_refused(self, path, *options):
        for command in (["run", path], ["verify", path, path]):
            done = addnorm.run(*command, *options, preexec_fn=die_first)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertRegex(done.stderr, r"error: .*no memory for float\[.*\]: \d+ bytes are needed, \d+ are left\n")
            self.assertLess(done.stderr.count("\n"), 3)

    def test_a_value_as_large_as_all_memory_is_refused(self):
        """Linux promises it: less than all, and more than there is beside the system itself."""
        count = (physical_bytes() - (64 << 20)) // 4
        path = self.save(f"g (float[1] x) => (y) <int64[1] n = {{{count}}}> {{ [big] y = Expand(x, n) }}")
        self.check_refused(path)
        self.assertIn("Expand 'big': output 'y': no memory", addnorm.run("run", path, preexec_fn=die_first).stderr)

    def test_a_weight_as_large_as_all_memory_is_refused(self):
        count = (physical_bytes() - (64 << 20)) // 4
        with open(self.folder / "w.bin", "wb") as file:
            file.truncate(4 * count)
        path = self.save(f'g (float[1] x) => (y) <float[{count}] w = ["location": "w.bin"]> {{ y = Add(x, w) }}')
        done = addnorm.run("run", path, preexec_fn=die_first)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, r"no memory for the weight 'w': \d+ bytes are needed, \d+ are left\n")

    def test_inputs_that_dims_make_too_large_are_refused(self):
        path = self.save("g (float[n] x) => (float[n] y) { y = Neg(x) }")
        self.check_refused(path, "--dim", f"n={1 << 50}")
        done = addnorm.run("bench", addnorm.ROOT / "models/llama-torchscript-f32.onnx", "--dim",
                           f"sequence_length={1 << 40}", preexec_fn=die_first)
        self.assertEqual(done.returncode, 4, done.stderr)

    # ---- time

    def test_calls_that_double_sixty_times_are_refused(self):
        text = "g (float[2] x) => (y) { y = my.F0(x) }"
        for i in range(60):
            text += (f'<domain: "my", opset_import: ["" : 18, "my" : 1]> '
                     f"F{i} (a) => (r) {{ p = my.F{i + 1}(a) r = my.F{i + 1}(p) }}")
        path = self.save(text + '<domain: "my", opset_import: ["" : 18]> F60 (a) => (r) { r = Neg(a) }')
        done = addnorm.run("run", path)
        self.assertEqual(done.returncode, 3, done.stderr)
        # F60 has one node, F59 two calls and what they expand to, …: 3 * 2^k - 2.
        self.assertIn(f"function 'my::F38': calls expand to {3 * 2**22 - 2} nodes, expected at most 10000000\n",
                      done.stderr)
        proven = addnorm.run("verify", path, path)
        self.assertEqual(proven.returncode, 0, proven.stderr)

    def ends_at_once(self, *arguments):
        with subprocess.Popen([addnorm.BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.folder) as process:
            time.sleep(0.5)
            self.assertIsNone(process.poll(), "it is to run for long")
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=60)
            self.assertLess(time.monotonic() - start, MOST_SIGNAL_SECONDS)
        self.assertEqual((process.returncode, out), (-signal.SIGINT, b""))
        self.assertEqual(sorted(os.listdir(self.folder)), ["m.onnx"])

    def test_a_signal_ends_a_loop(self):
        path = self.save("""g (float[2] x) => (y) <int64 n = {4611686018427387904}> {
            y = Loop<body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
                d = Identity(c) w = Neg(v) }>(n, , x) }""")
        self.ends_at_once("run", path, "--outputs", self.folder / "out")
        self.ends_at_once("verify", path, path)

    def test_a_signal_ends_one_long_operator(self):
        path = self.save("""g (float[1] x) => (y) <int64[2] n = {20000, 20000}> {
            a = ConstantOfShape(n) y = MatMul(a, a) }""")
        self.ends_at_once("run", path, "--outputs", self.folder / "out")

    # ---- crowds

    def seconds(self, *arguments):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = addnorm.run(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(done.returncode, 0, done.stderr)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def test_time_grows_with_crowds_and_not_with_their_square(self):
        path, fused = self.folder / "m.onnx", self.folder / "fused.onnx"
        for name, make in crowds.CROWDS.items():
            path.write_bytes(make(CROWD).SerializeToString())
            for command in (["optimize", path, fused, "--force"], ["inspect", path], ["verify", path, fused]):
                with self.subTest(f"{command[0]}: {name}"):
                    self.assertLess(self.seconds(*command), MOST_SECONDS)


if __name__ == "__main__":
    unittest.main()
