# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Models of real exporters run, and give what ONNX Runtime (or torch) gave.

Each model's test data set is run and compared with the outputs stored beside it,
by the measure of running.py. Models that nothing could run have none and are left
out. What does not pass is printed with its reason.
tests/corpus_run_must_pass.txt lists models that must go on passing; --update adds
to it.
"""

import collections
import json
import re
import sys

import onnx

import addnorm
import running

MUST_PASS = addnorm.ROOT / "tests/corpus_run_must_pass.txt"


def judge(folder):
    """None where the model runs and is near enough, else why not."""
    data = folder / "test_data_set_0"
    expected = running.read_tensors(data, "output")
    try:
        outputs = running.run_folder(folder / "model.onnx", data)
    except running.RunFailed as error:
        return str(error).removeprefix("error: ").removeprefix(f"{folder / 'model.onnx'}: ")
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    tolerance = running.tolerance_of(model)
    tokens = total_tokens(model, data)
    for output, (want, _), (have, _) in zip(model.graph.output, expected, outputs):
        if want.shape == have.shape and output.name.startswith("present"):
            # A cache of fixed length holds what was in memory behind the tokens.
            want, have = want[:, :, :tokens], have[:, :, :tokens]
        found = running.complaint(want, have, tolerance)
        if found:
            return f"output '{output.name}': {found}"
    return None


def total_tokens(model, data):
    """How many tokens the attention mask covers; None if there is none."""
    inputs = zip(model.graph.input, running.read_tensors(data, "input"))
    return next((array.shape[-1] for i, (array, _) in inputs if i.name == "attention_mask"), None)


def kind(reason):
    """The reason without what differs from model to model."""
    if "has no operator" in reason:
        return reason[reason.index("the runtime"):]
    return re.sub(r"\d[\d.e-]*", "N", re.sub(r"'[^']*'", "'…'", reason))


def must_pass():
    if not MUST_PASS.exists():
        return []
    return [line for line in MUST_PASS.read_text().splitlines() if line and not line.startswith("#")]


def main():
    corpus = addnorm.SHARED / "corpus"
    if not (corpus / "manifest.jsonl").exists():
        print("skipped: ../shared/corpus is missing")
        return addnorm.SKIPPED
    names = [json.loads(line)["name"] for line in (corpus / "manifest.jsonl").read_text().splitlines() if line]
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    names = [n for n in names if not wanted or any(w in n for w in wanted)]
    names = [n for n in names if (corpus / n / "test_data_set_0/output_0.pb").exists()]
    reasons = {name: judge(corpus / name) for name in names}
    failed = {name: reason for name, reason in reasons.items() if reason}
    for name, reason in failed.items():
        print(f"{name}: {reason}")
    for reason, count in collections.Counter(map(kind, failed.values())).most_common():
        print(f"{count:4}  {reason}")
    print(f"corpus run: {len(names) - len(failed)} of {len(names)} models within tolerance")
    lost = [name for name in must_pass() if name in failed or (not wanted and name not in reasons)]
    print(f"{len(must_pass())} models must pass, {len(lost)} do not: {lost}")
    if "--update" in sys.argv:
        passing = sorted({*must_pass(), *(n for n in names if n not in failed)})
        MUST_PASS.write_text("# Models of the corpus that run within tolerance; see corpus_run_test.py.\n"
                             + "".join(f"{n}\n" for n in passing))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
