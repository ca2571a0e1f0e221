# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""bench --html in a browser: readable on any screen, in light and dark, and loads and runs nothing."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

import addnorm
import chromium
import onnx.helper
from onnx import TensorProto

CHECKS = pathlib.Path(__file__).with_name("page_checks.js").read_text()
WIDTHS = (380, 1400)
SCHEMES = ("light", "dark")
EVIL = "<script>document.title='taken'</script>"
EVIL_DIM = "</script><img src=x onerror=alert(1)>\"'&"

KERNEL = ("--kernel", "--threads", 1, "--seconds", 0.15)
PAGES = {
    "quick": ("--kernel", "--quick", "--threads", 1, "--seconds", 0.15),
    "sweep": (*KERNEL, "--shapes", "1x64,64x4096,2x33", "--types", "f16,f64", "--caches", "warm,producer",
              "--recipes", "reciprocal,late"),
    "one round": (*KERNEL[:-1], 0.001, "--shapes", "1x1,2x1", "--types", "bf16", "--caches", "warm"),
}


# A page with each fault that the checks are to find.
BAD_PAGE = """<!doctype html><meta charset="utf-8"><style>body { background: #fff; width: 3000px }</style>
<p style="color: #999">faint</p>
<svg class="chart" viewBox="0 0 360 100" width="360" aria-labelledby="t d">
<title id="t">Title</title><desc id="d"></desc><rect class="plot" fill="none" x="50" y="10" width="200" height="80"/>
<rect class="band" fill="#555" x="60" y="60" width="90" height="30"/>
<text x="100" y="30">one</text><text x="110" y="30">two</text><text x="70" y="80">dark</text>
<rect class="mark" x="240" y="20" width="40" height="9"/><line stroke="#000" x1="9" y1="9" x2="400" y2="9"/></svg>"""
FOUND = ("page: 30", "faint", "d is empty", 'text.null "one" overlaps text.null "two"', 'text.null "dark"',
         'rect.mark "" is outside of the plot', 'line.null "" is outside of the chart')


def hostile_model(folder):
    """A model with one site whose path and dimension are HTML."""
    make = onnx.helper.make_node
    nodes = [make("Add", ["a", "b"], ["s"]), make("Pow", ["s", "two"], ["q"]),
             make("ReduceMean", ["q"], ["m"], axes=[-1], keepdims=1), make("Add", ["m", "eps"], ["e"]),
             make("Sqrt", ["e"], ["r"]), make("Div", ["s", "r"], ["n"]), make("Mul", ["n", "w"], ["y"])]
    shape = [EVIL_DIM, 64]
    values = [onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "absy"]
    weights = [onnx.helper.make_tensor(name, TensorProto.FLOAT, [len(data)] if len(data) > 1 else [], data)
               for name, data in [("two", [2]), ("eps", [1e-5]), ("w", [1.5] * 64)]]
    graph = onnx.helper.make_graph(nodes, "g", values[:2], values[2:], weights)
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
    path = pathlib.Path(folder, EVIL)  # has a folder, for its slash
    path.parent.mkdir(parents=True)
    onnx.save(model, path)
    return path


def expected_tally(report):
    """(faster, slower, told) of a --kernel report, those left out that say nothing of fusing."""
    verdicts = [arm["comparison"]["verdict"] for case in report["cases"] for arm in case["arms"]
                if "comparison" in arm]
    told = [verdict for verdict in verdicts if verdict not in ("too few rounds", "of no use")]
    return told.count("faster"), told.count("slower"), len(told)


class BenchHtmlTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = cls.enterClassContext(chromium.Chromium())

    def write(self, *arguments):
        path = pathlib.Path(self.folder.name, f"{self.id()}.html")
        done = addnorm.run("bench", *arguments, "--html", path, "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"page: {path}", done.stdout)
        return path

    def check(self, path):
        """Opens the page on all screens; the last of them."""
        for width in WIDTHS:
            for scheme in SCHEMES:
                with self.subTest(width=width, scheme=scheme):
                    page = self.browser.open(path, width, scheme)
                    found = page.evaluate(CHECKS)
                    self.assertEqual(found["faults"], [])
                    self.assertGreaterEqual(found["charts"], 3)
                    self.assertGreater(found["texts"], 60)
                    self.assertEqual(page.complaints, [])
                    self.assertEqual(page.requests, [])
        return page

    def report_in(self, page):
        return json.loads(page.evaluate("document.getElementById('report').textContent"))

    def test_the_checks_see_faults(self):
        path = pathlib.Path(self.folder.name, "bad.html")
        path.write_text(BAD_PAGE)
        faults = self.browser.open(path, 1400, "light").evaluate(CHECKS)["faults"]
        for part in FOUND:
            self.assertTrue(any(part in fault for fault in faults), (part, faults))
        self.assertEqual(len(faults), len(FOUND), faults)

    def test_the_browser_tells_what_it_loads_and_says(self):
        path = pathlib.Path(self.folder.name, "loads.html")
        path.write_text('<!doctype html><link rel="stylesheet" href="other.css"><script>throw 1</script>')
        page = self.browser.open(path, 1400, "light")
        self.assertTrue(any(url.endswith("other.css") for url in page.requests), page.requests)
        self.assertNotEqual(page.complaints, [])

    def test_kernel_pages_can_be_read(self):
        for name, arguments in PAGES.items():
            with self.subTest(name):
                page = self.check(self.write(*arguments))
                report = self.report_in(page)
                self.assertEqual(report["schema"], "onnx-addnorm/bench/1")
                charts = page.evaluate("document.querySelectorAll('#arms .chart').length")
                self.assertEqual(charts, len(report["cases"]))

    def test_the_headline_is_what_was_measured(self):
        page = self.check(self.write("--kernel", "--threads", 1, "--seconds", 0.6, "--types", "f32", "--shapes",
                                     "1x512,16x1024", "--caches", "warm,cold"))
        faster, slower, told = expected_tally(self.report_in(page))
        headline = page.evaluate("document.querySelector('.headline').textContent")
        if told == 0:
            self.assertIn("too few rounds", headline)
        elif faster == 0 and slower == 0:
            self.assertIn(f"in any of {told} comparisons", headline)
        elif faster == told:
            self.assertIn(f"in all {told} comparisons", headline)
        else:
            self.assertIn(f"faster in {faster} of {told} comparisons", headline)
            self.assertIn("slower in " + (str(slower) if slower else "none"), headline)

    def test_a_model_is_text_whatever_it_is_called(self):
        model = hostile_model(self.folder.name)
        page = self.check(self.write(model, "--threads", 1, "--seconds", 0.3))
        self.assertIn(EVIL, page.evaluate("document.querySelector('h1').textContent"))
        self.assertIn(EVIL_DIM + "=", page.evaluate("document.getElementById('times').textContent"))
        self.assertEqual(page.evaluate("document.querySelectorAll('script').length"), 1)
        self.assertEqual(page.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertNotEqual(page.evaluate("document.title"), "taken")
        report = self.report_in(page)
        self.assertEqual(report["model"], str(model))
        self.assertEqual(report["dims"][0]["symbol"], EVIL_DIM)

    def test_a_page_can_be_read_without_a_browser(self):
        text = self.write(*PAGES["quick"]).read_text()
        self.assertNotRegex(text, r"\b(src|href)=\"(?!#)|https?:|@import|url\(| on[a-z]+=")
        self.assertEqual(len(re.findall("<h1>", text)), 1)


if __name__ == "__main__":
    if chromium.find() is None:
        print("skipped: no Chromium (Debian's package chromium)")
        sys.exit(addnorm.SKIPPED)
    unittest.main()
