# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a sweep a run tries: a seeded sample, or everything, or a part of everything to run beside others.

    fault_sweep_test.py                       a sample, as in the test suite
    fault_sweep_test.py --all                 everything (tests/sweep.sh)
    fault_sweep_test.py --all --part 2/4      the second quarter of it
"""

import argparse
import random

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--all", action="store_true", help="everything, not a sample")
PARSER.add_argument("--part", default="1/1", metavar="I/N", help="every N-th of it, from the I-th")
PARSER.add_argument("--seed", type=int, default=1, help="of samples and of random moments")
PARSER.add_argument("--folder", help="where files are written, if not in memory")
OPTIONS, REST = PARSER.parse_known_args()
FIRST, PARTS = map(int, OPTIONS.part.split("/"))


def part(items):
    """This run's share of them."""
    return list(items)[FIRST - 1::PARTS]


def sample(items, count, most=None, name=""):
    """This run's share of a seeded sample in order, or with --all of all or of a sample of `most`."""
    items = list(items)
    count = most or len(items) if OPTIONS.all else count
    if len(items) > count:
        numbers = random.Random(f"{OPTIONS.seed}/{name}").sample(range(len(items)), count)
        items = [items[i] for i in sorted(numbers)]
    return part(items)
