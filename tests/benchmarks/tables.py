# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of models/BENCHMARKS.md from what `bench --kernel --json` measured.

    build/release/onnx-addnorm bench --kernel --shapes models --json > kernel.json
    build/venv/bin/python tests/benchmarks/tables.py kernel.json

Time of fused / time of unfused with the same stores, for each type a table of
shapes by caches and stores, and how many comparisons had which verdict. Bold:
slower. `=`: the same within 2 %. `~`: no measurable difference. `?`: too few
rounds for a verdict. `-`: no use, plain stores are faster.
"""
import collections
import json
import sys

ARMS = {"fused": "plain", "fused streaming": "streaming", "fused in place": "in place"}
MARKS = {"faster": "", "slower": "", "no difference": " =", "not measurable": " ~", "of no use": " -",
         "too few rounds": " ?"}


def columns(cases):
    """(caches, arm) of each column. Streaming of what the caches have compares two bad choices."""
    caches = dict.fromkeys(case["cache"] for case in cases)
    return [(cache, arm) for cache in caches for arm in ARMS if cache == "cold" or arm != "fused streaming"]


def comparison(case, arm):
    return next(each for each in case["arms"] if each["name"] == arm)["comparison"]


def cell(case, arm):
    made = comparison(case, arm)
    verdict, (low, high) = made["verdict"], made["interval"]
    text = f"{made['ratio']:.2f}"
    if verdict != "too few rounds":
        text += f" [{low:.2f}, {high:.2f}]"
    text += MARKS[verdict]
    return f"**{text}**" if verdict == "slower" else text


def write_table(cases, kind):
    shown = columns(cases)
    print(f"| {kind} |", " | ".join(f"{cache}: {ARMS[arm]}" for cache, arm in shown), "|")
    print("|---|" + "--:|" * len(shown))
    by_shape = collections.defaultdict(dict)
    for case in cases:
        by_shape[case["length"], case["rows"]][case["cache"]] = case
    for (length, rows), of_caches in sorted(by_shape.items()):
        print(f"| {rows}x{length} |", " | ".join(cell(of_caches[cache], arm) for cache, arm in shown), "|")


def write_counts(cases):
    counts = collections.Counter(
        (cache, ARMS[arm], comparison(case, arm)["verdict"])
        for cache, arm in columns(cases) for case in cases if case["cache"] == cache)
    for (cache, stores, verdict), count in sorted(counts.items()):
        print(f"{cache}, {stores}: {verdict} in {count}")


def main(path):
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    for kind in dict.fromkeys(case["type"] for case in cases):
        write_table([case for case in cases if case["type"] == kind], kind)
        print()
    write_counts(cases)
    noises = sorted(case["noise_floor"] for case in cases)
    print(f"noise: median {noises[len(noises) // 2]:.1%}, from {noises[0]:.1%} to {noises[-1]:.1%}")


if __name__ == "__main__":
    main(sys.argv[1])
