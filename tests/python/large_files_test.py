# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Files of many gigabytes that take no room: what they cost, what is shared, and what is shown meanwhile.

    large_files_test.py            files with holes
    large_files_test.py --heavy    2 GiB are written, too (tests/sweep.sh)
"""

import argparse
import array
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import onnx
import onnx.external_data_helper
import onnx.parser

import addnorm
import fault_scenarios

_PARSER = argparse.ArgumentParser()
_PARSER.add_argument("--heavy", action="store_true", help="write 2 GiB")
OPTIONS, REST = _PARSER.parse_known_args()
MIB, GIB = 1 << 20, 1 << 30
# The sanitizer's own memory, of freed blocks most of all, comes on top.
MOST_KIB = (256 if addnorm.is_sanitized() else 64) << 10
MOST_SECONDS = 10  # of CPU; a byte of a hole that is read costs 20 s for 100 GiB
MOST_MODEL = 2**31 - 1
FS_IOC_FIEMAP, SHARED_EXTENT = 0xC020660B, 0x2000
MOUNTABLE = {"xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"], "btrfs": ["mkfs.btrfs", "-q"]}


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def write_large(path, size):
    """A model with a site and one more initializer, whose zeros are a hole, of `size` bytes together."""
    proto = fault_scenarios.model()
    head = proto.SerializeToString()
    for payload in range(size - len(head) - 64, size):
        # dims = [payload], data_type = UINT8, name = "large", raw_data.
        tensor = b"\x08" + varint(payload) + b"\x10\x02\x42\x05large\x4a" + varint(payload)
        # A second `graph` is merged with the first by every reader of protobuf.
        field = b"\x2a" + varint(len(tensor) + payload) + tensor
        graph = b"\x3a" + varint(len(field) + payload) + field
        if len(head) + len(graph) + payload == size:
            break
    else:
        raise AssertionError(f"no model has {size} bytes")
    path.write_bytes(head + graph)
    os.truncate(path, size)


def write_external(folder, gibibytes):
    """A model whose data file is a hole, with its two weights at both ends."""
    proto = fault_scenarios.model()
    size = gibibytes * GIB
    for tensor, offset in zip(proto.graph.initializer[-2:], (0, size - 4096)):
        onnx.external_data_helper.set_external_data(tensor, "w.bin", offset, 4096)
        with open(folder / "w.bin", "ab") as data:
            os.truncate(folder / "w.bin", offset)
            data.write(tensor.raw_data)
        tensor.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(proto.SerializeToString())


# A process begins with the peak of the one that it was forked from, so that one is small.
LAUNCHER = """
import json, os, sys
_, status, usage = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
with open(sys.argv[1], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_utime + usage.ru_stime], file)
"""


def measured(*arguments):
    """(the run, its peak in KiB, its CPU seconds)"""
    with tempfile.NamedTemporaryFile() as file:
        done = subprocess.run([sys.executable, "-S", "-c", LAUNCHER, file.name, addnorm.BINARY, *map(str, arguments)],
                              capture_output=True, text=True, timeout=300)
        done.returncode, peak, cpu = json.load(file)
        return done, peak, cpu


def shared_extents(path):
    """(those that another file has too, all)"""
    most = 4096
    # fm_start, fm_length, fm_flags (sync), fm_mapped_extents, fm_extent_count, fm_reserved
    buffer = array.array("B", struct.pack("=QQIIII", 0, 2**64 - 1, 1, 0, most, 0) + bytes(56 * most))
    with open(path, "rb") as file:
        fcntl.ioctl(file, FS_IOC_FIEMAP, buffer)
    count = struct.unpack_from("=I", buffer, 20)[0]
    flags = [struct.unpack_from("=I", buffer, 32 + 56 * i + 40)[0] for i in range(count)]
    return sum(bool(flag & SHARED_EXTENT) for flag in flags), count


@contextlib.contextmanager
def mounted(kind, folder):
    """A file system that shares blocks, or None where none can be made."""
    if os.geteuid() != 0 or not shutil.which(MOUNTABLE[kind][0]):
        yield None
        return
    image, place = folder / f"{kind}.img", folder / kind
    image.touch()
    os.truncate(image, 400 * MIB)
    place.mkdir()
    made = subprocess.run([*MOUNTABLE[kind], image], capture_output=True).returncode == 0
    if not made or subprocess.run(["mount", "-o", "loop", image, place], capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


class LargeFilesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def cheap(self, *arguments, seconds=MOST_SECONDS):
        done, peak, cpu = measured(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(peak, MOST_KIB)
        self.assertLess(cpu, seconds)

    def test_external_data_of_100_gib_cost_nothing(self):
        write_external(self.root, 100)
        self.cheap("optimize", self.root / "model.onnx", self.root / "fused.onnx", "--expect-fused", "1")
        self.cheap("inspect", self.root / "fused.onnx")
        self.cheap("verify", self.root / "model.onnx", self.root / "fused.onnx", "--structure-only",
                   "--require-proof")

    def test_a_copy_of_external_data_keeps_their_holes(self):
        write_external(self.root, 100)
        (self.root / "out").mkdir()
        self.cheap("optimize", self.root / "model.onnx", self.root / "out/fused.onnx", "--data", "copy")
        there, copy = (self.root / "w.bin").stat(), (self.root / "out/w.bin").stat()
        self.assertEqual(there.st_size, copy.st_size)
        self.assertLess(copy.st_blocks * 512, MIB)
        with open(self.root / "w.bin", "rb") as a, open(self.root / "out/w.bin", "rb") as b:
            for at in (0, there.st_size // 2, there.st_size - 4096):
                self.assertEqual(os.pread(a.fileno(), 4096, at), os.pread(b.fileno(), 4096, at))
        # Unasked it is too much.
        (self.root / "other").mkdir()
        done = addnorm.run("optimize", self.root / "model.onnx", self.root / "other/fused.onnx")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--data=copy", done.stderr)

    def test_a_model_of_2_gib_is_read_without_its_weights(self):
        write_large(self.root / "model.onnx", MOST_MODEL - 4096)
        self.cheap("optimize", self.root / "model.onnx", "--dry-run", "--expect-fused", "1")
        write_large(self.root / "model.onnx", MOST_MODEL)
        self.cheap("inspect", self.root / "model.onnx")

    def test_more_than_2_gib_are_refused_as_input_and_as_output(self):
        for size in (MOST_MODEL, MOST_MODEL + 1):  # what is fused adds some bytes
            write_large(self.root / "model.onnx", size)
            done, peak, _ = measured("optimize", self.root / "model.onnx", self.root / "fused.onnx")
            self.assertEqual(done.returncode, 3)
            self.assertIn("more than the 2 GiB", done.stderr)
            self.assertLess(peak, MOST_KIB)
            self.assertEqual(os.listdir(self.root), ["model.onnx"])

    @unittest.skipUnless(OPTIONS.heavy, "skipped: 2 GiB are written with --heavy only")
    def test_a_model_of_2_gib_is_written_without_memory(self):
        write_large(self.root / "model.onnx", MOST_MODEL - 4096)
        self.cheap("optimize", self.root / "model.onnx", self.root / "fused.onnx", "--expect-fused", "1", seconds=60)
        self.assertGreater((self.root / "fused.onnx").stat().st_size, MOST_MODEL - 8192)
        self.cheap("verify", self.root / "model.onnx", self.root / "fused.onnx", "--structure-only",
                   "--require-proof", seconds=60)

    def test_models_that_are_compared_hold_their_weights_once(self):
        # Unfused twice, fused and another file: four models of four weights of 16 MiB.
        weights = {f"w{i}": np.full((2048, 2048), i, np.float32) for i in range(4)}
        text = "<ir_version: 8, opset_import: ['' : 18]> agraph (float[1, 2048] x, float[1, 2048] r) => (float[1, 2048] y)\n"
        proto = onnx.parser.parse_model(text.replace("'", '"') + """<float[1] two = {2}, float[1] eps = {0.001}> {
            x0 = MatMul(x, w0)  x1 = MatMul(x0, w1)  x2 = MatMul(x1, w2)  x3 = MatMul(x2, w3)
            s = Add(x3, r)  p = Pow(s, two)  axes = Constant<value_ints = [-1]>()
            m = ReduceMean(p, axes)  v = Add(m, eps)  root = Sqrt(v)  y = Div(s, root) }""")
        proto.graph.initializer.extend(onnx.numpy_helper.from_array(w, name) for name, w in weights.items())
        model, other = self.root / "model.onnx", self.root / "other.onnx"
        onnx.save(proto, model)
        addnorm.run("optimize", model, other)
        done, peak, _ = measured("bench", model, "--against", other, "--seconds", "0.1", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(peak, (2 * 64 << 10) + MOST_KIB)

    def test_blocks_are_shared_where_the_file_system_can(self):
        found = []
        for kind in MOUNTABLE:
            with mounted(kind, self.root) as place:
                if place:
                    found.append(kind)
                    with self.subTest(kind):
                        self.share(place)
        if not found:
            self.skipTest("skipped: neither XFS nor btrfs can be mounted here (needs root, mkfs and a loop device)")

    def share(self, place):
        (place / "in").mkdir()
        (place / "out").mkdir()
        fault_scenarios.write_model(place / "in/model.onnx", ("w.bin", "other.bin"))
        with open(place / "in/w.bin", "ab") as data:
            data.write(os.urandom(100 * MIB))
        # A model without a site is copied; its payload is random so that nothing compresses it.
        proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> g (float[1] x) => (float[1] y) '
                                        "{ y = Relu(x) }")
        proto.graph.initializer.append(onnx.TensorProto(name="w", data_type=2, dims=[50 * MIB],
                                                        raw_data=os.urandom(50 * MIB)))
        (place / "in/plain.onnx").write_bytes(proto.SerializeToString())
        os.sync()
        free = os.statvfs(place).f_bfree
        self.cheap("optimize", place / "in/model.onnx", place / "out/model.onnx", "--data", "copy")
        self.cheap("optimize", place / "in/plain.onnx", place / "out/plain.onnx")
        os.sync()
        used = (free - os.statvfs(place).f_bfree) * os.statvfs(place).f_frsize
        self.assertLess(used, 10 * MIB)
        for name in ("w.bin", "plain.onnx"):
            shared, count = shared_extents(place / "out" / name)
            self.assertGreater(shared, 0, name)
            self.assertLessEqual(count - shared, 2, name)  # the head and the tail, which are no whole blocks
            self.assertEqual((place / "in" / name).read_bytes(), (place / "out" / name).read_bytes())


class ProgressTest(unittest.TestCase):
    """What a terminal shows while a pipe takes the output slowly."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        write_large(self.root / "model.onnx", 8_000_000)
        os.mkfifo(self.root / "pipe")

    def read_slowly(self, seconds):
        with open(self.root / "pipe", "rb", buffering=0) as pipe:
            end = time.monotonic() + seconds
            taken = 0
            while part := pipe.read(65536):
                taken += len(part)
                time.sleep(max(0.0, min(0.1, seconds * len(part) / 8_000_000)) if time.monotonic() < end else 0)

    def shown(self, seconds, *options):
        """[(when, what)] of what the terminal got, from the start."""
        reader = threading.Thread(target=self.read_slowly, args=(seconds,))
        reader.start()
        ours, theirs = pty.openpty()
        start = time.monotonic()
        process = subprocess.Popen([addnorm.BINARY, "optimize", self.root / "model.onnx", self.root / "pipe", *options],
                                   stdout=theirs, stderr=theirs, close_fds=True)
        os.close(theirs)
        parts = []
        with contextlib.suppress(OSError):  # EIO: nobody has the terminal any more
            while part := os.read(ours, 65536):
                parts.append((time.monotonic() - start, part.decode()))
        os.close(ours)
        reader.join()
        self.assertEqual(process.wait(timeout=60), 0)
        return parts

    def test_bytes_and_time_left_after_half_a_second(self):
        parts = self.shown(2.5)
        self.assertGreaterEqual(parts[0][0], 0.5)
        text = "".join(part for _, part in parts)
        self.assertRegex(text, r"\r\x1b\[K\d\.\d MB of 8\.\d MB \(\d+ %\), \d+ s left")
        # It is erased before the report.
        self.assertRegex(text, re.compile(r".*\r\x1b\[K *(before|[^\r]*nodes)", re.DOTALL))

    def test_short_work_and_quiet_work_show_none(self):
        for when, part in self.shown(0):
            self.assertTrue("\x1b[K" not in part or when >= 0.5, (when, part))
        self.assertNotIn("\x1b[K", "".join(part for _, part in self.shown(1.2, "--quiet")))

    def test_what_is_no_terminal_gets_none(self):
        reader = threading.Thread(target=self.read_slowly, args=(1.2,))
        reader.start()
        done = addnorm.run("optimize", self.root / "model.onnx", self.root / "pipe")
        reader.join()
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main(argv=[sys.argv[0], *REST])
