# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Small inputs with a known answer: what passed once passes still."""

import sys

import addnorm
import scored


def main():
    if not scored.is_available("cases"):
        print("skipped: ../shared/cases or its scorer is missing")
        return addnorm.SKIPPED
    output = scored.score("cases")
    print(output.splitlines()[-1])
    failed = scored.report_missing("cases", output)
    print(f"{len(scored.must_pass('cases'))} cases must pass, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
