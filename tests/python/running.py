# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""`run` from outside: arrays in, arrays out, and how near they are to somebody else's.

The measure: the largest difference of an output, divided by the output's largest
finite magnitude. NaN and infinities must be in the same places. Integers and
bools must be equal. ONNX Runtime is no oracle of bits for half types: it
computes whole chains of them in float where we round after each operator.
"""

import pathlib
import re
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import addnorm

# Largest difference that passes, in units of the output's largest magnitude.
TOLERANCES = {"float32": 1e-5, "float64": 1e-12, "float16": 2.0**-6, "bfloat16": 2.0**-4}
# Models that round activations to 8 bits: a last bit decides between two steps.
# ONNX Runtime's MatMulNBits does so unasked at accuracy level 4.
QUANTIZED_TOLERANCE = 0.1


class RunFailed(Exception):
    """The message is the tool's first line on stderr."""


def call(*arguments):
    done = addnorm.run("run", *arguments)
    if done.returncode != 0:
        raise RunFailed(done.stderr.strip().splitlines()[0] if done.stderr.strip()
                        else f"exit {done.returncode} without a message")
    return done


def run_folder(model_path, inputs):
    """[(array, data type)] of the outputs, for a folder of input_N.pb."""
    with tempfile.TemporaryDirectory() as outputs:
        call(model_path, "--inputs", inputs, "--outputs", outputs)
        return read_tensors(outputs, "output")


def run_arrays(model, feeds, *options):
    """Outputs by name, for a ModelProto and arrays by name, through .npy files."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString())
        inputs = pathlib.Path(folder, "in")
        inputs.mkdir()
        for name, array in feeds.items():
            np.save(inputs / f"{stem(name)}.npy", array)
        outputs = pathlib.Path(folder, "out")
        call(path, "--inputs", inputs, "--outputs", outputs, "--format", "npy", *options)
        return {o.name: np.load(outputs / f"{stem(o.name)}.npy") for o in model.graph.output}


def stem(name):
    """The file name that `run --help` promises for a value's name."""
    safe = re.sub(r"[/\\:\x00-\x1f\x7f]", "_", name)
    return "_" + safe[1:] if safe.startswith(".") else safe


def tolerance_of(model):
    """For what the model computes inside; None: by the types of its outputs."""
    nodes = list(addnorm.all_nodes(model))
    levels = {a.i for n in nodes if n.op_type == "MatMulNBits" for a in n.attribute if a.name == "accuracy_level"}
    if 4 in levels or any(n.op_type == "DynamicQuantizeLinear" for n in nodes):
        return QUANTIZED_TOLERANCE
    types = {t.data_type for t in model.graph.initializer} | {
        a.i for n in nodes if n.op_type == "Cast" for a in n.attribute if a.name == "to"}
    for data_type, name in ((onnx.TensorProto.BFLOAT16, "bfloat16"), (onnx.TensorProto.FLOAT16, "float16")):
        if data_type in types:
            return TOLERANCES[name]
    return None


def read_tensors(folder, prefix):
    tensors = []
    while (path := pathlib.Path(folder, f"{prefix}_{len(tensors)}.pb")).exists():
        proto = onnx.TensorProto()
        proto.ParseFromString(path.read_bytes())
        tensors.append((numpy_helper.to_array(proto), proto.data_type))
    return tensors


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_onnxruntime(model, feeds):
    runner = session(model)
    names = [o.name for o in runner.get_outputs()]
    return dict(zip(names, runner.run(names, feeds)))


def distance(want, have):
    """Largest difference in units of the largest magnitude; inf where NaN or infinities are elsewhere."""
    wide_want, wide_have = want.astype(np.float64), have.astype(np.float64)
    finite = np.isfinite(wide_want)
    if not np.array_equal(wide_want[~finite], wide_have[~finite], equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    with np.errstate(invalid="ignore"):
        difference = np.abs(wide_want[finite] - wide_have[finite]).max()
    largest = np.abs(wide_want[finite]).max()
    if np.isnan(difference):
        return np.inf
    return difference / largest if largest else (0.0 if difference == 0 else np.inf)


def complaint(want, have, tolerance=None):
    """None where `have` is near enough to `want`, else what differs."""
    if want.dtype != have.dtype:
        return f"type {have.dtype}, expected {want.dtype}"
    if want.shape != have.shape:
        return f"shape {have.shape}, expected {want.shape}"
    if want.dtype.name not in TOLERANCES:
        return None if np.array_equal(want, have) else "values differ"
    tolerance = tolerance or TOLERANCES[want.dtype.name]
    found = distance(want, have)
    return None if found <= tolerance else f"{want.dtype} differs by {found:.2g}, more than {tolerance:.2g}"
