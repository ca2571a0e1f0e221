# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""verify and optimize --verify from outside: verdicts, options, reports, files."""

import copy
import json
import re
import unittest

import numpy as np
import onnx
import onnx.checker
import onnx.parser
from onnx import helper, numpy_helper

import addnorm
import mutants
from verifying import ROWS, VerifyTest, lines, load, save


class OptionsTest(VerifyTest):
    HEAD_OF_SYMBOLS = '<ir_version: 8, opset_import: ["" : 18]> g (float[n] x) => (float[n] y) '

    def mutant(self, name, change):
        original, fused, _ = self.fuse(name)
        change(fused)
        return original, save(fused, self.folder / "mutant.onnx")

    def test_require_proof(self):
        original, path = self.mutant("llama-dynamo-f16", mutants.epsilon_one_ulp)
        report = self.verify(original, path, status=0)
        self.assertEqual(report["verdict"], "equal on what was run")
        self.assertIn("no proof", self.verify(original, path, "--require-proof", status=1)["error"])

    def test_one_file_is_compared_with_its_inlined_form(self):
        _, _, path = self.fuse("llama-dynamo-f16")
        report = self.verify(path, status=0)
        self.assertEqual(report["verdict"], "proven")
        self.assertNotIn("b", report)
        self.assertGreater(report["run"]["rounds"][0]["nodes_b"], 0)
        self.assertGreater(report["kernels"]["words"], 0)

    def test_one_round_shares_nothing_that_is_computed(self):
        original, fused, path = self.fuse("llama-dynamo-f16")
        report = self.verify(original, path, status=0)
        apart = report["run"]["only_weights_shared"]
        self.assertEqual((apart["compared"], apart["nodes_b"]), (True, len(fused.graph.node)))
        self.assertLess(report["run"]["rounds"][0]["nodes_b"], apart["nodes_b"])
        text = addnorm.run("verify", original, path).stdout
        self.assertIn(f"1 round with only weights shared: {apart['nodes_b']} nodes", " ".join(text.split()))

    def test_structure_only_runs_nothing(self):
        original, path = self.mutant("llama-dynamo-f16", mutants.epsilon_one_ulp)
        report = self.verify(original, path, "--structure-only", status=1)
        self.assertEqual(report["verdict"], "different")
        self.assertFalse(report["run"]["compared"])
        self.assertFalse(report["kernels"]["compared"])
        same = self.verify(original, self.folder / "out.onnx", "--structure-only", status=0)
        self.assertEqual(same["verdict"], "proven")

    def test_limits_need_a_run(self):
        original, _, path = self.fuse("variants/norm/divide")
        for limit in ("--max-ulp", "--max-abs"):
            done = addnorm.run("verify", original, path, "--structure-only", limit, "1")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(limit, done.stderr)
            self.assertIn("--structure-only", done.stderr)

    def test_an_absolute_limit_is_a_finite_number_from_0_on(self):
        original, _, path = self.fuse("variants/norm/divide")
        for limit in ("nan", "inf", "-1", "-inf", "1e999", "x", "0x10", "0x1p3", ""):
            done = addnorm.run("verify", original, path, f"--max-abs={limit}")
            self.assertEqual(done.returncode, 2, limit)
            self.assertIn("--max-abs", done.stderr)
            self.assertLess(max(map(len, done.stderr.splitlines())), 100)
        for limit in ("0", "0.5", "1e-30"):
            self.verify(original, path, "--max-abs", limit, status=0)

    def test_whole_numbers_are_decimal(self):
        original, _, path = self.fuse("variants/norm/divide")
        for option in ("--max-ulp", "--rounds", "--threads", "--seed"):
            for number in ("-1", "0x10", "1.5", "1e3", "99999999999999999999"):
                done = addnorm.run("verify", original, path, f"{option}={number}")
                self.assertEqual(done.returncode, 2, f"{option}={number}")
                self.assertIn(f"error: {option}: {number} is not a whole number from ", done.stderr)
            # Octal it would be eight.
            report = self.verify(original, path, "--seed=010", status=0)
            self.assertEqual(report["run"]["rounds"][0]["seed"], 10)

    def test_folders_without_a_name_are_refused(self):
        original, _, path = self.fuse("variants/norm/divide")
        for option in ("--inputs", "--reduce"):
            done = addnorm.run("verify", original, path, option, "")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"error: {option}: expected a path, found an empty word\n", done.stderr)

    def test_a_folder_that_cannot_be_looked_at_is_no_folder_that_is_full(self):
        original, _, path = self.fuse("variants/norm/divide")
        done = addnorm.run("verify", original, path, "--reduce", "n" * 300)
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn(": file name too long\n", done.stderr)

    def test_a_run_without_elements_shows_nothing(self):
        """Proven stays proven, but nothing was run for it; nothing else speaks for other models."""
        text = self.HEAD_OF_SYMBOLS + "{ y = Neg(x) }"
        original = save(onnx.parser.parse_model(text), self.folder / "a.onnx")
        other = save(onnx.parser.parse_model(text.replace("y = Neg(x)", "z = Abs(x) y = Neg(z)")),
                     self.folder / "b.onnx")
        reason = "nothing was compared: the outputs have no elements"
        proven = self.verify(original, original, "--dim", "n=0", status=0)
        self.assertEqual((proven["verdict"], proven["run"]["compared"]), ("proven", False))
        self.assertEqual(proven["warnings"], [f"the run shows nothing: {reason}"])
        report = self.verify(original, other, "--dim", "n=0", status=3)
        self.assertEqual((report["verdict"], report["run"]["words"]), ("not comparable", 0))
        self.assertEqual(report["run"]["reason"], reason)
        self.assertIn(reason, addnorm.run("verify", original, other, "--dim", "n=0").stdout)

    def test_threads_do_not_matter(self):
        original, path = self.mutant("llama-torchscript-f32", mutants.wrong_axis)
        for other, status in [(path, 1), (self.folder / "out.onnx", 0)]:
            one, four = (self.verify(original, other, "--threads", n, status=status) for n in (1, 4))
            self.assertEqual({**one, "command": ""}, {**four, "command": ""})

    def test_other_targets_are_not_exact(self):
        text = (addnorm.ROOT / "tests/fixtures/variants/inverse/reciprocal.onnxtxt").read_text()
        text = re.sub(r'"" : \d+', '"" : 23', text).replace("ir_version: 10", "ir_version: 11")
        for model, target in [(load("llama-torchscript-f32"), "ort"), (onnx.parser.parse_model(text), "ort"),
                              (onnx.parser.parse_model(text), "onnx")]:
            with self.subTest(model.graph.name, target=target):
                original, path = save(model, self.folder / "in.onnx"), self.folder / "target.onnx"
                is_block = len(model.graph.node) < 100
                done = addnorm.run("optimize", original, path, "--target", target, "--force", "--json")
                self.assertIn("fused", [site["verdict"] for site in json.loads(done.stdout)["sites"]])
                rows = ROWS if is_block else []
                report = self.verify(original, path, *rows, status=1)
                self.assertEqual(report["verdict"], "different")
                outputs = [o for r in report["run"]["rounds"] for o in r["outputs"]]
                self.assertTrue(any(o.get("ulps") for o in outputs))
                most = max(o.get("max_ulps", 0) for o in outputs)
                allowed = self.verify(original, path, "--max-ulp", most, *rows, status=0)
                self.assertEqual(allowed["verdict"], "different")
                self.verify(original, path, "--max-ulp", most - 1, *rows, status=1)

    def test_seed_and_sizes_are_reported(self):
        original, _, path = self.fuse("variants/norm/divide")
        report = self.verify(original, path, "--seed", 5, "--dim", "batch=3", status=0)
        rounds = report["run"]["rounds"]
        self.assertEqual([r["seed"] for r in rounds], [5, 6, 7])
        self.assertEqual({r["dims"]["batch"] for r in rounds}, {3})
        self.assertGreater(len({r["dims"]["seq"] for r in rounds}), 1)
        self.assertLess(rounds[2]["scale"], rounds[0]["scale"])
        self.assertIn("--seed 5", report["command"])


class ReportTest(VerifyTest):
    def test_fields(self):
        original, fused, path = self.fuse("variants/norm/divide")
        report = self.verify(original, path, status=0)
        self.assertEqual(report["schema"], "onnx-addnorm/verify/1")
        self.assertEqual(list(report), ["schema", "exit_code", "verdict", "a", "b", "structure", "kernels", "run",
                                        "command"])
        self.assertEqual(set(report["structure"]), {"compared", "equal", "differences", "more", "swapped_operands"})
        self.assertEqual(set(report["kernels"]), {"compared", "words", "calls_left_out", "targets", "results"})
        self.assertEqual(set(report["kernels"]["results"][0]), {"op", "rows", "has_kernel", "comparison"})
        self.assertEqual(set(report["run"]), {"compared", "words", "different", "rounds", "only_weights_shared"})
        self.assertEqual(set(report["run"]["rounds"][0]),
                         {"seed", "scale", "dims", "nodes_a", "nodes_b", "outputs", "own_values"})
        mutants.wrong_axis(fused)
        report = self.verify(original, save(fused, self.folder / "mutant.onnx"), status=1)
        self.assertEqual(list(report)[2], "error")
        output = report["run"]["rounds"][0]["outputs"][0]
        self.assertEqual(set(output), {"name", "words", "different", "nan_payloads", "first_index", "first_at",
                                       "expected", "found", "max_ulps", "max_ulps_place", "ulps", "max_abs"})
        self.assertEqual(output["name"], fused.graph.output[0].name)
        self.assertEqual(set(output["max_abs"]), {"value", "at", "expected", "found"})
        self.assertRegex(output["found"], r"^0x[0-9a-f]{8} \(.*\)$")
        text = addnorm.run("verify", original, self.folder / "mutant.onnx").stdout
        for part in ["different: ", "  structure  1 difference", "  first      ", "expected 0x", "words differ",
                     "  again      onnx-addnorm verify "]:
            self.assertIn(part, text)
        self.assertLess(len(text.splitlines()), 40)

    def test_absolute_differences(self):
        """The largest difference of each output, as NumPy computes it from what ONNX Runtime gives."""
        model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
            g (float[2,1,3] x) => (float[2,1,3] y, float[2,1,3] z, float[2,1,3] same)
            <float[2,1,3] k = {1, 2, 3, 4, 5, 6}> { y = Mul(x, k) z = Add(x, k) same = Abs(x) }""")
        original = save(model, self.folder / "a.onnx")
        k = numpy_helper.to_array(model.graph.initializer[0]).copy()
        k[1, 0, 1] += 0.75
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(k, "k"))
        other = save(model, self.folder / "b.onnx")
        x = np.array([[[0, 1, 2]], [[3, 4, 8]]], np.float32)
        (self.folder / "in").mkdir()
        np.save(self.folder / "in/x.npy", x)
        report = self.verify(original, other, "--inputs", self.folder / "in", status=1)
        y, z, same = report["run"]["rounds"][0]["outputs"]
        self.assertEqual([o["name"] for o in (y, z, same)], ["y", "z", "same"])
        self.assertEqual(y["max_abs"], {"value": 3.0, "at": [1, 0, 1], "expected": "20", "found": "23"})
        self.assertEqual(z["max_abs"], {"value": 0.75, "at": [1, 0, 1], "expected": "9", "found": "9.75"})
        self.assertNotIn("max_abs", same)
        text = addnorm.run("verify", original, other, "--inputs", self.folder / "in").stdout
        self.assertIn("  outputs    2 of 3 differ\n    'y': 1 of 6 words differ, by at most ", text)
        self.assertIn(" ULPs and 3 (at [1,0,1]: 23, expected 20)\n", text)
        limits = [(["--max-abs", "3"], 0), (["--max-abs", "2.9"], 1), (["--max-ulp", "1"], 1),
                  (["--max-abs", "3", "--max-ulp", "1"], 1), (["--max-abs", "3", "--max-ulp", str(2**40)], 0)]
        for limit, status in limits:
            with self.subTest(limit):
                report = self.verify(original, other, "--inputs", self.folder / "in", *limit, status=status)
                self.assertEqual(report["verdict"], "different")
                self.assertEqual(report.get("allowed", {}).get("bit_exact"), None if status else False)
        report = self.verify(original, other, "--max-abs", "1e30", "--require-proof", status=1)
        self.assertEqual(report["error"], "equal within limits is no proof")
        self.verify(original, original, "--max-abs", "1e30", "--require-proof", status=0)
        allowed = addnorm.run("verify", original, other, "--max-abs", "1e30").stdout
        self.assertIn("  allowed    by --max-abs 1e+30: equal within limits is not bit-exact\n", allowed)

    def test_differences_are_counted_among_the_words_of_the_same_runs(self):
        original, path = save(load("llama-dynamo-f16"), self.folder / "in.onnx"), self.folder / "skip.onnx"
        self.assertEqual(addnorm.run("optimize", original, path, "--target", "ort").returncode, 0)
        run = self.verify(original, path, status=1)["run"]
        compared = [c for r in run["rounds"] for c in r["outputs"] + [v for v in r["own_values"] if v["are_twins"]]]
        for field in ("words", "different"):
            self.assertEqual(run[field], sum(c[field] for c in compared))
        apart = run["only_weights_shared"]
        self.assertTrue(0 < apart["different"] <= apart["words"], apart)
        text = addnorm.run("verify", original, path).stdout
        # The count of all is not of the value that differs first.
        self.assertRegex(text, rf"\n  differ     side by side: {run['different']} of {run['words']} words differ, by [^\n]*"
                               rf"\n             only weights shared: {apart['different']} of {apart['words']} words "
                               r"differ, by [^\n]*\n  first      ")
        self.assertRegex(text, r"\n  first      [^\n]*\n             \[0,0,0\]: [^\n]*\n  outputs ")

    def test_the_places_of_both_largest_distances(self):
        """Near 0 a small difference is many ULPs."""
        model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]>
            g (float[3] x) => (float[3] y) <float[3] k = {0.0, 1.0, 64.0}> { y = Mul(x, k) }""")
        original = save(model, self.folder / "a.onnx")
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([2**-20, 1, 64.5], np.float32), "k"))
        other = save(model, self.folder / "b.onnx")
        (self.folder / "in").mkdir()
        np.save(self.folder / "in/x.npy", np.ones(3, np.float32))
        arguments = [original, other, "--inputs", self.folder / "in"]
        (output,) = self.verify(*arguments, status=1)["run"]["rounds"][0]["outputs"]
        # The bits of 2^-20, as from 0 on every float is one more.
        self.assertEqual(output["max_ulps"], (127 - 20) << 23)
        self.assertEqual(output["max_ulps_place"], {"at": [0], "expected": "0", "found": "9.536743e-07"})
        self.assertEqual(output["max_abs"], {"value": 0.5, "at": [2], "expected": "64", "found": "64.5"})
        text = " ".join(addnorm.run("verify", *arguments).stdout.split())
        self.assertIn(f"by at most {output['max_ulps']} ULPs (at [0]: 9.536743e-07, expected 0) and 0.5 "
                      "(at [2]: 64.5, expected 64)", text)

    def test_one_node_and_one_ulp(self):
        model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]>
            g (float[2] x) => (float[2] y) <float[2] k = {1, 1}> { y = Add(x, k) }""")
        original = save(model, self.folder / "a.onnx")
        k = np.array([1, np.nextafter(np.float32(1), np.float32(2))], np.float32)
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(k, "k"))
        other = save(model, self.folder / "b.onnx")
        (self.folder / "in").mkdir()
        np.save(self.folder / "in/x.npy", np.zeros(2, np.float32))
        text = addnorm.run("verify", original, other, "--inputs", self.folder / "in", "-v").stdout
        self.assertIn("1 of 2 words differ, by at most 1 ULP and ", text)
        self.assertIn(" 1 ULP: 1\n", text)
        text = addnorm.run("verify", original, original).stdout
        self.assertRegex(" ".join(text.split()), r"1 node of B computes \d+ words by itself")

    def test_limits_do_not_allow_another_interface(self):
        original, fused, _ = self.fuse("variants/norm/divide")
        mutants.call(fused).output[0] = fused.graph.output[0].name = "other"
        self.verify(original, save(fused, self.folder / "mutant.onnx"), "--max-ulp", "5", "--max-abs", "5", status=1)

    def test_the_command_finds_the_same_again(self):
        original, fused, _ = self.fuse("variants/norm/divide")
        mutants.wrong_axis(fused)
        path, data = save(fused, self.folder / "mutant.onnx"), self.folder / "in"
        data.mkdir()
        np.save(data / "residual.npy", np.arange(8, dtype=np.float32).reshape(1, 2, 4))
        limits = ["--max-ulp", "1", "--max-abs", "1e-30", "--strict-nan"]
        for options in [["--seed", "0", *limits], ["--inputs", str(data)], ["--inputs", str(data), "--seed", "3"],
                        ["--inputs", str(data), *limits]]:
            with self.subTest(options):
                report = self.verify(original, path, *options, status=1)
                self.assertEqual(report["command"], " ".join(["onnx-addnorm verify", str(original), str(path), *options]))
                again = self.verify(*report["command"].split()[2:], status=1)
                self.assertEqual(again, report)

    def test_the_histogram_is_shown_on_request(self):
        original, fused, _ = self.fuse("llama-dynamo-f16")
        mutants.wrong_axis(fused)
        path = save(fused, self.folder / "mutant.onnx")
        for options, shown in [([], False), (["-v"], True), (["--max-ulp", "1"], True)]:
            with self.subTest(options):
                text = addnorm.run("verify", original, path, *options).stdout
                self.assertEqual("3-4 ULPs: " in text, shown)
        self.assertIn("3-4", self.verify(original, path, status=1)["run"]["rounds"][0]["outputs"][0]["ulps"])

    def test_a_difference_in_a_fused_op_names_its_call(self):
        original, fused, _ = self.fuse("llama-dynamo-f16")
        mutants.wrong_axis(fused)
        report = self.verify(original, save(fused, self.folder / "mutant.onnx"), "--structure-only", status=1)
        call = mutants.call(fused)
        difference = report["structure"]["differences"][0]
        self.assertEqual(difference["call_b"], {"node": f"{call.op_type} '{call.name}'", "outputs": list(call.output)})
        self.assertIn(f" in {call.op_type} '{call.name}', which makes '{call.output[0]}'", difference["place_b"])
        self.assertNotIn("call_a", difference)

    def test_rounds_of_given_inputs(self):
        original, _, path = self.fuse("variants/norm/divide")
        (self.folder / "in").mkdir()
        np.save(self.folder / "in/residual.npy", np.ones((1, 1, 4), np.float32))
        done = addnorm.run("verify", original, path, "--inputs", self.folder / "in", "--rounds", "5")
        self.assertEqual((done.returncode, done.stderr), (0, "warning: --rounds 5: one round is run, as --inputs has "
                                                          "the same files for each\n"))
        self.assertEqual(addnorm.run("verify", original, path, "--inputs", self.folder / "in").stderr, "")

    def test_given_inputs_that_cannot_be_run_are_a_warning(self):
        original, _, path = self.fuse("llama-dynamo-f16")
        model, data = load("llama-dynamo-f16"), self.folder / "in"
        data.mkdir()
        ids = next(i for i in model.graph.input if i.type.tensor_type.elem_type == onnx.TensorProto.INT64)
        np.save(data / f"{ids.name}.npy", np.full((2, 7), 10**6, np.int64))
        done = addnorm.run("verify", original, path, "--inputs", data, "--json")
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, report["verdict"]), (0, "proven"), done.stderr)
        (warning,) = report["warnings"]
        self.assertRegex(warning, "^the given inputs could not be run: A: .*1000000")
        self.assertEqual(done.stderr, f"warning: {warning}\n")
        quiet = addnorm.run("verify", original, path, "--inputs", data, "--structure-only")
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))

    def test_a_guess_that_fails(self):
        text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, s] a) => (float[n, s] y)
            <float[3] w = {1, 2, 3}> { [odd] y = %s(a, w) }"""
        paths = [save(onnx.parser.parse_model(text % op), self.folder / f"{op}.onnx") for op in ("Add", "Sub")]
        report = self.verify(*paths, status=3)
        self.assertIn("Add 'odd'", report["run"]["reason"])
        self.assertEqual(report["run"]["hint"], "n=1, s=8 are guesses: --dim NAME=N sets others")
        self.assertEqual(report["hint"], report["run"]["hint"])
        self.assertIn("             hint: n=1, s=8 are guesses", addnorm.run("verify", *paths).stdout)
        self.verify(*paths, "--dim", "s=3", status=1)

    def test_why_no_kernel_was_compared(self):
        original, _, _ = self.fuse("variants/norm/divide")
        self.assertEqual(self.verify(original, original, status=0)["kernels"]["reason"], "there is no fused op")
        text = (addnorm.ROOT / "tests/fixtures/variants/norm/multiply_unscaled.onnxtxt").read_text()
        addnorm.optimize(onnx.parser.parse_model(text.replace("seq,4]", "seq,n]")), self.folder)
        report = self.verify(self.folder / "in.onnx", self.folder / "out.onnx", status=0)
        self.assertEqual(report["kernels"]["reason"], "types or row length are not known (1 call of fused ops)")

    def test_epsilon_operands_are_compared(self):
        for name in ["operands/opset_11", "operands/epsilon_int64", "types/f64"]:
            with self.subTest(name):
                original, fused, path = self.fuse(name)
                self.assertIn("epsilon", mutants.body(fused).input)
                self.assertGreater(self.verify(original, path, status=0)["kernels"]["words"], 0)


class ReduceTest(VerifyTest):
    def check(self, name, change, most_nodes):
        original, fused, _ = self.fuse(name)
        change(fused)
        reduced = self.folder / "reduced"
        path = save(fused, self.folder / "mutant.onnx")
        first = self.verify(original, path, "--reduce", reduced, status=1)["run"]["first_difference"]
        a, b = (onnx.load(reduced / f"{side}.onnx") for side in "ab")
        onnx.checker.check_model(a)
        self.assertLessEqual(len(a.graph.node), most_nodes)
        self.assertLessEqual(len(b.graph.node), most_nodes)
        again = self.verify(reduced / "a.onnx", reduced / "b.onnx", "--inputs", reduced / "test_data_set_0", status=1)
        for field in ("first_index", "expected", "found"):
            self.assertEqual(again["run"]["first_difference"][field], first[field])
        self.assertIn("not empty", self.verify(original, path, "--reduce", reduced, status=2)["error"])

    def test_a_site_of_a_model(self):
        self.check("llama-dynamo-f16", mutants.late_for_early, 14)

    def test_what_was_not_run_is_not_reduced(self):
        original, fused, _ = self.fuse("variants/norm/divide")
        mutants.wrong_axis(fused)
        path = save(fused, self.folder / "mutant.onnx")
        report = self.verify(original, path, "--structure-only", "--reduce", self.folder / "reduced", status=1)
        self.assertIn("no value differed", report["not_reduced"])
        self.assertFalse((self.folder / "reduced").exists())

    def test_a_block(self):
        self.check("variants/norm/divide", mutants.reciprocal_for_divide, 9)

    def test_a_weight_outside(self):
        self.check("llama-dynamo-f16", mutants.other_operator_outside, 1)

    def in_a_graph(self, outside, inside, extra=""):
        """A model whose Neg is in a branch that captures s, and the same with another operator for it."""
        paths = []
        for operator in ("Neg", "Abs"):
            text = (f'<ir_version: 10, opset_import: ["" : 18, "my" : 1]> g (float[2,4] x, bool c) => (float[2,4] y) '
                    f"<float[4] w = {{1, 2, 3, 4}}> {{ s = Sqrt(x) t = Exp(s) {outside} y = Mul(u, t) }}"
                    ).replace("BODY", inside.replace("OP", operator)) + extra.replace("OP", operator)
            paths.append(save(onnx.parser.parse_model(text), self.folder / f"{operator}.onnx"))
        return paths

    def check_pair(self, original, other, most_nodes):
        reduced = self.folder / "reduced"
        first = self.verify(original, other, "--reduce", reduced, status=1)
        self.assertNotIn("not_reduced", first)
        a, b = (onnx.load(reduced / f"{side}.onnx") for side in "ab")
        for model in (a, b):
            onnx.checker.check_model(model)
            self.assertLessEqual(len(model.graph.node), most_nodes)
        again = self.verify(reduced / "a.onnx", reduced / "b.onnx", "--inputs", reduced / "test_data_set_0", status=1)
        for field in ("first_index", "expected", "found"):
            self.assertEqual(again["run"]["first_difference"][field], first["run"]["first_difference"][field])
        return a, b

    def test_a_branch(self):
        a, b = self.check_pair(*self.in_a_graph(
            "u = If(c) <then_branch = p () => (float[2,4] o) { o = BODY(t) }, "
            "else_branch = q () => (float[2,4] o) { k = Add(s, w) o = BODY(k) }>", "OP"), 1)
        self.assertEqual({i.name for i in a.graph.input}, {"c", "s", "t"})
        self.assertEqual([n.op_type for n in b.graph.node], ["If"])

    def test_a_loop(self):
        self.check_pair(*self.in_a_graph(
            "m = Constant<value_int = 3>() h = Constant<value = bool {1}>() "
            "u = Loop(m, h, s) <body = l (int64 i, bool go, float[2,4] v) => (bool on, float[2,4] z) "
            "{ on = Identity(go) k = Mul(v, t) z = BODY(k) }>", "OP"), 3)

    def test_a_function_with_a_branch(self):
        a, _ = self.check_pair(*self.in_a_graph(
            "u = my.F(s, c)", "",
            '<domain: "my", opset_import: ["" : 18]> F (a, c) => (r) { '
            "r = If(c) <then_branch = p () => (float[2,4] o) { o = OP(a) }, "
            "else_branch = q () => (float[2,4] o) { o = OP(a) }> }"
            '<domain: "my", opset_import: ["" : 18]> G (a) => (r) { r = Sin(a) }'), 1)
        self.assertEqual([f.name for f in a.functions], ["F"])

    def test_names_that_mean_another_value_in_the_other_model(self):
        head = '<ir_version: 10, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) '
        paths = [save(onnx.parser.parse_model(head + text), self.folder / f"{i}.onnx") for i, text in enumerate([
            "{ s = Sqrt(x) y = Neg(s) }",
            # A's s is called r here.
            "{ r = Sqrt(x) s = Exp(r) y = Neg(s) }"])]
        self.check_pair(*paths, 2)

    def test_another_weight(self):
        self.check("llama-torchscript-f32", mutants.another_weight, 14)


class FilesTest(VerifyTest):
    def external(self, fused, name):
        """Saves with its weights in a data file."""
        onnx.save(copy.deepcopy(fused), self.folder / name, save_as_external_data=True, location=f"{name}.data",
                  size_threshold=64)
        return self.folder / name

    def test_a_bit_in_a_data_file(self):
        original, fused, _ = self.fuse("llama-dynamo-f16")
        same = self.external(fused, "same.onnx")
        self.assertEqual(self.verify(original, same, status=0)["verdict"], "proven")
        mutants.flipped_bit(fused)
        report = self.verify(original, self.external(fused, "flipped.onnx"), "--require-proof", status=1)
        self.assertIn("weight", " ".join(lines(report["structure"]["differences"])))

    def test_two_files_with_the_same_data(self):
        model = load("llama-dynamo-f16")
        source = self.external(model, "external.onnx")
        fused = self.folder / "fused.onnx"
        self.assertEqual(addnorm.run("optimize", source, fused).returncode, 0)
        self.assertEqual(self.verify(source, fused, status=0)["verdict"], "proven")

    def test_other_files(self):
        original, _, path = self.fuse("variants/norm/divide")
        (self.folder / "text.txt").write_text("no model")
        self.assertIn("missing.onnx", self.verify(original, self.folder / "missing.onnx", status=4)["error"])
        self.assertIn("text.txt", self.verify(original, self.folder / "text.txt", status=3)["error"])
        self.assertIn("text.txt", self.verify(self.folder / "text.txt", path, status=3)["error"])
        self.assertEqual(addnorm.run("verify").returncode, 2)
        other = self.fuse("variants/norm/scaled_inverse")[2].rename(self.folder / "other.onnx")
        original, _, _ = self.fuse("variants/norm/divide")
        self.assertEqual(self.verify(original, other, status=1)["verdict"], "different")

    def test_inputs_and_outputs(self):
        def rename_output(model):
            mutants.call(model).output[0] = model.graph.output[0].name = "other"

        def drop_output(model):
            del model.graph.output[1]

        def rename_input(model):
            mutants.call(model).input[0] = model.graph.input[0].name = "other"

        def another_input(model):
            model.graph.input.append(helper.make_tensor_value_info("extra", onnx.TensorProto.FLOAT, [1]))

        for change, name in [(rename_output, "'other'"), (drop_output, "'s'"), (rename_input, "'other'"),
                             (another_input, "'extra'")]:
            with self.subTest(change.__name__):
                original, fused, _ = self.fuse("variants/norm/divide")
                change(fused)
                report = self.verify(original, save(fused, self.folder / "mutant.onnx"), status=1)
                self.assertEqual(report["verdict"], "different")
                self.assertIn(name, " ".join(lines(report["structure"]["differences"])))


class MeaningTest(VerifyTest):
    """What a proof needs and the runtime cannot run."""

    HEAD = '<ir_version: 10, opset_import: ["" : 18]> g '

    def sparse(self, values, indices, name="m.onnx"):
        model = onnx.parser.parse_model(self.HEAD + "(float[2,4] x) => (float[2,4] y) { y = Mul(x, w) }")
        sparse = helper.make_sparse_tensor(
            helper.make_tensor("w", onnx.TensorProto.FLOAT, [len(values)], values),
            helper.make_tensor("i", onnx.TensorProto.INT64, [len(indices)], indices), [4])
        model.graph.sparse_initializer.append(sparse)
        return save(model, self.folder / name)

    def test_sparse_constants(self):
        first = self.sparse([1.0, 2.0], [0, 3])
        self.assertEqual(self.verify(first, self.sparse([1.0, 2.0], [0, 3], "b.onnx"), status=0)["verdict"], "proven")
        for values, indices in [([1.0, 3.0], [0, 3]), ([1.0, 2.0], [0, 2])]:
            report = self.verify(first, self.sparse(values, indices, "b.onnx"), status=3)
            self.assertEqual(report["verdict"], "not comparable")
            self.assertFalse(report["structure"]["equal"])

    def test_sparse_attributes(self):
        paths = []
        for value in (1.0, 1.0, 2.0):
            model = onnx.parser.parse_model(self.HEAD + "(float[4] x) => (float[4] y) { w = Neg(x) y = Mul(x, w) }")
            sparse = helper.make_sparse_tensor(helper.make_tensor("", onnx.TensorProto.FLOAT, [1], [value]),
                                               helper.make_tensor("", onnx.TensorProto.INT64, [1], [2]), [4])
            model.graph.node[0].CopyFrom(helper.make_node("Constant", [], ["w"], sparse_value=sparse))
            model.doc_string = str(len(paths))
            paths.append(save(model, self.folder / f"{len(paths)}.onnx"))
        self.assertTrue(self.verify(*paths[:2], status=0)["structure"]["equal"])
        self.assertFalse(self.verify(paths[0], paths[2], "--structure-only", status=1)["structure"]["equal"])

    def test_an_optimised_model_with_what_cannot_be_run_is_proven(self):
        text = (addnorm.ROOT / "tests/fixtures/variants/norm/divide.onnxtxt").read_text()
        model = onnx.parser.parse_model(text)
        model.graph.input.append(helper.make_tensor_sequence_value_info("list", onnx.TensorProto.FLOAT, ["n"]))
        model.graph.initializer.append(helper.make_tensor("words", onnx.TensorProto.STRING, [2], [b"a", b"b"]))
        model.graph.node.extend([helper.make_node("SequenceLength", ["list"], ["length"]),
                                 helper.make_node("Identity", ["words"], ["text"])])
        model.graph.output.extend([helper.make_tensor_value_info("length", onnx.TensorProto.INT64, []),
                                   helper.make_tensor_value_info("text", onnx.TensorProto.STRING, [2])])
        addnorm.optimize(model, self.folder)
        report = self.verify(self.folder / "in.onnx", self.folder / "out.onnx", status=0)
        self.assertEqual(report["verdict"], "proven")
        self.assertFalse(report["run"]["compared"])
        self.assertGreater(report["kernels"]["words"], 0)

    def test_calls_that_double_forty_times_are_answered_at_once(self):
        def model(last):
            text = '<ir_version: 10, opset_import: ["" : 18, "my" : 1]> g (float[2] x) => (float[2] y) { y = my.F0(x) }'
            for i in range(40):
                text += (f'<domain: "my", opset_import: ["" : 18, "my" : 1]> '
                         f"F{i} (a) => (r) {{ p = my.F{i + 1}(a) r = my.F{i + 1}(p) }}")
            return onnx.parser.parse_model(
                text + f'<domain: "my", opset_import: ["" : 18]> F40 (a) => (r) {{ r = {last}(a) }}')

        sqrt, renamed, negated = model("Sqrt"), model("Sqrt"), model("Neg")
        renamed.functions[3].node[0].output[0] = renamed.functions[3].node[1].input[0] = "other"
        paths = [save(m, self.folder / f"{i}.onnx") for i, m in enumerate((sqrt, renamed, negated))]
        for other, status, verdict in [(0, 0, "proven"), (1, 0, "proven"), (2, 3, "not comparable")]:
            report = self.verify(paths[0], paths[other], status=status)
            self.assertEqual(report["verdict"], verdict)
            self.assertIn("expand", report["run"]["reason"])

    def test_an_output_that_nothing_makes_is_absent_in_both(self):
        model = onnx.parser.parse_model(self.HEAD + "(float[2] x) => (float[2] y) { y = Neg(x) }")
        model.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [2]))
        path = save(model, self.folder / "m.onnx")
        for arguments in ([path, path], [path]):
            self.assertEqual(self.verify(*arguments, status=0)["verdict"], "proven")
        model.graph.node.append(helper.make_node("Abs", ["x"], ["z"]))
        made = self.verify(path, save(model, self.folder / "made.onnx"), status=1)
        self.assertEqual(made["verdict"], "different")


class OptimizeTest(VerifyTest):
    def optimize(self, name, *options):
        source = save(load(name), self.folder / "in.onnx")
        return addnorm.run("optimize", source, self.folder / "out.onnx", "--verify", *options)

    def test_a_proven_output_is_written(self):
        done = self.optimize("llama-dynamo-f16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("proven: ", done.stdout)
        self.assertTrue((self.folder / "out.onnx").exists())
        done = self.optimize("llama-dynamo-f16", "--force", "--json")
        report = json.loads(done.stdout)
        self.assertEqual(report["verification"]["verdict"], "proven")
        self.assertTrue(report["written"])

    def test_it_is_the_output_of_a_run_without(self):
        self.optimize("llama-dynamo-f16")
        verified = (self.folder / "out.onnx").read_bytes()
        addnorm.run("optimize", self.folder / "in.onnx", self.folder / "out.onnx", "--force")
        self.assertEqual(verified, (self.folder / "out.onnx").read_bytes())

    def test_a_failure_leaves_no_output(self):
        for options in [[], ["-q"], ["--json"]]:
            with self.subTest(options):
                done = self.optimize("llama-torchscript-f32", "--target", "ort", *options)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn("nothing was written", done.stderr)
                self.assertIn("different: ", done.stderr)
                self.assertIn("words differ, by at most", done.stderr)
                self.assertEqual([p.name for p in self.folder.iterdir()], ["in.onnx"])
        report = json.loads(done.stdout)
        self.assertFalse(report["written"])
        self.assertEqual(report["verification"]["verdict"], "different")
        self.assertIn("not what the input is", report["error"])

    def test_an_old_output_stays(self):
        (self.folder / "out.onnx").write_text("old")
        done = self.optimize("llama-torchscript-f32", "--target", "ort", "--force")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual((self.folder / "out.onnx").read_text(), "old")

    def test_external_data(self):
        onnx.save(load("llama-dynamo-f16"), self.folder / "in.onnx", save_as_external_data=True, location="weights",
                  size_threshold=64)
        other = self.folder / "other"
        other.mkdir()
        for target in (self.folder / "out.onnx", other / "out.onnx"):
            done = addnorm.run("optimize", self.folder / "in.onnx", target, "--verify", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["verification"]["verdict"], "proven")

    def test_what_is_written_at_once_cannot_be_verified(self):
        source = save(load("llama-dynamo-f16"), self.folder / "in.onnx")
        for arguments in [[source, "-"], [source, "/dev/null"], [source, "--dry-run"]]:
            done = addnorm.run("optimize", *arguments, "--verify")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--verify", done.stderr)


if __name__ == "__main__":
    unittest.main()
