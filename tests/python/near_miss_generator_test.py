# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures with one or two random changes: whatever is fused is an RMSNorm of the Add's sum.

The judge is norm_oracle.py, which knows numbers and no patterns, together with
the conditions that numbers do not show: what the Add may read, what the scale
may do, that no value is lost. Whatever is fused also gives the same bits and,
inlined, the same operators. After a harmless change the sites are still fused.
See sampling.py for the options; --count 40000 inserts every operator on every edge.
"""

import collections
import dataclasses
import itertools
import json
import tempfile
import unittest
import warnings

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference

import addnorm
import changes
import meaning
import norm_oracle
import oracle_test
import roundings
import sampling
import structure

FOLDERS = ["variants", "types", "operands", "residual"]
INVALID = 3  # exit code
CHOSEN, REST = sampling.options(count=2000)


def shape_of(value):
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value or oracle_test.DIMENSIONS.get(d.dim_param, 3) for d in dims]


def is_shaped(model):
    """Whether the inputs have shapes; without, there is nothing to run."""
    return all(i.type.tensor_type.HasField("shape") for i in model.graph.input)


def with_shapes(model, like):
    """The model, its unshaped inputs as in `like`: only for running."""
    copy = changes.copied(model)
    shapes = {i.name: i.type.tensor_type for i in like.graph.input}
    for value in copy.graph.input:
        if not value.type.tensor_type.HasField("shape") and value.name in shapes:
            value.type.tensor_type.shape.CopyFrom(shapes[value.name].shape)
    return copy


def sorted_nodes(model):
    return structure.with_nodes(model, structure.in_order(model.graph.node))


def feeds_for(model, special=False, seed=0):
    rng = np.random.default_rng(seed)
    feeds = {}
    initialized = {t.name for t in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in initialized:
            copy = onnx.ValueInfoProto()
            copy.CopyFrom(value)
            for dim, size in zip(copy.type.tensor_type.shape.dim, shape_of(value)):
                dim.dim_value = size
            feeds[value.name] = oracle_test.array_for(copy, rng, special)
    return feeds


def settle(model, runnable):
    """(the model with true types of its results, values of a run); None if it cannot be run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = norm_oracle.trace(sorted_nodes(runnable), feeds_for(runnable))
    except Exception:
        return None
    for info in (*model.graph.output, *model.graph.value_info):
        array = values.get(info.name)
        if array is None or not array.dtype.kind or array.dtype == object:
            return None
        tensor = info.type.tensor_type
        tensor.elem_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        given = [d.dim_value for d in tensor.shape.dim]
        if tensor.HasField("shape") and (len(given) != array.ndim or any(
                g and g != size for g, size in zip(given, array.shape))):
            tensor.ClearField("shape")
    for name in [o.name for o in model.graph.output if not o.type.tensor_type.HasField("shape")]:
        output = next(o for o in model.graph.output if o.name == name)
        for _ in range(values[name].ndim):
            output.type.tensor_type.shape.dim.add()
        output.type.tensor_type.shape.SetInParent()
    return model, values


def depends_on_inputs(model, name):
    makers = {o: node for node in model.graph.node for o in node.output if o}
    inputs = {i.name for i in model.graph.input}
    stack, seen = [name], set()
    while stack:
        name = stack.pop()
        if name in inputs:
            return True
        if name in makers and name not in seen:
            seen.add(name)
            stack += structure.reads(makers[name])
    return False


def provably_differ(model, a, b):
    """Whether ONNX's shape inference knows that the two shapes differ."""
    try:
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except onnx.shape_inference.InferenceError:  # it is wrong about a legal model
        return False
    shapes = {v.name: v.type.tensor_type for v in (*graph.input, *graph.output, *graph.value_info)}
    if not all(n in shapes and shapes[n].HasField("shape") for n in (a, b)):
        return False
    first, second = (shapes[n].shape.dim for n in (a, b))
    return len(first) != len(second) or any(
        d.dim_value and e.dim_value and d.dim_value != e.dim_value for d, e in zip(first, second))


def wrong_fusion(model, runnable, fused, counts):
    """What is wrong about the first fused call of the main graph that is not right; else None."""
    calls = [n for n in fused.graph.node if n.domain == addnorm.DOMAIN]
    ours = {f.name: f for f in fused.functions if f.domain == addnorm.DOMAIN}
    try:
        oracle = norm_oracle.Oracle(sorted_nodes(runnable), shape_of, oracle_test.SPECIAL_INPUTS)
    except Exception:  # an input that is an axis, say
        counts["models that cannot be run in float64"] += 1
        return None
    for call in calls:
        a, b, *others = call.input
        names = dict(zip(list(ours[call.op_type].input)[2:], others))
        epsilon = next(x.f for x in call.attribute if x.name == "epsilon")
        if "epsilon" in names:
            epsilon = float(oracle.traces[0][names["epsilon"]].reshape(()))
        if has_integer_cast(ours[call.op_type]):
            epsilon = None
        scale = next((n for role, n in names.items() if role != "epsilon"), None)
        problem = oracle.why_no_norm(call.output[0], a, b, scale, epsilon)
        if problem == "no usable row":
            problem = None
        for operand in (a, b):
            if not depends_on_inputs(model, operand):
                problem = f"{operand} depends on no input"
        if provably_differ(sorted_nodes(model), a, b):
            problem = f"{a} and {b} have different shapes"
        if problem:
            return f"{call.op_type} making {call.output[0]}: {problem}"
    return None


def has_integer_cast(function):
    """The body repeats the Casts of a constant, of which the operand is the source."""
    return any(n.op_type == "Cast" and n.attribute[0].i not in norm_oracle.FLOATS for n in function.node)


class Case:
    """One changed model and what the tool makes of it."""

    def __init__(self, model, base):
        self.runnable = with_shapes(model, base)
        self.model = model

    def problem(self, counts=collections.Counter()):
        """What the tool did wrong; None if nothing. Raises if the model cannot be judged."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = f"{folder}/in.onnx", f"{folder}/out.onnx"
            onnx.save(self.model, source)
            done = addnorm.run("optimize", source, target, "--json")
            if done.returncode not in (0, INVALID):
                return f"exit code {done.returncode}: {done.stderr.strip()}"
            if done.returncode == INVALID:
                counts["refused"] += 1
                return None
            fused = onnx.load(target)
        self.report = json.loads(done.stdout)
        self.sites = len(addnorm.fused_nodes(fused))
        if self.sites == 0:
            counts["models with nothing fused"] += 1
            same = fused.SerializeToString() == self.model.SerializeToString()
            return None if same else "nothing is fused, and yet bytes differ"
        counts["fused sites judged"] += self.sites
        return (wrong_fusion(self.model, self.runnable, fused, counts) or self.other_meaning(fused, counts))

    def other_meaning(self, fused, counts):
        if problem := meaning.difference(self.model, fused):
            return problem
        for special in (False, True):
            feeds = feeds_for(self.runnable, special)
            if addnorm.is_in_reference(self.model):
                same = meaning.same_in_reference(sorted_nodes(self.model), fused, feeds)
                if same is False:
                    return "the reference evaluator's bits differ"
                counts["reference runs" if same else "models that the reference evaluator refuses"] += 1
            if addnorm.is_in_onnxruntime(self.model):
                same = roundings.same_in_onnxruntime(self.model, fused, feeds)
                if same is False:
                    return "ONNX Runtime's bits differ"
                counts["ONNX Runtime runs" if same else "models that ONNX Runtime refuses"] += 1
        return None


@dataclasses.dataclass
class Place:
    """Where an operator can stand: between a value and one reader, or several."""
    value: str
    readers: list  # results of the nodes
    index: int  # of the value among the first one's operands
    sites: int


def places_of(model):
    """Every edge of the norms, and all readers of a sum at once."""
    graph = model.graph
    with tempfile.TemporaryDirectory() as folder:
        fused, report = addnorm.optimize(model, folder)
    left = {o for node in fused.graph.node if node.domain != addnorm.DOMAIN for o in node.output}
    sums = [site["sum"] for site in report["sites"] if site["verdict"] == "fused"]
    inner, inside = [], set(sums)
    for node in structure.in_order(graph.node):
        is_data = inside & set(node.input) and node.op_type not in ("Shape", "ConstantOfShape")
        if is_data and not left & set(node.output):
            inner.append(node)
            inside.update(node.output)
    places = [Place(name, [node.output[0]], index, report["fused"])
              for node in inner for index, name in enumerate(node.input) if name in inside]
    for total in sums:
        readers = [n for n in inner if total in n.input]
        if len(readers) > 1:
            places.append(Place(total, [n.output[0] for n in readers], 0, report["fused"]))
    return places


class Bases:
    """The fixtures, with a run of each."""

    def __init__(self):
        self.all = {}
        for folder in FOLDERS:
            for path in sorted((addnorm.ROOT / "tests/fixtures" / folder).rglob("*.onnxtxt")):
                model = onnx.parser.parse_model(path.read_text())
                if list(addnorm.all_graphs(model.graph.node)) or model.functions or not is_shaped(model):
                    continue
                settled = settle(changes.copied(model), model)
                if settled:
                    self.all[path.stem] = changes.Subject(model, settled[1])

    def drawn(self, rng):
        name = rng.choice(sorted(self.all))
        return name, self.all[name]


class NearMissGeneratorTest(unittest.TestCase):
    sampler = sampling.Sampler(CHOSEN)

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.bases = Bases()

    @classmethod
    def tearDownClass(cls):
        print(f"\nseed {CHOSEN.seed}: {cls.sampler.summary()}")

    def changed(self, rng, table, count):
        """(description, model, base); the model is None if a change did not apply or broke it."""
        name, base = self.bases.drawn(rng)
        subject, said = base, [name]
        for change in [rng.choice(table) for _ in range(count)]:
            said.append(change.__name__)
            model = change(changes.Subject(subject.model, dict(subject.values)), rng)
            settled = settle(model, with_shapes(model, base.model)) if model is not None else None
            if settled is None:
                return " ".join(said), model, None, base.model
            subject = changes.Subject(settled[0], settled[1])
        return " ".join(said), subject.model, subject, base.model

    def test_what_is_fused_is_a_norm(self):
        counts = self.sampler.counts
        for number in self.sampler.numbers():
            rng = self.sampler.generator(number)
            said, model, subject, base = self.changed(rng, changes.CHANGES, rng.choice([1, 1, 1, 2]))
            if subject is None:
                counts["changes that broke the model"] += 1
                if model is not None:
                    self.check_exit_code(number, said, model)
                continue
            counts["models"] += 1
            with self.subTest(said, number=number):
                case = Case(model, base)
                problem = case.problem(counts)
                if problem:
                    self.fail(self.sampler.failed(
                        number, f"{said}: {problem}", model,
                        lambda m: settle(changes.copied(m), with_shapes(m, base)) and Case(m, base).problem(),
                        "FUSED: 0"))
                if CHOSEN.list_missed:
                    self.list_missed(said, number, case)

    def test_an_operator_inside_a_norm_is_named(self):
        """One operator on one edge of a norm: fused all the same, or reported with its place."""
        for name, place, op in self.insertions():
            with self.subTest(name, operator=op, readers=place.readers):
                self.check_named(self.bases.all[name], place, op)

    def insertions(self):
        """A sample of (fixture, place, operator): every fixture, every operator, and others."""
        rng = self.sampler.generator("named")
        fixtures, operators = sorted(self.bases.all), sorted(changes.INSERTERS)
        self.assertGreater(len(fixtures), len(operators))
        rng.shuffle(fixtures)
        drawn, others = [], []
        for name, op in zip(fixtures, itertools.cycle(operators)):
            places = places_of(self.bases.all[name].model)
            rows = [(name, *row) for row in itertools.product(places, operators)]
            row = rng.choice([row for row in rows if row[-1] == op] or [None])
            drawn += [row] * (row is not None)
            others += [other for other in rows if other is not row]
        return drawn + rng.sample(others, min(len(others), CHOSEN.count // 2))

    def check_named(self, base, place, op):
        subject = changes.Subject(base.model, dict(base.values))
        nodes = [subject.makers[r] for r in place.readers]
        inserter = changes.INSERTERS[op]
        if len(nodes) > 1:
            out = changes.insert_before(subject, inserter, place.value, nodes)
        else:
            out = changes.insert_on_edge(subject, inserter, nodes[0], place.index)
        if out is None:
            return
        self.sampler.counts["operators inserted"] += 1
        inserted = [n for n in subject.graph.node if not set(n.output) & set(subject.makers)]
        with tempfile.TemporaryDirectory() as folder:
            _, report = addnorm.optimize(subject.model, folder)
        if report["fused"] == place.sites:
            return
        self.assertNotEqual(op, "Identity")
        near = [place.value, *place.readers, *(o for n in inserted for o in n.output)]
        words = [f"'{v}'" for v in near] + [n.op_type for n in inserted]
        said = [f"{s['node']}: {s['reason']}" for s in report["sites"] if "reason" in s]
        self.assertTrue(any(w in line for w in words for line in said), said)

    def check_exit_code(self, number, said, model):
        """A model that nothing can run may be refused, but not crashed upon."""
        with self.subTest(said, number=number), tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/in.onnx")
            done = addnorm.run("optimize", f"{folder}/in.onnx", f"{folder}/out.onnx")
            self.assertIn(done.returncode, (0, INVALID), f"--only {number}: {done.stderr}")

    def list_missed(self, said, number, case):
        """For people: where the numbers know a norm and nothing is fused."""
        if getattr(case, "sites", 0) > 0:
            return
        oracle = norm_oracle.Oracle(sorted_nodes(case.runnable), shape_of, oracle_test.SPECIAL_INPUTS)
        known = {node.output[0]: oracle.norms_of(node.output[0]) for node in case.model.graph.node
                 if node.op_type == "Add" and all(depends_on_inputs(case.model, n) for n in node.input)}
        known = {s: ys for s, ys in known.items() if ys}
        if known:
            reasons = [site.get("reason") for site in case.report["sites"]]
            print(f"missed? --only {number}: {said}: {known}: {reasons}")

    def test_a_harmless_change_takes_no_site(self):
        counts = self.sampler.counts
        for number in self.sampler.numbers():
            if number % 4 and CHOSEN.only is None:
                continue
            rng = self.sampler.generator(f"harmless {number}")
            said, model, subject, base = self.changed(rng, changes.HARMLESS, rng.choice([1, 1, 2]))
            if subject is None:
                continue
            with self.subTest(said, number=number):
                case, before = Case(model, base), Case(base, base)
                self.assertIsNone(before.problem())
                problem = case.problem() or (
                    case.sites != before.sites and f"{case.sites} sites, {before.sites} before")
                counts["models with a harmless change"] += 1
                if problem:
                    self.fail(self.sampler.failed(
                        number, f"{said}: {problem}", model, lambda m: Case(m, base).problem() or False,
                        f"FUSED: {before.sites}"))


if __name__ == "__main__":
    sampling.main(CHOSEN, REST)
