# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the tool thousands of times, each run with one fault: tests/sweep/fault_shim.c from outside.

    with fault_server.Server(folder) as server:
        done = server.run(["inspect", "m.onnx"], Fault("pread", 3, errno.EIO))
        done.exit_code, done.stderr, done.hits

The first process stops before main and forks a child for each run, so that a
run costs two milliseconds instead of fifteen. The shim comes from
ADDNORM_FAULT_SHIM (CTest sets it), else it is compiled.
"""

import dataclasses
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys

import addnorm

# The order of enum Kind.
KINDS = ["open", "openat", "openat2", "read", "pread", "write", "pwrite", "fsync", "rename", "link", "ftruncate",
         "fallocate", "mmap", "stat", "fcntl", "close", "mkdir", "memfd_create", "fchmod", "opendir", "readlink",
         "lseek", "unlink", "clone", "copy_file_range", "statx", "stdout", "thread", "malloc", "any"]
NOTHING, ERRNO, SHORT, SIGNAL_BEFORE, SIGNAL_AFTER = range(5)

_REQUEST = struct.Struct("=iiiiqQQII")
_ANSWER = struct.Struct(f"=iiqq{len(KINDS)}q")


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str = "open"
    number: int = 1
    value: int = 0  # an errno value or a signal
    action: int = ERRNO
    persists: bool = False

    def __str__(self):
        what = {NOTHING: "no fault", SHORT: "short"}.get(self.action)
        if self.action == ERRNO:
            what = os.strerror(self.value)
        elif what is None:
            what = signal.Signals(self.value).name + (" before" if self.action == SIGNAL_BEFORE else " after")
        return f"{self.kind} {self.number}{' and later' if self.persists else ''}: {what}"


NO_FAULT = Fault(action=NOTHING)


@dataclasses.dataclass
class Done:
    status: int
    hits: int
    peak_kib: int
    cpu_seconds: float
    calls: dict
    stdout: bytes
    stderr: str

    @property
    def signal(self):
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0

    @property
    def exit_code(self):
        return None if self.signal else os.WEXITSTATUS(self.status)


def why_not_here():
    """Why the shim cannot work here, or None."""
    if not sys.platform.startswith("linux"):
        return "LD_PRELOAD as on Linux is needed"
    if addnorm.is_sanitized():
        return "a sanitizer's own interposition comes first"
    if not os.environ.get("ADDNORM_FAULT_SHIM") and not shutil.which("cc"):
        return "no fault_shim.so and no C compiler"
    return None


def exit_unless_here():
    why = why_not_here()
    if why:
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(addnorm.SKIPPED)


def shim(folder):
    given = os.environ.get("ADDNORM_FAULT_SHIM")
    if given:
        return given
    built = pathlib.Path(folder, "fault_shim.so")
    if built.exists():
        return str(built)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", built, addnorm.ROOT / "tests/sweep/fault_shim.c"],
                   check=True)
    return str(built)


class Server:
    def __init__(self, folder, old_kernel=False):
        self.folder = pathlib.Path(folder)
        self.old_kernel = old_kernel
        self.runs = 0

    def __enter__(self):
        self.socket, theirs = socket.socketpair()
        old = {"ADDNORM_FAULT_OLD_KERNEL": "1"} if self.old_kernel else {}
        self.process = subprocess.Popen(
            [addnorm.BINARY], pass_fds=[theirs.fileno()],
            env={**os.environ, **old, "LD_PRELOAD": shim(self.folder), "ADDNORM_FAULT_SERVER": str(theirs.fileno())})
        theirs.close()
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.wait(timeout=30)

    def run(self, arguments, fault=NO_FAULT, stdin="/dev/null", stdout=None, memory=0, file=0, seconds=60):
        """One run of the tool; `stdout`: a path that gets it in place of the answer."""
        out, error = self.folder / "stdout", self.folder / "stderr"
        strings = [str(self.folder), str(stdin), str(stdout or out), str(error), "onnx-addnorm", *map(str, arguments)]
        request = _REQUEST.pack(KINDS.index(fault.kind), fault.action, fault.value, fault.persists, fault.number,
                                memory, file, seconds, len(strings))
        for text in map(os.fsencode, strings):
            request += struct.pack("=I", len(text)) + text
        self.socket.sendall(request)
        answer = self.socket.recv(_ANSWER.size, socket.MSG_WAITALL)
        if len(answer) < _ANSWER.size:
            raise AssertionError(f"the server ended: {self.process.wait(timeout=30)}")
        status, hits, peak, cpu, *calls = _ANSWER.unpack(answer)
        self.runs += 1
        return Done(status, hits, peak, cpu / 1e6, dict(zip(KINDS, calls)),
                    None if stdout else out.read_bytes(), error.read_text(errors="replace"))
