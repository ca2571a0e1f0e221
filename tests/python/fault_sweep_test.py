# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Every call that can fail does fail, once and for good, in turn; nothing may be lost.

    fault_sweep_test.py                  a sample, seeded
    fault_sweep_test.py --all            every fault (tests/sweep.sh)
    fault_sweep_test.py --folder DIR     on DIR's file system, not on /dev/shm

After each run: exit 0 only with all outputs complete and equal to those of a
run without a fault; else the right code and one line that says why; inputs and
previous outputs as they were, bytes and times; and no other file.
"""

import argparse
import collections
import contextlib
import dataclasses
import errno
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import onnx
import onnx.external_data_helper
import onnx.parser
from onnx import numpy_helper

import addnorm
import fault_server
from fault_server import Fault

_PARSER = argparse.ArgumentParser()
_PARSER.add_argument("--all", action="store_true", help="every fault, not a sample")
_PARSER.add_argument("--seed", type=int, default=1, help="of the sample and of the moments of signals")
_PARSER.add_argument("--folder", help="where files are written")
OPTIONS, REST = _PARSER.parse_known_args()

# What each kind of call may say. EINTR and what has another way must not be
# seen by the user at all.
ERRORS = {
    "open": ["EACCES", "EMFILE", "ENFILE", "ENOMEM", "EIO", "ENOSPC", "EROFS", "EDQUOT", "EINTR", "ENOENT"],
    "openat": ["EACCES", "EMFILE", "EIO", "ENOMEM"],
    "openat2": ["EACCES", "EMFILE", "EIO", "ENOMEM", "ENOSYS", "EPERM", "EAGAIN"],
    "read": ["EIO", "EINTR", "EAGAIN"],
    "pread": ["EIO", "EINTR", "ENOMEM", "ESTALE"],
    "write": ["ENOSPC", "EIO", "EDQUOT", "EFBIG", "EINTR"],
    "pwrite": ["ENOSPC", "EIO", "EDQUOT", "EFBIG", "EINTR"],
    "fsync": ["EIO", "ENOSPC", "EDQUOT"],
    "rename": ["EACCES", "ENOSPC", "EROFS", "EIO", "EDQUOT", "EBUSY"],
    "link": ["EACCES", "ENOSPC", "EROFS", "EIO", "EDQUOT", "EMLINK", "EPERM"],
    "ftruncate": ["EIO", "ENOSPC", "EFBIG", "EINTR"],
    "fallocate": ["ENOSPC", "EIO", "EFBIG", "EDQUOT", "EOPNOTSUPP", "ENOSYS", "EINTR"],
    "mmap": ["ENOMEM", "EACCES"],
    "stat": ["EIO", "EACCES", "ENOMEM", "EOVERFLOW"],
    "fcntl": ["EMFILE"],
    "close": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "mkdir": ["ENOSPC", "EACCES", "EROFS", "EDQUOT", "EIO"],
    "memfd_create": ["EMFILE", "ENFILE", "ENOMEM"],
    "fchmod": ["EIO", "EPERM", "EROFS"],
    "opendir": ["EMFILE", "EACCES", "ENOMEM", "EIO"],
    "readlink": ["EIO", "EACCES"],
    "lseek": ["EINVAL"],
    "thread": ["EAGAIN"],
}
MOST = 10_000  # faults of a kind in a scenario, with --all
TRANSFERS = ["read", "pread", "write", "pwrite"]
OLD = b"the previous output"
OLD_TIME = 1_000_000_000 * 10**9  # nanoseconds; long ago

MODEL = """<ir_version: 10, opset_import: ["" : 18]>
main_graph (float[batch,1024] residual, float[batch,1024] branch)
  => (float[batch,1024] y, float[batch,1024] s, float[batch,1024] z)
<float two = {2.0}, float eps = {1e-6}, int64[1] last = {-1}>
{
  s = Add(residual, branch)
  square = Pow(s, two)
  mean = ReduceMean<keepdims = 1, noop_with_empty_axes = 0>(square, last)
  mean_eps = Add(mean, eps)
  root = Sqrt(mean_eps)
  inverse = Reciprocal(root)
  normed = Mul(s, inverse)
  y = Mul(normed, weight)
  z = Mul(y, other)
}"""


def model(external=()):
    """Two weights of 4 KiB; `external` names their data files."""
    result = onnx.parser.parse_model(MODEL)
    values = np.random.default_rng(1).normal(1, 0.1, (2, 1024)).astype(np.float32)
    for name, array in zip(("weight", "other"), values):
        result.graph.initializer.append(numpy_helper.from_array(array, name))
    for tensor, location in zip(result.graph.initializer[-2:], external):
        onnx.external_data_helper.set_external_data(tensor, location, 0, 4096)
    return result


def write_model(folder, external=()):
    proto = model(external)
    for tensor, location in zip(proto.graph.initializer[-2:], external):
        path = folder / location
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(proto.SerializeToString())


def facts(folder):
    """What must not change: names, bytes, modes, times, and which file it is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        about = (state.st_ino, state.st_mode, state.st_mtime_ns) if not path.is_dir() else ("folder",)
        found[path.relative_to(folder).as_posix()] = (*about, path.read_bytes() if path.is_file() else b"")
    return found


def contents(folder):
    return {name: fact[-1] for name, fact in facts(folder).items()}


@dataclasses.dataclass
class Scenario:
    """A command on `in/` that writes to `out/`; `previous`: what is in out/ before, as OLD."""
    name: str
    arguments: list
    external: tuple = ()
    previous: tuple = ()
    beside: bool = False  # the output goes to in/
    direct: bool = False  # the output is standard output
    stdin: str = "/dev/null"

    @property
    def copies(self):
        """Whether the output gets copies of data files."""
        return self.arguments[0] == "optimize" and bool(self.external) and not self.beside


# Defects that are known and open: problems that match are counted, and fail nothing. A line goes with its defect.
KNOWN = [
    # A file system that fails while verify runs the models makes them "not comparable".
    re.compile(r"verify; .*: exit 3, expected \[4\]: 'error: the models cannot be compared"),
]

COPIED = ("w.bin", "sub/other.bin")
SCENARIOS = [
    Scenario("optimize", ["optimize", "in/model.onnx", "out/fused.onnx"]),
    Scenario("optimize --force", ["optimize", "in/model.onnx", "out/fused.onnx", "--force"], previous=("fused.onnx",)),
    Scenario("optimize, shared data", ["optimize", "in/model.onnx", "in/fused.onnx"], external=COPIED, beside=True),
    Scenario("optimize, copied data", ["optimize", "in/model.onnx", "out/fused.onnx"], external=COPIED),
    Scenario("optimize --force, copied data", ["optimize", "in/model.onnx", "out/fused.onnx", "--force"],
             external=COPIED, previous=("fused.onnx",)),
    Scenario("optimize - -", ["optimize", "-", "-", "--quiet"], direct=True, stdin="in/model.onnx"),
    Scenario("run", ["run", "in/model.onnx", "--inputs", "in/data", "--outputs", "out/to", "--threads", "3"],
             external=COPIED),
    Scenario("run --force", ["run", "in/model.onnx", "--inputs", "in/data", "--outputs", "out", "--format", "npy",
                             "--force", "--threads", "1"], previous=("s.npy", "y.npy", "z.npy")),
    Scenario("verify", ["verify", "in/model.onnx", "in/model.onnx", "--threads", "2"], external=COPIED),
    Scenario("inspect", ["inspect", "in/model.onnx"], external=COPIED),
]


class Bench:
    """A scenario's folders, its runs, and what is wrong after one of them."""

    def __init__(self, server, scenario):
        self.server, self.scenario = server, scenario
        self.root = server.folder
        self.inputs, self.outputs = self.root / "in", self.root / "out"
        empty(self.root / "in")
        write_model(self.inputs, scenario.external)
        (self.inputs / "data").mkdir()
        for name in ("residual", "branch"):
            values = np.random.default_rng(2).normal(0, 1, (2, 1024)).astype(np.float32)
            np.save(self.inputs / "data" / f"{name}.npy", values)
        self.before = facts(self.inputs)
        self.reset()
        self.clean = self.run(fault_server.NO_FAULT)
        if self.clean.exit_code != 0:
            raise AssertionError(f"{scenario.name}: {self.clean.stderr}")
        self.wanted = self.written()

    def reset(self):
        empty(self.outputs)
        for name in self.scenario.previous:
            path = self.outputs / name
            path.write_bytes(OLD)
            path.chmod(0o640)
            os.utime(path, ns=(OLD_TIME, OLD_TIME))
        for path in set(facts(self.inputs)) - set(self.before):
            (self.inputs / path).unlink()
        self.old = facts(self.outputs)

    def run(self, fault, **limits):
        self.reset()
        if self.scenario.direct:
            limits.setdefault("stdout", self.outputs / "fused.onnx")
        return self.server.run(self.scenario.arguments, fault, stdin=self.scenario.stdin, **limits)

    def written(self):
        """Contents that the run made, by name."""
        found = contents(self.outputs)
        found.update({n: f[-1] for n, f in facts(self.inputs).items() if n not in self.before})
        return found

    def lost(self):
        """What is no more, or is no longer what it was; None if nothing."""
        now = facts(self.inputs)
        for name, fact in self.before.items():
            if now.get(name) != fact:
                return f"input {name} has changed"
        now = facts(self.outputs)
        for name, fact in self.old.items():
            if now.get(name) != fact and now.get(name, (None,))[-1] != self.wanted[name]:
                return f"previous output {name} is neither itself nor the new one"
        for name, content in self.written().items():
            if name in self.old or name not in self.wanted or content == self.wanted[name]:
                continue
            if not self.scenario.direct:
                return f"output {name} is incomplete"
        if self.is_without_data():
            return "an output is there without its data"
        return None

    def is_without_data(self):
        path = self.outputs / "fused.onnx"
        return (path.exists() and not self.scenario.direct and path.read_bytes() != OLD
                and any(not (self.outputs / location).exists() for location in self.scenario.external))

    def rubbish(self):
        """What a run left that has no output."""
        rubbish = set(self.written()) - set(self.wanted) - set(self.old)
        if self.scenario.copies and self.written().get("fused.onnx") in (None, OLD):
            rubbish |= set(self.written()) - set(self.old)
        return sorted(rubbish)


def fast_folder():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def empty(folder):
    for path in sorted(folder.rglob("*"), reverse=True) if folder.exists() else []:
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    folder.mkdir(exist_ok=True)


def message_problem(stderr):
    lines = stderr.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    others = [line for line in lines if not line.startswith(("error: ", "hint: "))]
    if len(errors) != 1:
        return f"{len(errors)} error lines: {stderr!r}"
    return f"other lines: {others}" if others else None


def problem_of(bench, done, codes):
    """What is wrong after a run that may end with one of the codes; None if nothing."""
    lost = bench.lost()
    if lost:
        return f"LOST: {lost}; exit {done.exit_code}, {done.stderr!r}"
    if done.signal:
        return f"died of {signal.Signals(done.signal).name}: {done.stderr!r}"
    if bench.rubbish():
        return f"left {bench.rubbish()}"
    if done.exit_code == 0:
        if bench.written() != bench.wanted:
            return "exit 0 without all outputs"
        warned = all(line.startswith("warning: ") for line in done.stderr.splitlines())
        return None if warned else f"exit 0 with {done.stderr!r}"
    if done.exit_code not in codes:
        return f"exit {done.exit_code}, expected {codes}: {done.stderr!r}"
    return message_problem(done.stderr)


def sample(faults, count, seed):
    """All, or a seeded part in order. Of 90,000 allocations of verify, which registers schemas, a part does."""
    count = MOST if OPTIONS.all else count
    if len(faults) <= count:
        return faults
    chosen = random.Random(f"{OPTIONS.seed}/{seed}").sample(range(len(faults)), count)
    return [faults[i] for i in sorted(chosen)]


def call_faults(calls):
    """Every fault of every call of a run with so many calls of each kind."""
    for kind, names in ERRORS.items():
        for number in range(1, calls[kind] + 1):
            for name in names:
                for persists in (False, True):
                    if not (name == "EINTR" and persists):
                        yield Fault(kind, number, getattr(errno, name), persists=persists)
            if kind in TRANSFERS:
                yield Fault(kind, number, action=fault_server.SHORT)
    for kind in TRANSFERS:
        if calls[kind]:
            yield Fault(kind, 1, action=fault_server.SHORT, persists=True)


def signal_faults(calls):
    for number in range(1, calls["any"] + 1):
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            for action in (fault_server.SIGNAL_BEFORE, fault_server.SIGNAL_AFTER):
                yield Fault("any", number, name, action)


def allocation_faults(calls):
    for number in range(1, calls["malloc"] + 1):
        yield Fault("malloc", number, errno.ENOMEM)
        yield Fault("malloc", number, errno.ENOMEM, persists=True)


class FaultSweepTest(unittest.TestCase):
    counts = collections.Counter()

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory(dir=OPTIONS.folder or fast_folder()))
        cls.server = cls.stack.enter_context(fault_server.Server(folder))

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()
        counted = ", ".join(f"{count} {name}" for name, count in sorted(cls.counts.items()))
        print(f"\n{counted}; lost: {cls.counts['lost']}", file=sys.stderr)

    def sweep(self, bench, faults, name, judge):
        """Tries the faults; those that the run did not come to do not count."""
        problems = []
        for fault in faults:
            done = bench.run(fault)
            self.counts[name] += done.hits > 0
            self.note(problems, bench, fault, judge(bench, fault, done))
        self.report(problems)

    def note(self, problems, bench, about, found):
        if not found:
            return
        text = f"{bench.scenario.name}; {about}: {found}"
        self.counts["lost"] += found.startswith("LOST")
        if any(known.search(text) for known in KNOWN):
            self.counts["known defects"] += 1
        else:
            problems.append(text)

    def report(self, problems):
        if problems:
            self.fail(f"{len(problems)} problems\n" + "\n".join(problems if OPTIONS.all else problems[:20]))

    def each(self, faults_of, count, name, judge):
        for scenario in SCENARIOS:
            with self.subTest(scenario.name):
                bench = Bench(self.server, scenario)
                self.sweep(bench, sample(list(faults_of(bench.clean.calls)), count, scenario.name), name, judge)

    def test_calls_that_fail(self):
        self.each(call_faults, 200, "failed calls", lambda bench, fault, done: problem_of(bench, done, [4]))

    def test_allocations_that_fail(self):
        self.each(allocation_faults, 60, "failed allocations",
                  lambda bench, fault, done: problem_of(bench, done, [4, 70]))

    def test_signals_at_any_call(self):
        self.each(signal_faults, 80, "signals", lambda bench, fault, done: signal_problem(bench, done, fault.value))

    def test_signals_at_random_moments(self):
        bench = Bench(self.server, SCENARIOS[4])
        moments = random.Random(OPTIONS.seed)
        problems = []
        for _ in range(500 if OPTIONS.all else 25):
            name, delay = moments.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]), moments.uniform(0, 0.06)
            bench.reset()
            process = subprocess.Popen([addnorm.BINARY, *bench.scenario.arguments], cwd=bench.root,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            process.send_signal(name)
            stderr = process.communicate(timeout=60)[1]
            status = -process.returncode if process.returncode < 0 else process.returncode << 8
            done = fault_server.Done(status, 1, 0, 0, {}, b"", stderr)
            self.counts["signals"] += 1
            self.note(problems, bench, f"{name.name} after {delay:.4f} s", signal_problem(bench, done, name))
        self.report(problems)

    def test_limits_of_file_size(self):
        for scenario in SCENARIOS[:5] + SCENARIOS[6:8]:
            with self.subTest(scenario.name):
                bench = Bench(self.server, scenario)
                largest = max(map(len, bench.wanted.values()))
                problems = []
                for most in (512, 4095, 4096, largest // 2, largest - 1):  # and the message has room
                    done = bench.run(fault_server.NO_FAULT, file=most, stdout="/dev/null")
                    self.counts["limits"] += 1
                    self.note(problems, bench, f"files of {most} bytes", problem_of(bench, done, [4]))
                self.report(problems)

    def test_limits_of_address_space(self):
        for scenario in SCENARIOS:
            with self.subTest(scenario.name):
                bench = Bench(self.server, scenario)
                problems = []
                for mebibytes in range(1, 700, 3 if OPTIONS.all else 70):
                    done = bench.run(fault_server.NO_FAULT, memory=mebibytes << 20, seconds=10)
                    self.counts["limits"] += 1
                    self.note(problems, bench, f"address space of {mebibytes} MiB", problem_of(bench, done, [4, 70]))
                self.report(problems)

    def test_a_full_disk(self):
        bench = Bench(self.server, SCENARIOS[4])
        disk = self.server.folder / "disk"
        disk.mkdir(exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("skipped: no file system can be mounted here")
        try:
            self.fill(bench, disk)
        finally:
            subprocess.run(["umount", disk], check=True)

    def fill(self, bench, disk):
        for room in (0, 4096, 8192, 12288, 16384):
            for name, options in (("fused.onnx", []), ("old.onnx", ["--force"])):
                empty_mounted(disk)
                (disk / "old.onnx").write_bytes(OLD)
                fill_but(disk / "filler", room)
                before = contents(disk)
                done = self.server.run(["optimize", "in/model.onnx", disk / name, *options])
                self.counts["full disks"] += 1
                with self.subTest(room=room, name=name):
                    if done.exit_code == 0:
                        self.assertEqual((disk / name).read_bytes(), bench.wanted["fused.onnx"])
                    else:
                        self.assertEqual((done.exit_code, contents(disk)), (4, before), done.stderr)
                        self.assertIsNone(message_problem(done.stderr))
                        self.assertIn("no space left on device", done.stderr)

    def test_a_full_standard_output(self):
        for arguments in (["optimize", "in/model.onnx", "-"], ["inspect", "in/model.onnx"], ["run", "in/model.onnx"]):
            with self.subTest(arguments[0]):
                Bench(self.server, SCENARIOS[0])
                done = self.server.run(arguments, stdout="/dev/full")
                self.assertEqual(done.exit_code, 4)
                self.assertIn("no space left on device", done.stderr)


def signal_problem(bench, done, number):
    """What is wrong after a signal that may have come too late; None if nothing."""
    if not done.signal:
        return problem_of(bench, done, [])
    lost = bench.lost()
    if lost:
        return f"LOST: {lost}"
    if done.signal != number:
        return f"died of {signal.Signals(done.signal).name}: {done.stderr!r}"
    # Nothing can remove a name that a file has for a moment before SIGKILL.
    return f"left {bench.rubbish()}" if number != signal.SIGKILL and bench.rubbish() else None


def empty_mounted(disk):
    for path in list(disk.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def fill_but(path, room):
    """Writes a file that leaves so many bytes free."""
    free = os.statvfs(path.parent)
    path.write_bytes(b"x" * (free.f_bavail * free.f_frsize - room))


if __name__ == "__main__":
    fault_server.exit_unless_here()
    unittest.main(argv=[sys.argv[0], *REST])
