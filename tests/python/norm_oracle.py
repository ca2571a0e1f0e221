# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Says from numbers alone whether a value is the RMSNorm of a sum.

Knows nothing of patterns. A model is run in float64, where a Cast between
float types does nothing, on rows whose magnitudes span twelve decades. Then
y = scale * s / sqrt(mean(s * s) + epsilon) holds to a billionth or not at all:
a clip shows on the large rows, an epsilon in the wrong place on the small ones.
"""

import numpy as np
import onnx
import onnx.inliner
import onnx.reference
import onnx.reference.op_run
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import addnorm

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
TOLERANCE = 1e-9
BATCHES = 3


class SimplifiedLayerNormalization(onnx.reference.op_run.OpRun):
    """ONNX Runtime's operator, which it keeps in the default domain."""

    op_domain = ""

    def _run(self, x, scale, axis=-1, epsilon=1e-5, stash_type=1):
        if scale.dtype.kind in "iub":
            raise TypeError("the scale is no float")
        axes = tuple(range(axis % x.ndim, x.ndim))
        mean = np.mean(np.square(x), axis=axes, keepdims=True)
        return ((x / np.sqrt(mean + np.asarray(epsilon, mean.dtype)) * scale).astype(scale.dtype),)


def trace(model, feeds):
    """{name: array} of the main graph's values, inputs and initializers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = list(dict.fromkeys(o for node in model.graph.node for o in node.output if o))
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    evaluator = onnx.reference.ReferenceEvaluator(copy, new_ops=[SimplifiedLayerNormalization])
    with np.errstate(all="ignore"):
        results = evaluator.run(None, feeds)
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return {**values, **feeds, **{n: np.asarray(r) for n, r in zip(names, results)}}


# ---- in float64 -------------------------------------------------------------


def widened_tensor(tensor):
    if tensor.data_type not in FLOATS:
        return tensor
    array = numpy_helper.to_array(tensor)
    return numpy_helper.from_array(sharpened(array), tensor.name)


def sharpened(array):
    """The array in float64; 1/n, if that is what it is the nearest value of its type to."""
    wide = array.astype(np.float64)
    if array.size == 1 and 2 ** -12 < abs(wide.flat[0]) < 0.5:
        inverse = 1 / np.round(1 / wide)
        return np.where(inverse.astype(array.dtype) == array, inverse, wide)
    return wide


def widen_attribute(node, attribute):
    if attribute.type == AttributeProto.TENSOR:
        attribute.t.CopyFrom(widened_tensor(attribute.t))
    elif node.op_type == "Cast" and attribute.name == "to" and attribute.i in FLOATS:
        attribute.i = TensorProto.DOUBLE
    elif attribute.name in ("value_float", "value_floats") and node.op_type == "Constant":
        value = np.asarray(helper.get_attribute_value(attribute), np.float32).astype(np.float64)
        attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))
    elif attribute.type == AttributeProto.GRAPH:
        widen_graph(attribute.g)


def widen_graph(graph):
    for tensor in graph.initializer:
        tensor.CopyFrom(widened_tensor(tensor))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in FLOATS:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            widen_attribute(node, attribute)


def widened(model):
    """The model with every float type replaced by float64, functions inlined."""
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    widen_graph(copy.graph)
    return copy


def row_feeds(model, shape_of, special, batch, rng):
    """Inputs whose rows have magnitudes from 1e-6 to 1e6, the same row alike in all inputs."""
    feeds = {}
    initialized = {t.name for t in model.graph.initializer}
    for value in model.graph.input:
        if value.name in initialized:
            continue
        shape = shape_of(value)
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name in special:
            array = np.broadcast_to(np.asarray(special[value.name], dtype), shape)
        elif dtype.kind == "f" and len(shape) > 1:
            rows = int(np.prod(shape[:-1]))
            magnitudes = 10.0 ** (np.linspace(-6, 6, rows) if rows > 1 else 6 * (batch - 1))
            array = rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape)
            array = array * np.reshape(magnitudes, (*shape[:-1], 1))
        elif dtype.kind in "iu":
            array = rng.integers(0, 3, shape)
        elif dtype.kind == "b":
            array = rng.integers(0, 2, shape)
        else:
            array = rng.uniform(0.5, 2, shape)
        feeds[value.name] = np.asarray(array, dtype)
    return feeds


class Oracle:
    """The values of a model's main graph in float64, for some inputs."""

    def __init__(self, model, shape_of, special=(), seed=0):
        wide = widened(model)
        rng = np.random.default_rng(seed)
        self.traces = [trace(wide, row_feeds(wide, shape_of, dict(special), i, rng))
                       for i in range(BATCHES)]
        self.epsilons = sorted({0.0, float(np.float32(1e-5)), *scalars(wide)})

    def why_no_norm(self, y, a, b, scale, epsilon):
        """Why y is not scale * norm(a + b); None if it is.

        Without a scale there is none; without an epsilon it may be any number.
        """
        if epsilon is not None and not 0 <= epsilon < np.inf:
            return f"epsilon is {epsilon}"
        means, implied = [], []
        for values in self.traces:
            with np.errstate(all="ignore"):
                s = values[a] + values[b]
                if values[y].shape != s.shape:
                    return f"the result has shape {values[y].shape}, the sum {s.shape}"
                scaled = s * (values[scale] if scale else 1)
                mean = np.broadcast_to(np.mean(s * s, axis=-1, keepdims=True), s.shape)
                good = np.isfinite(mean) & (mean > 0) & np.isfinite(scaled) & (scaled != 0)
                # What the result says of epsilon, element by element.
                found = np.square(scaled / values[y]) - mean
            if np.any(np.sign(values[y][good]) != np.sign(scaled[good])):
                return "a sign differs"
            means.append(mean[good])
            implied.append(found[good])
        means, implied = np.concatenate(means), np.concatenate(implied)
        if not means.size:
            return "no usable row"
        # Small rows say it best. A Cast to float16, which is not seen here, may have rounded it.
        best = np.median(implied[means <= np.min(means) * 1.001])
        if epsilon is not None and not abs(best - epsilon) <= 1e-3 * epsilon + 1e-7 + TOLERANCE * np.min(means):
            return f"epsilon is {best}, not {epsilon}"
        if not np.all(np.abs(implied - best) <= TOLERANCE * (means + abs(best))):
            return "the numbers are no norm of the sum"
        return None

    def norms_of(self, s):
        """Values that equal column constant * norm(s) for one of the model's scalars as epsilon."""
        return [y for y, values in self.traces[0].items()
                if values.ndim and values.shape == self.traces[0][s].shape and values.dtype == np.float64
                and any(self.is_norm(y, s, epsilon) for epsilon in self.epsilons)]

    def is_norm(self, y, s, epsilon):
        with np.errstate(all="ignore"):
            columns = []
            for values in self.traces:
                mean = np.mean(np.square(values[s]), axis=-1, keepdims=True)
                ratio = values[y] * np.sqrt(mean + epsilon) / values[s]
                columns.append(ratio.reshape(-1, ratio.shape[-1] if ratio.ndim else 1))
            columns = np.concatenate(columns)
            spread = np.ptp(columns, axis=0) <= TOLERANCE * np.abs(columns[0])
        return len(columns) > 1 and bool(np.all(spread)) and bool(np.all(columns != 0))


def scalars(model):
    """Single float elements among the constants and the attributes named epsilon."""
    arrays = [numpy_helper.to_array(t) for t in model.graph.initializer]
    for node in addnorm.all_nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                arrays.append(numpy_helper.to_array(attribute.t))
            elif attribute.name == "epsilon":
                arrays.append(np.asarray(attribute.f, np.float64))
    return [float(a.reshape(())) for a in arrays if a.size == 1 and a.dtype == np.float64]

