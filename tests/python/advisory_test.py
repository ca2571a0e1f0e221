# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""What broke onnx or ONNX Runtime, each as a test named by its advisory.

A secret lies beside the model's folder; no run may read it into an output or
write to it. All of it twice: with openat2, and on what fault_shim.c makes of this
machine, an old kernel without it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import onnx
import onnx.parser
from onnx import TensorProto, helper

import addnorm
import fault_scenarios
import fault_server

SECRET = b"S" * 4096


class AdvisoryTest(unittest.TestCase):
    environment = {}

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.folder, self.out = self.root / "model", self.root / "out"
        self.folder.mkdir()
        self.out.mkdir()
        (self.root / "secret").write_bytes(SECRET)

    def tool(self, *arguments, **options):
        return addnorm.run(*arguments, env={**os.environ, **self.environment}, **options)

    def write(self, entries, change=None):
        """A model whose tensor `other` has the entries; `change` edits it."""
        proto = fault_scenarios.model()
        tensor = next(t for t in proto.graph.initializer if t.name == "other")
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in entries:
            tensor.external_data.add(key=key, value=value)
        if change:
            change(proto)
        (self.folder / "m.onnx").write_bytes(proto.SerializeToString())

    def refused(self, *says, code=3):
        """Every command refuses the model, creates nothing and leaves the secret alone."""
        before = fault_scenarios.facts(self.root)
        for command in (["optimize", "m.onnx", self.out / "o.onnx", "--data", "copy"],
                        ["run", "m.onnx", "--outputs", self.out / "r"],
                        ["verify", "m.onnx", "m.onnx"]):
            for spelling in ("m.onnx", "./m.onnx", self.folder / "m.onnx"):
                done = self.tool(*[spelling if a == "m.onnx" else a for a in command], cwd=self.folder)
                with self.subTest(command=command[0], spelling=str(spelling)):
                    self.assertEqual(done.returncode, code, done.stderr)
                    for text in says:
                        self.assertIn(text, done.stderr)
                    self.assertEqual(fault_scenarios.facts(self.root), before)

    def test_cve_2022_25882_a_location_in_the_parent_folder(self):
        self.write([("location", "../secret")])
        self.refused("leads outside")

    def test_cve_2024_27318_a_location_that_goes_down_and_further_up(self):
        (self.folder / "a").mkdir()
        self.write([("location", "a/../../secret")])
        self.refused("leads outside")

    def test_cve_2026_27489_a_location_that_is_a_link_to_outside(self):
        (self.folder / "w.bin").symlink_to(self.root / "secret")
        self.write([("location", "w.bin")])
        self.refused("leads outside")

    def test_cve_2026_34447_a_location_through_a_linked_folder(self):
        (self.folder / "data").symlink_to(self.root)
        self.write([("location", "data/secret")])
        self.refused("leads outside")

    def test_cve_2026_34445_a_length_that_asks_for_all_memory(self):
        (self.folder / "w.bin").write_bytes(bytes(4096))
        for key, value in (("length", str(2**62)), ("length", str(2**64)), ("offset", str(2**63))):
            self.write([("location", "w.bin"), (key, value)])
            self.refused("'other'")

    def test_cve_2026_34445_keys_that_name_attributes_of_an_object(self):
        (self.folder / "w.bin").write_bytes(bytes(4096))
        keys = [("basepath", str(self.root)), ("__class__", "x"), ("location ", "../secret")]
        self.write([("location", "w.bin"), *keys])
        done = self.tool("optimize", self.folder / "m.onnx", self.folder / "o.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.root / "secret").read_bytes(), SECRET)

    def test_ghsa_q56x_copied_data_do_not_follow_a_link_in_the_output_folder(self):
        (self.folder / "sub").mkdir()
        (self.folder / "sub/w.bin").write_bytes(bytes(4096))
        self.write([("location", "sub/w.bin")])
        (self.root / "elsewhere").mkdir()
        for place, target in (("sub", self.root / "elsewhere"), ("sub", self.root / "nowhere")):
            with self.subTest(target=target.name):
                (self.out / place).symlink_to(target)
                done = self.tool("optimize", self.folder / "m.onnx", self.out / "o.onnx", "--force", "--data", "copy")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual((os.listdir(self.out), os.listdir(self.root / "elsewhere")), ([place], []))
                (self.out / place).unlink()

    def test_ghsa_q56x_copied_data_do_not_replace_what_a_link_leads_to(self):
        (self.folder / "w.bin").write_bytes(bytes(4096))
        self.write([("location", "w.bin")])
        (self.out / "w.bin").symlink_to(self.root / "secret")
        done = self.tool("optimize", self.folder / "m.onnx", self.out / "o.onnx", "--force", "--data", "copy")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual((self.root / "secret").read_bytes(), SECRET)
        self.assertEqual(os.listdir(self.out), ["w.bin"])

    def test_cve_2025_51480_data_are_not_written_outside_the_output_folder(self):
        (self.root / "w.bin").write_bytes(SECRET)
        self.write([("location", "../w.bin")])
        before = fault_scenarios.facts(self.root)
        done = self.tool("optimize", self.folder / "m.onnx", self.out / "o.onnx", "--data", "copy")
        self.assertEqual((done.returncode, fault_scenarios.facts(self.root)), (3, before), done.stderr)

    def test_onnxruntime_26776_sparse_tensors_are_resolved_like_others(self):
        def add(proto):
            values = TensorProto(name="sparse", data_type=TensorProto.FLOAT, dims=[4],
                                 data_location=TensorProto.EXTERNAL)
            values.external_data.add(key="location", value="../secret")
            indices = helper.make_tensor("", TensorProto.INT64, [4], range(4))
            proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1024]))

        def constant(proto):
            add(proto)
            sparse = proto.graph.sparse_initializer.pop()
            proto.graph.node.insert(0, helper.make_node("Constant", [], ["unused"], sparse_value=sparse))

        (self.folder / "w.bin").write_bytes(bytes(4096))
        for place in (add, constant):
            self.write([("location", "w.bin")], place)
            self.refused("leads outside")

    def test_ghsa_7w46_functions_that_call_each_other(self):
        (self.folder / "w.bin").write_bytes(bytes(4096))

        def add(proto):
            opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
            for name, other in (("A", "B"), ("B", "A")):
                node = helper.make_node(other, ["x"], ["y"], domain="f")
                proto.functions.append(helper.make_function("f", name, ["x"], ["y"], [node], opsets))
            proto.opset_import.append(helper.make_opsetid("f", 1))
            proto.graph.node.append(helper.make_node("A", ["y"], ["unused"], domain="f"))

        self.write([("location", "w.bin")], add)
        self.refused("'f")

    def test_onnx_8109_raw_data_that_are_no_multiple_of_the_element(self):
        (self.folder / "w.bin").write_bytes(bytes(4096))
        for size in (4095, 4097, 1, 0):
            def cut(proto, size=size):
                next(t for t in proto.graph.initializer if t.name == "weight").raw_data = bytes(size)

            self.write([("location", "w.bin")], cut)
            self.refused("'weight'")


class OldKernelAdvisoryTest(AdvisoryTest):
    """The same where the kernel does not resolve paths beneath a folder."""

    @classmethod
    def setUpClass(cls):
        why = fault_server.why_not_here()
        if why:
            raise unittest.SkipTest(f"skipped: {why}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.environment = {"LD_PRELOAD": fault_server.shim(folder.name), "ADDNORM_FAULT_OLD_KERNEL": "1"}

    def test_that_there_is_no_openat2(self):
        call = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.syscall(437, -100, b'.', 0, 0); " \
               "print(os.strerror(ctypes.get_errno()))"
        done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True,
                              env={**os.environ, **self.environment})
        self.assertEqual(done.stdout, "Function not implemented\n")


if __name__ == "__main__":
    unittest.main()
