# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Every call that can fail does fail, once and for good, in turn; nothing may be lost.

Options are in sweeping.py.

After each run: exit 0 only with all outputs complete and equal to those of a
run without a fault; else the right code and one line that says why; inputs and
previous outputs as they were, bytes and times; and no other file.
"""

import collections
import contextlib
import dataclasses
import errno
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import addnorm
import fault_server
from fault_scenarios import (OLD, SCENARIOS, Bench, contents, fast_folder, message_problem, problem_of,
                             scenario, signal_problem)
from fault_server import Fault
from sweeping import OPTIONS, REST, part, sample

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
    "clone": ["EOPNOTSUPP", "EXDEV", "EINVAL", "EIO", "EINTR"],
    "copy_file_range": ["EXDEV", "EINVAL", "EIO", "ENOSPC"],
    "statx": ["EIO", "EACCES", "ENOMEM"],
    "stdout": ["ENOSPC", "EIO"],
    "thread": ["EAGAIN"],
}
MOST = 10_000  # faults of a sort in a scenario, with --all; verify, which registers schemas, has 90,000 allocations
TRANSFERS = ["read", "pread", "write", "pwrite"]


def call_faults(bench):
    """Every fault of every call of a run like the one without a fault."""
    calls = bench.clean.calls
    for kind, names in ERRORS.items():
        if kind in bench.scenario.without:
            continue
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


def signal_faults(bench):
    for number in range(1, bench.clean.calls["any"] + 1):
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            for action in (fault_server.SIGNAL_BEFORE, fault_server.SIGNAL_AFTER):
                yield Fault("any", number, name, action)


def allocation_faults(bench):
    for number in range(1, bench.clean.calls["malloc"] + 1):
        yield Fault("malloc", number, errno.ENOMEM)
        yield Fault("malloc", number, errno.ENOMEM, persists=True)


class FaultSweepTest(unittest.TestCase):
    counts = collections.Counter()

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory(dir=OPTIONS.folder or fast_folder()))
        cls.servers = [cls.stack.enter_context(fault_server.Server(folder, old)) for old in (False, True)]
        cls.server = cls.servers[0]

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
        problems.append(text)

    def report(self, problems):
        if problems:
            self.fail(f"{len(problems)} problems\n" + "\n".join(problems if OPTIONS.all else problems[:20]))

    def each(self, faults_of, count, name, judge):
        for each in SCENARIOS:
            with self.subTest(each.name):
                bench = Bench(self.servers, each)
                some, most = int(each.share * count), int(each.share * MOST)
                self.sweep(bench, sample(faults_of(bench), some, most, each.name), name, judge)

    def test_calls_that_fail(self):
        self.each(call_faults, 200, "failed calls", lambda bench, fault, done: problem_of(bench, done, [4]))

    def test_allocations_that_fail(self):
        self.each(allocation_faults, 60, "failed allocations",
                  lambda bench, fault, done: problem_of(bench, done, [4]))

    def test_signals_at_any_call(self):
        self.each(signal_faults, 80, "signals", lambda bench, fault, done: signal_problem(bench, done, fault.value))

    def test_signals_at_random_moments(self):
        bench = Bench(self.servers, scenario("optimize --force, copied data"))
        moments = random.Random(f"{OPTIONS.seed}/{OPTIONS.part}")
        problems = []
        for _ in part(range(500 if OPTIONS.all else 25)):
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
        for each in SCENARIOS:
            if each.direct or not Bench(self.servers, each).wanted:
                continue
            with self.subTest(each.name):
                bench = Bench(self.servers, each)
                largest = max(map(len, bench.wanted.values()))
                problems = []
                for most in (512, 4095, 4096, largest // 2, largest - 1):  # and the message has room
                    done = bench.run(fault_server.NO_FAULT, file=most, stdout="/dev/null")
                    self.counts["limits"] += 1
                    self.note(problems, bench, f"files of {most} bytes", problem_of(bench, done, [4]))
                self.report(problems)

    def test_limits_of_address_space(self):
        for each in SCENARIOS:
            with self.subTest(each.name):
                bench = Bench(self.servers, each)
                problems = []
                for mebibytes in part(range(1, 700, 3 if OPTIONS.all else 70)):
                    done = bench.run(fault_server.NO_FAULT, memory=mebibytes << 20, seconds=10)
                    self.counts["limits"] += 1
                    self.note(problems, bench, f"address space of {mebibytes} MiB", problem_of(bench, done, [4]))
                self.report(problems)

    def test_a_full_disk(self):
        bench = Bench(self.servers, scenario("optimize --force, copied data"))
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
                Bench(self.servers, SCENARIOS[0])
                done = self.server.run(arguments, stdout="/dev/full")
                self.assertEqual(done.exit_code, 4)
                self.assertIn("no space left on device", done.stderr)


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
