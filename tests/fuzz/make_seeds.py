# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Seeds for the fuzz targets: small models and texts that are here anyway.

    make_seeds.py OUT

makes OUT/model, OUT/text and OUT/external_data. Models come from tests/fixtures,
from models/ and, where they are present, from the folders beside the repository.
"""

import hashlib
import pathlib
import re
import sys

import onnx.parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
# Larger ones make fuzzing slow and hold nothing else.
MAX_BYTES = 8 << 10

# The tensor's size, then its external_data entries.
EXTERNAL = [
    ("64", "location=w.bin"),
    ("64", "location=w.bin", "offset=0", "length=64"),
    ("32", "location=w.bin", "offset=32", "length=0", "checksum=00"),
    ("-", "location=sub/v.bin", "length=4096"),
    ("0", "location=empty"),
    ("64", "location=in"),
    ("64", "location=hard"),
    ("64", "location=sub/../w.bin"),
    ("64", "location=./sub//up"),
    ("64", "location=round"),
    ("64", "location=folder/v.bin", "offset=4032"),
    ("64", "location=out"),
    ("64", "location=way/secret"),
    ("64", "location=way/../w.bin"),
    ("64", "location=loop"),
    ("64", "location=magic"),
    ("64", "location=fifo"),
    ("64", "location=absolute_in"),
    ("64", "location=absolute_out"),
    ("64", "location=../outside/secret"),
    ("64", "location=/etc/hostname"),
    ("64", "location=w.bin\0x"),
    ("64", "location=sub\\v.bin"),
    ("64", "location="),
    ("64", "location=w.bin", "location=out"),
    ("64", "location=w.bin", "offset=-1"),
    ("64", "location=w.bin", "offset=18446744073709551615", "length=64"),
    ("18446744073709551615", "location=w.bin", "length=18446744073709551615"),
]


def write(folder, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(content).hexdigest()[:16]).write_bytes(content)


def texts():
    """Fixtures without comments, which say nothing to the parser."""
    for path in sorted((ROOT / "tests/fixtures").rglob("*.onnxtxt")):
        yield re.sub(r"(?m)^#.*\n", "", path.read_text())


def models():
    for folder in ("models", "shared/cases", "shared/corpus", "shared/node"):
        base = ROOT / folder if folder == "models" else SHARED.parent / folder
        for path in sorted(base.rglob("*.onnx")):
            if path.is_file() and path.stat().st_size <= MAX_BYTES:
                yield path.read_bytes()


def main():
    out = pathlib.Path(sys.argv[1])
    for text in texts():
        write(out / "text", text.encode())
        try:
            write(out / "model", onnx.parser.parse_model(text).SerializeToString())
        except onnx.parser.ParseError:
            pass  # a fixture of what is no model
    for model in models():
        write(out / "model", model)
    for lines in EXTERNAL:
        write(out / "external_data", "\n".join(lines).encode())


if __name__ == "__main__":
    main()
