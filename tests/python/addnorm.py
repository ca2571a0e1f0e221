# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""The tool under test, and what the public onnx and onnxruntime packages say of its output.

Knows the command line and nothing else of the project. The binary comes from
the environment variable ADDNORM_BIN.
"""

import ctypes
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnx.checker
import onnx.inliner
import onnx.parser
import onnx.reference
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
BINARY = os.path.abspath(os.environ.get("ADDNORM_BIN", ROOT / "build/release/onnx-addnorm"))
DOMAIN = "ai.addnorm"
SKIPPED = 77  # CTest's SKIP_RETURN_CODE
SECONDS = 120  # until a run of the tool counts as hanging


def is_sanitized():
    """Whether the address sanitizer is in the tool: larger, slower, with an allocator of its own."""
    return b"__asan_init" in pathlib.Path(BINARY).read_bytes()


def run(*arguments, timeout=SECONDS, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **options)


def optimize(model, folder):
    """(the optimised model, the report); `model` is a ModelProto or the path of one."""
    source = pathlib.Path(folder, "in.onnx")
    target = pathlib.Path(folder, "out.onnx")
    if isinstance(model, onnx.ModelProto):
        source.write_bytes(model.SerializeToString())
    else:
        source.write_bytes(pathlib.Path(model).read_bytes())
    done = run("optimize", source, target, "--json", "--force")
    if done.returncode != 0:
        raise AssertionError(f"optimize: exit {done.returncode}: {done.stderr.strip()}")
    return onnx.load(target), json.loads(done.stdout)


# ---- reading models ---------------------------------------------------------


def all_graphs(nodes):
    """The graphs in the nodes' attributes, and in those graphs' nodes."""
    for node in nodes:
        for attribute in node.attribute:
            for graph in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                yield graph
                yield from all_graphs(graph.node)


def all_nodes(model):
    """Nodes of every graph and of every function that is not ours."""
    for nodes in [model.graph.node] + [f.node for f in model.functions if f.domain != DOMAIN]:
        yield from nodes
        for graph in all_graphs(nodes):
            yield from graph.node


def fused_nodes(model):
    return [node for node in all_nodes(model) if node.domain == DOMAIN]


def inlined(model):
    ours = [(f.domain, f.name) for f in model.functions if f.domain == DOMAIN]
    return onnx.inliner.inline_selected_functions(model, ours) if ours else model


def checker_complaint(model):
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return None


# ONNX Runtime's own operators in the default domain.
NOT_STANDARD = {"SimplifiedLayerNormalization"}


def is_in_reference(model):
    """Whether the reference evaluator knows all operators."""
    return not any(node.op_type in NOT_STANDARD for node in all_nodes(model))


def is_in_onnxruntime(model):
    """Whether ONNX Runtime's CPU kernels know all types: bfloat16 they do not."""
    tensors = [t.data_type for t in model.graph.initializer]
    values = [v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)]
    return onnx.TensorProto.BFLOAT16 not in tensors + values


# ---- running models ---------------------------------------------------------


def bits(array):
    return (array.dtype.name, array.shape, array.tobytes())


def run_reference(model, feeds):
    """Bits of the outputs, by the reference evaluator of the onnx package."""
    with np.errstate(all="ignore"):
        results = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    return [bits(np.asarray(result)) for result in results]


def ort_value(array, data_type):
    if data_type == onnx.TensorProto.BFLOAT16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), data_type)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def run_onnxruntime(model, feeds):
    """Bits of the outputs, by ONNX Runtime with graph optimisation disabled."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    types = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    values = session.run_with_ort_values(
        None, {name: ort_value(array, types[name]) for name, array in feeds.items()})
    return [(o.name, tuple(v.shape()), ctypes.string_at(v.data_ptr(), v.tensor_size_in_bytes()))
            for o, v in zip(session.get_outputs(), values)]
