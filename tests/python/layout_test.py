# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""The tree keeps to its layout: who may include whom, names, length of documents."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folders whose headers each folder may include; tool -> {passes, runtime, proto} -> passes/ir.
MAY_INCLUDE = {
    "passes/ir": ["passes/ir"],
    "passes": ["passes", "passes/ir"],
    "runtime": ["runtime", "passes/ir"],
    "proto": ["proto", "passes/ir"],
    "tool": ["tool", "passes", "runtime", "proto", "passes/ir"],
}
# Only proto/ knows how models are serialised.
SERIALISATION = re.compile(r"(onnx|google/protobuf)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
# Names that say nothing about what is inside.
EMPTY_NAME = re.compile(r"(^|_)(utils?|helpers?|misc|common)$", re.IGNORECASE)
MAX_LINES = {"README.md": 200, "ARCHITECTURE.md": 150, "CONTRIBUTING.md": 40}


def box_of(path):
    """The entry of MAY_INCLUDE that a path belongs to, or None."""
    boxes = [box for box in MAY_INCLUDE if path.startswith(box + "/")]
    return max(boxes, key=len, default=None)


def forbidden_includes(path, text):
    """Includes in the file `path` (relative to the root) that break the layout."""
    box = box_of(path)
    found = []
    for header in INCLUDE.findall(text):
        target = box_of(header) or ("tests" if header.startswith("tests/") else None)
        if target is not None and target not in MAY_INCLUDE[box]:
            found.append(header)
        if box != "proto" and SERIALISATION.match(header):
            found.append(header)
    return found


def sources():
    return [path for box in MAY_INCLUDE for path in sorted((ROOT / box).rglob("*"))
            if path.suffix in (".h", ".cc", ".inc", ".cpp", ".hpp")]


def all_files():
    folders = ["passes", "runtime", "proto", "tool", "tests", "models"]
    return [path for folder in folders for path in (ROOT / folder).rglob("*")
            if "__pycache__" not in path.parts]


class LayoutTest(unittest.TestCase):
    def test_forbidden_includes_are_seen(self):
        for path, header in [("passes/a.cc", "onnx/onnx_pb.h"), ("runtime/ops/a.cc", "google/protobuf/x.h"),
                             ("tool/a.cc", "onnx/onnx_pb.h"), ("passes/ir/a.h", "passes/matcher.h"),
                             ("passes/a.h", "proto/text.h"), ("runtime/a.h", "passes/matcher.h"),
                             ("proto/a.cc", "tool/cli.h"), ("proto/a.cc", "passes/pass.h"),
                             ("tool/a.cc", "tests/support/fixture.h")]:
            with self.subTest(path=path, header=header):
                self.assertEqual(forbidden_includes(path, f'#include "{header}"\n'), [header])

    def test_allowed_includes_are_not(self):
        for path, header in [("passes/a.cc", "passes/ir/graph.h"), ("passes/a.cc", "fmt/format.h"),
                             ("proto/a.cc", "onnx/onnx_pb.h"), ("tool/a.cc", "proto/text.h"),
                             ("runtime/kernels/a.h", "passes/ir/type.h"), ("passes/ir/a.h", "vector")]:
            with self.subTest(path=path, header=header):
                self.assertEqual(forbidden_includes(path, f"  # include <{header}>\n"), [])

    def test_includes_follow_the_arrows(self):
        self.assertGreater(len(sources()), 20)
        for path in sources():
            name = path.relative_to(ROOT).as_posix()
            with self.subTest(name):
                self.assertEqual(forbidden_includes(name, path.read_text()), [])

    def test_no_file_has_an_empty_name(self):
        self.assertTrue(EMPTY_NAME.search("string_utils") and EMPTY_NAME.search("util"))
        self.assertEqual([str(p) for p in all_files() if EMPTY_NAME.search(p.name.split(".")[0])], [])

    def test_documents_are_short(self):
        for name, limit in MAX_LINES.items():
            with self.subTest(name):
                self.assertLessEqual(len((ROOT / name).read_text().splitlines()), limit)


if __name__ == "__main__":
    unittest.main()
