# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Commands to run under faults, their files, and what is wrong after a run.

    bench = Bench(server, SCENARIOS[0])
    problem_of(bench, bench.run(Fault("fsync", 1, errno.EIO)), [4])
"""

import dataclasses
import json
import os
import signal

import numpy as np
import onnx
import onnx.external_data_helper
import onnx.parser
from onnx import numpy_helper

import fault_server

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

# oneDNN allocates in its own way.
PRODUCT = """<ir_version: 10, opset_import: ["" : 18]>
main_graph (float[8,64] a, float[64,32] b) => (float[8,32] y) { y = MatMul(a, b) }"""


def model(external=(), epsilon="1e-6"):
    """Two weights of 4 KiB; `external` names their data files."""
    result = onnx.parser.parse_model(MODEL.replace("1e-6", epsilon))
    values = np.random.default_rng(1).normal(1, 0.1, (2, 1024)).astype(np.float32)
    for name, array in zip(("weight", "other"), values):
        result.graph.initializer.append(numpy_helper.from_array(array, name))
    for tensor, location in zip(result.graph.initializer[-2:], external):
        onnx.external_data_helper.set_external_data(tensor, location, 0, 4096)
    return result


def write_model(path, external=(), epsilon="1e-6"):
    proto = model(external, epsilon)
    for tensor, location in zip(proto.graph.initializer[-2:], external):
        data = path.parent / location
        data.parent.mkdir(exist_ok=True)
        data.write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
    path.write_bytes(proto.SerializeToString())


def link_to_blobs(folder):
    """Each file moves to blobs/ under another name, and a link to it takes its place."""
    blobs = folder / "blobs"
    blobs.mkdir()
    for number, path in enumerate(p for p in sorted(folder.rglob("*")) if p.is_file()):
        path.rename(blobs / f"blob{number}")
        path.symlink_to(os.path.relpath(blobs / f"blob{number}", path.parent))


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
    linked: bool = False  # the inputs are links into a folder of blobs
    old_kernel: bool = False  # see fault_shim.c
    exit_code: int = 0
    without: tuple = ()  # kinds of calls that are not made to fail
    share: float = 1  # of the faults that others get: what takes long gets fewer

    @property
    def copies(self):
        """Whether the output gets copies of data files."""
        return self.arguments[0] == "optimize" and bool(self.external) and not self.beside

    @property
    def is_whole(self):
        """Whether all outputs appear or none."""
        is_new = self.arguments[0] == "run" and "--force" not in self.arguments
        return self.copies or is_new or "--reduce" in self.arguments


COPIED = ("w.bin", "sub/other.bin")
SCENARIOS = [
    Scenario("optimize", ["optimize", "in/model.onnx", "out/fused.onnx"]),
    Scenario("optimize --force", ["optimize", "in/model.onnx", "out/fused.onnx", "--force"], previous=("fused.onnx",)),
    Scenario("optimize, shared data", ["optimize", "in/model.onnx", "in/fused.onnx"], external=COPIED, beside=True),
    Scenario("optimize, copied data", ["optimize", "in/model.onnx", "out/fused.onnx"], external=COPIED),
    Scenario("optimize --force, copied data", ["optimize", "in/model.onnx", "out/fused.onnx", "--force"],
             external=COPIED, previous=("fused.onnx",)),
    Scenario("optimize --verify, copied data", ["optimize", "in/model.onnx", "out/fused.onnx", "--verify"],
             external=COPIED, share=0.5),
    Scenario("optimize, links", ["optimize", "in/model.onnx", "out/fused.onnx", "--json"], external=COPIED,
             linked=True),
    Scenario("optimize - -", ["optimize", "-", "-", "--quiet"], direct=True, stdin="in/model.onnx"),
    Scenario("run", ["run", "in/model.onnx", "--inputs", "in/data", "--outputs", "out/to", "--threads", "3"],
             external=COPIED),
    Scenario("run --force", ["run", "in/model.onnx", "--inputs", "in/data", "--outputs", "out", "--format", "npy",
                             "--force", "--threads", "1"], previous=("s.npy", "y.npy", "z.npy")),
    Scenario("run -", ["run", "-", "--json"], stdin="in/model.onnx"),
    Scenario("run, a product", ["run", "in/product.onnx", "--json", "--threads", "2"], share=0.25,
             without=("mmap",)),  # oneDNN's own, which it does not survive: see HasRoomForCode in runtime/gemm.cc
    Scenario("verify", ["verify", "in/model.onnx", "in/model.onnx", "--threads", "2"], external=COPIED),
    Scenario("verify --reduce", ["verify", "in/model.onnx", "in/other.onnx", "--reduce", "out/to"], external=COPIED,
             exit_code=1),
    Scenario("bench --json", ["bench", "in/model.onnx", "--json", "--seconds", "0.01", "--threads", "1"],
             external=COPIED, share=0.25),
    Scenario("inspect", ["inspect", "in/model.onnx"], external=COPIED),
]
# What replaces calls that a kernel or a file system does not have.
SCENARIOS += [dataclasses.replace(s, name=s.name + ", old kernel", old_kernel=True) for s in SCENARIOS
              if s.name in ("optimize", "optimize, copied data", "optimize --force, copied data", "optimize, links",
                            "run --force")]


def scenario(name):
    return next(s for s in SCENARIOS if s.name == name)


class Bench:
    """A scenario's folders, its runs, and what is wrong after one of them."""

    def __init__(self, servers, scenario):
        self.server, self.scenario = servers[scenario.old_kernel], scenario
        self.root = self.server.folder
        self.inputs, self.outputs = self.root / "in", self.root / "out"
        empty(self.root / "in")
        write_model(self.inputs / "model.onnx", scenario.external)
        write_model(self.inputs / "other.onnx", scenario.external, epsilon="0.5")
        (self.inputs / "product.onnx").write_bytes(onnx.parser.parse_model(PRODUCT).SerializeToString())
        if scenario.linked:
            link_to_blobs(self.inputs)
        (self.inputs / "data").mkdir()
        for name in ("residual", "branch"):
            values = np.random.default_rng(2).normal(0, 1, (2, 1024)).astype(np.float32)
            np.save(self.inputs / "data" / f"{name}.npy", values)
        self.before = facts(self.inputs)
        self.reset()
        self.clean = self.run(fault_server.NO_FAULT)
        if self.clean.exit_code != scenario.exit_code:
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
        written = self.written()
        rubbish = set(written) - set(self.wanted) - set(self.old)
        if self.scenario.is_whole and not self.is_there(written):
            rubbish |= set(written) - set(self.old)
        return sorted(rubbish)

    def is_there(self, written):
        """Whether there is what its other files are for."""
        if self.scenario.copies:
            return written.get("fused.onnx") not in (None, OLD)
        return written == self.wanted

    def is_told(self, done):
        """Whether the answer says that files are missing: a difference that cannot be reduced is one all the same."""
        return "--reduce" in self.scenario.arguments and (
            done.stdout is None or b"\n  reduced    no: " in done.stdout)

    def json_problem(self, done):
        """--json prints one object, whatever happens, if standard output takes it."""
        if "--json" not in self.scenario.arguments or done.stdout is None or "<stdout>" in done.stderr:
            return None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return f"no JSON: {done.stdout[:200]!r}"
        is_answer = answer["schema"].startswith("onnx-addnorm/") and answer["exit_code"] == done.exit_code
        return None if is_answer else f"JSON of another answer: {done.stdout[:200]!r}"


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
    if bench.json_problem(done):
        return bench.json_problem(done)
    if done.exit_code == bench.scenario.exit_code:
        if bench.written() != bench.wanted and not bench.is_told(done):
            return f"exit {done.exit_code} without all outputs"
        warnings = done.stderr.replace(bench.clean.stderr, "", 1)
        warned = all(line.startswith("warning: ") for line in warnings.splitlines())
        return None if warned else f"exit {done.exit_code} with {done.stderr!r}"
    if done.exit_code not in codes:
        return f"exit {done.exit_code}, expected {codes}: {done.stderr!r}"
    return message_problem(done.stderr)


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
