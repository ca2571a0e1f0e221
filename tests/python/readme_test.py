# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of README.md as a reader would.

Convention: in blocks marked ```sh, a command runs from the first
`onnx-addnorm` (or `build/release/onnx-addnorm`) of its line to the end; what
stands before, set-up and build, is left out, and so are lines without one. A
trailing `# exit N` says which exit status to expect (0 where absent). All
commands run in order, in one copy of models/, with the binary under test in
both places. Blocks with another mark are not run.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import addnorm

SH_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command, not an argument of another one.
COMMAND = re.compile(r"(?:^|(?<=&& )|(?<=\| )|(?<=; ))(?:build/release/)?onnx-addnorm\s")
EXIT = re.compile(r"#\s*exit (\d+)\s*$")


def commands(text):
    """[(command, expected exit status)] of all sh blocks."""
    found = []
    for block in SH_BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            start = COMMAND.search(line)
            if start and not line.lstrip().startswith("#"):
                status = EXIT.search(line)
                found.append((line[start.start():].strip(), int(status[1]) if status else 0))
    return found


class ReadmeTest(unittest.TestCase):
    def test_commands_are_found(self):
        text = ("```sh\ntool/setup.sh && cmake --preset release && build/release/onnx-addnorm a b\n"
                "ls\n# onnx-addnorm no\nonnx-addnorm c \\\n  d | grep e  # exit 1\n```\n"
                "```console\nonnx-addnorm f\n```\n")
        self.assertEqual(commands(text), [("build/release/onnx-addnorm a b", 0),
                                          ("onnx-addnorm c    d | grep e  # exit 1", 1)])

    def test_every_command_does_what_it_says(self):
        found = commands((addnorm.ROOT / "README.md").read_text())
        self.assertTrue(found, "README.md has no command in an sh block")
        with tempfile.TemporaryDirectory() as folder:
            scratch = pathlib.Path(folder)
            shutil.copytree(addnorm.ROOT / "models", scratch / "models")
            (scratch / "build/release").mkdir(parents=True)
            (scratch / "build/release/onnx-addnorm").symlink_to(addnorm.BINARY)
            path = f"{scratch / 'build/release'}:{os.environ['PATH']}"
            for command, expected in found:
                with self.subTest(command):
                    done = subprocess.run(
                        ["bash", "-o", "pipefail", "-c", command], cwd=scratch, text=True,
                        capture_output=True, env={**os.environ, "PATH": path}, timeout=600)
                    self.assertEqual(done.returncode, expected, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
