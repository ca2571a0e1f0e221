# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""The fused kernel against ONNX Runtime's SkipSimplifiedLayerNormalization.

    build/venv/bin/python tests/benchmarks/against_ort.py \
        build/release/addnorm_kernel_bench [rounds]

Both run on one thread, in turns, round by round; times are of the processor,
ratios the medians of the paired ones. ONNX Runtime writes to outputs that are
bound beforehand; its op cannot work in place, so `fresh` is like for like and
`in place` is what the memory plan makes of it.
"""
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

LENGTH = 4096
TYPES = {
    "f32": (TensorProto.FLOAT, 4),
    "f16": (TensorProto.FLOAT16, 2),
    "bf16": (TensorProto.BFLOAT16, 2),
}


def skip_norm(element_type, rows):
    shape = [rows, LENGTH]

    def value(name, dims):
        return helper.make_tensor_value_info(name, element_type, dims)

    node = helper.make_node(
        "SkipSimplifiedLayerNormalization",
        ["a", "b", "scale"],
        ["y", "", "", "sum"],
        domain="com.microsoft",
        epsilon=1e-6,
    )
    graph = helper.make_graph(
        [node],
        "g",
        [value("a", shape), value("b", shape), value("scale", [LENGTH])],
        [value("y", shape), value("sum", shape)],
    )
    return helper.make_model(
        graph,
        ir_version=10,
        opset_imports=[
            helper.make_opsetid("", 21),
            helper.make_opsetid("com.microsoft", 1),
        ],
    )


def random_bits(element_type, size, rng):
    """Normal numbers as an array that ORT takes for elements of that type."""
    values = rng.standard_normal(size).astype(np.float32)
    if element_type == TensorProto.FLOAT:
        return values
    if element_type == TensorProto.FLOAT16:
        return values.astype(np.float16)
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def bound_session(element_type, rows):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        skip_norm(element_type, rows).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    binding = session.io_binding()
    rng = np.random.default_rng(1)
    arrays = {
        name: random_bits(element_type, size, rng)
        for name, size in [
            ("a", (rows, LENGTH)),
            ("b", (rows, LENGTH)),
            ("scale", (LENGTH,)),
            ("y", (rows, LENGTH)),
            ("sum", (rows, LENGTH)),
        ]
    }
    for name, array in arrays.items():
        bind = binding.bind_output if name in ("y", "sum") else binding.bind_input
        bind(name, "cpu", 0, element_type, array.shape, array.ctypes.data)
    return session, binding, arrays


def time_of(session, binding, repeats):
    start = time.process_time_ns()
    for _ in range(repeats):
        session.run_with_iobinding(binding)
    return (time.process_time_ns() - start) / repeats


def compare(bench, name, rows, rounds):
    element_type, _ = TYPES[name]
    session, binding, arrays = bound_session(element_type, rows)
    ours = subprocess.Popen(
        [bench, "--rows", name, str(rows), str(rounds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    repeats = 200 if rows == 1 else 1
    time_of(session, binding, repeats)
    ratios = {"in place": [], "fresh": []}
    times = []
    for _ in range(rounds):
        session.run_with_iobinding(binding)
        theirs = time_of(session, binding, repeats)
        ours.stdin.write("\n")
        ours.stdin.flush()
        line = [float(v) for v in ours.stdout.readline().split()]
        times.append((theirs, *line))
        for ratio, time_taken in zip(ratios.values(), line):
            ratio.append(theirs / time_taken)
    ours.stdin.close()
    ours.wait()
    medians = [statistics.median(column) / rows for column in zip(*times)]
    print(
        f"{name:4} {rows:4}x{LENGTH}: ns a row: ONNX Runtime {medians[0]:7.0f},"
        f" in place {medians[1]:6.0f}, fresh {medians[2]:6.0f};"
        + "".join(
            f" {kind} {statistics.median(ratio):.2f} times as fast"
            f" [{np.quantile(ratio, 0.25):.2f}, {np.quantile(ratio, 0.75):.2f}]"
            for kind, ratio in ratios.items()
        ),
        flush=True,
    )


def main():
    bench = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 51
    print(f"onnx {onnx.__version__}, onnxruntime {ort.__version__}")
    for name in TYPES:
        for rows in (512, 1):
            compare(bench, name, rows, rounds)


if __name__ == "__main__":
    main()
