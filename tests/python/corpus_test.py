# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Models of real exporters: no site too many, and what passed once passes still."""

import re
import sys

import addnorm
import scored


def main():
    if not scored.is_available("corpus"):
        print("skipped: ../shared/corpus or its scorer is missing")
        return addnorm.SKIPPED
    output = scored.score("corpus")
    print(output.splitlines()[-1])
    too_many = re.search(r"^corpus: .* sites fused, (\d+) too many", output, re.MULTILINE)
    if not too_many:
        print("the scorer's last line has another form")
        return 1
    failed = scored.report_missing("corpus", output)
    print(f"{len(scored.must_pass('corpus'))} models must pass, {failed} do not")
    return 1 if failed or too_many[1] != "0" else 0


if __name__ == "__main__":
    sys.exit(main())
