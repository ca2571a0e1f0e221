# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Names, kinds, modes and layouts of files, from outside: what is read, what is written where, what is refused."""

import contextlib
import os
import pathlib
import socket
import stat
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

import addnorm
import fault_scenarios

NOBODY = 65534
NAME_MAX, PATH_MAX = 255, 4096


def external(name, dims, entries):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


class FilesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.root.chmod(0o755)
        self.model = self.root / "in/model.onnx"
        self.model.parent.mkdir()

    def tool(self, *arguments, code=0, **options):
        done = addnorm.run(*arguments, **{"cwd": self.root, "timeout": 60, **options})
        self.assertEqual(done.returncode, code, done.stderr)
        if code != 0:
            self.assertIsNone(fault_scenarios.message_problem(done.stderr), done.stderr)
        return done

    def write_plain(self):
        """A model with a site, and what optimize makes of it."""
        fault_scenarios.write_model(self.model)
        self.tool("optimize", self.model, self.root / "wanted.onnx")
        return (self.root / "wanted.onnx").read_bytes()

    # ---- external data

    def layouts(self):
        """{name of a tensor: its entries and the array that it must have}"""
        folder = self.model.parent
        values = np.random.default_rng(3).normal(0, 1, 64).astype(np.float32)
        (folder / "sub").mkdir()
        (folder / "one.bin").write_bytes(values.tobytes())
        (folder / "sub/two.bin").write_bytes(b"x" + values[::-1].tobytes())
        (folder / "blob").write_bytes(values[:4].tobytes())
        (folder / "link.bin").symlink_to("blob")
        os.link(folder / "blob", folder / "hard.bin")
        return {
            "first": ({"location": "one.bin", "offset": 0, "length": 128}, values[:32]),
            "second": ({"location": "one.bin", "offset": 128, "length": 128}, values[32:]),
            "the_same": ({"location": "one.bin", "offset": 0, "length": 128}, values[:32]),
            "overlapping": ({"location": "./one.bin", "offset": 4, "length": 16}, values[1:5]),
            "unaligned": ({"location": "sub/two.bin", "offset": 1, "length": 256}, values[::-1]),
            "no_offset": ({"location": "one.bin", "length": 32}, values[:8]),
            "no_length": ({"location": "one.bin", "offset": 64}, values[16:24]),
            "only_location": ({"location": "sub/../one.bin"}, values[:3]),
            "zero_length": ({"location": "one.bin", "offset": 0, "length": 0}, values[:5]),
            "no_elements": ({"location": "one.bin", "offset": 256, "length": 0}, values[:0]),
            "a_link": ({"location": "link.bin"}, values[:4]),
            "a_hard_link": ({"location": "hard.bin"}, values[:4]),
        }

    def write_layouts(self, layouts):
        """Each tensor becomes an output: as an initializer, in a branch and in a function's body."""
        proto = fault_scenarios.model()
        imports = [helper.make_opsetid("", 18)]
        proto.graph.initializer.append(numpy_helper.from_array(np.array(True), "yes"))
        for name, (entries, array) in layouts.items():
            def tensor(suffix):
                return external(name + suffix, array.shape, entries)

            def output(suffix):
                return helper.make_tensor_value_info(name + suffix, TensorProto.FLOAT, array.shape)

            proto.graph.initializer.append(tensor("_data"))
            inner = helper.make_graph([helper.make_node("Identity", [name + "_inner_data"], [name + "_inner"])], "g",
                                      [], [output("_inner")], [tensor("_inner_data")])
            body = [helper.make_node("Constant", [], ["c"], value=tensor("_attribute")),
                    helper.make_node("Identity", ["c"], ["r"])]
            proto.functions.append(helper.make_function("f", name, [], ["r"], body, imports))
            proto.graph.node.extend([
                helper.make_node("Identity", [name + "_data"], [name]),
                helper.make_node("If", ["yes"], [name + "_if"], then_branch=inner, else_branch=inner),
                helper.make_node(name, [], [name + "_call"], domain="f")])
            proto.graph.output.extend(output(suffix) for suffix in ("", "_if", "_call"))
        proto.opset_import.append(helper.make_opsetid("f", 1))
        self.model.write_bytes(proto.SerializeToString())

    def outputs(self, model, layouts, to):
        self.tool("run", model, "--outputs", to, "--format", "npy")
        return {name + suffix: np.load(to / f"{name}{suffix}.npy")
                for name in layouts for suffix in ("", "_if", "_call")}

    def test_regions_are_what_the_entries_say_wherever_the_tensor_sits(self):
        layouts = self.layouts()
        self.write_layouts(layouts)
        beside, elsewhere = self.model.with_name("fused.onnx"), self.root / "out/fused.onnx"
        elsewhere.parent.mkdir()
        self.tool("optimize", self.model, beside, "--expect-fused", "1")
        self.tool("optimize", self.model, elsewhere, "--expect-fused", "1", "--data", "copy", "--verify")
        for number, model in enumerate((self.model, beside, elsewhere)):
            made = self.outputs(model, layouts, self.root / f"made{number}")
            for name, array in made.items():
                with self.subTest(model=model.parent.name, name=name):
                    wanted = layouts[name.removesuffix("_if").removesuffix("_call")][1]
                    self.assertEqual(addnorm.bits(array), addnorm.bits(wanted))
        # Copies are files of their own.
        for name in ("one.bin", "sub/two.bin", "link.bin", "hard.bin"):
            state = (elsewhere.parent / name).lstat()
            self.assertTrue(stat.S_ISREG(state.st_mode) and state.st_nlink == 1, name)
            self.assertEqual((elsewhere.parent / name).read_bytes(), (self.model.parent / name).read_bytes())

    def test_sparse_tensors_have_external_parts_too(self):
        proto = fault_scenarios.model()
        (self.model.parent / "values.bin").write_bytes(np.ones(2, np.float32).tobytes())
        values = external("sparse", [2], {"location": "values.bin"})
        indices = helper.make_tensor("", TensorProto.INT64, [2], [1, 5])
        proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1024]))
        self.model.write_bytes(proto.SerializeToString())
        (self.root / "out").mkdir()
        self.tool("optimize", self.model, "out/fused.onnx", "--expect-fused", "1")
        self.assertEqual((self.root / "out/values.bin").read_bytes(), np.ones(2, np.float32).tobytes())
        (self.model.parent / "values.bin").write_bytes(b"1234567")
        self.tool("optimize", self.model, "in/fused.onnx", code=3)

    def test_special_files_are_refused_as_models_and_as_data(self):
        folder = self.model.parent
        os.mkfifo(folder / "fifo")
        (folder / "folder").mkdir()
        (folder / "null").symlink_to("/dev/null")
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
            listening.bind(str(folder / "socket"))
            for name in ("fifo", "folder", "null", "socket"):
                with self.subTest(name):
                    for command in (["inspect"], ["run"], ["optimize", "--dry-run"]):
                        self.tool(*command, folder / name, code=4)
                    proto = fault_scenarios.model()
                    proto.graph.initializer.append(external("other", [1024], {"location": name}))
                    del proto.graph.initializer[-2]
                    self.model.write_bytes(proto.SerializeToString())
                    done = addnorm.run("optimize", self.model, "--dry-run", timeout=60)
                    # A link to a device leads outside first; a socket cannot be opened.
                    self.assertIn(done.returncode, (3, 4), done.stderr)
                    self.assertIsNone(fault_scenarios.message_problem(done.stderr))
                    self.assertIn(f"'{name}'", done.stderr)

    # ---- outputs

    def test_standard_output_by_each_of_its_names(self):
        wanted = self.write_plain()
        for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            with self.subTest(name):
                with open(self.root / "redirected", "wb") as out:
                    done = subprocess.run([addnorm.BINARY, "-q", "optimize", self.model, name], stdout=out, timeout=60)
                self.assertEqual((done.returncode, (self.root / "redirected").read_bytes()), (0, wanted))
                piped = subprocess.run([addnorm.BINARY, "-q", "optimize", self.model, name], capture_output=True,
                                       timeout=60)
                self.assertEqual((piped.returncode, piped.stdout), (0, wanted))
                self.tool("optimize", self.model, name, "--json", code=2)
        before = os.stat("/dev/null")
        self.tool("optimize", self.model, "/dev/null")
        self.assertEqual(os.stat("/dev/null").st_mode, before.st_mode)
        self.tool("optimize", self.model, "/dev/full", code=4)

    def test_names_of_all_letters_and_lengths(self):
        wanted = self.write_plain()
        for name in ("modèle-模型-🦜.onnx", "with space.onnx", "n" * NAME_MAX, "ä" * (NAME_MAX // 2)):
            with self.subTest(name[:20]):
                self.tool("optimize", self.model, f"./{name}")
                self.tool("optimize", self.model, f"./{name}", "--force")
                self.assertEqual((self.root / name).read_bytes(), wanted)
                self.tool("optimize", f"./{name}", "--dry-run")
        (self.root / os.fsdecode(b"not-utf8-\xff")).mkdir()
        subprocess.run([addnorm.BINARY, "-q", "optimize", "in/model.onnx", b"not-utf8-\xff/o.onnx"], cwd=self.root,
                       check=True, stdout=subprocess.DEVNULL, timeout=60)
        self.assertIn("file name too long", self.tool("optimize", self.model, "n" * (NAME_MAX + 1), code=4).stderr)

    def deep(self, length, last):
        """A path of so many bytes relative to the root, with a last name of `last`, in folders that exist."""
        rest = length - last
        sizes = [100] * ((rest - 150) // 101)
        sizes.append(rest - 101 * len(sizes) - 1)
        here = os.open(self.root, os.O_RDONLY)
        for size in sizes:
            with contextlib.suppress(FileExistsError):
                os.mkdir("d" * size, dir_fd=here)
            inner = os.open("d" * size, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(here)
        return "/".join(["d" * size for size in sizes] + ["f" * last])

    def test_paths_up_to_the_longest(self):
        wanted = self.write_plain()
        longest = self.deep(PATH_MAX - 1, 200)
        self.assertEqual(len(longest), PATH_MAX - 1)
        self.tool("optimize", self.model, longest)
        self.tool("optimize", self.model, longest, "--force")
        self.tool("optimize", longest, "again.onnx")
        self.assertEqual((self.root / "again.onnx").read_bytes(), wanted)
        self.assertIn("file name too long", self.tool("optimize", self.model, longest + "f", code=4).stderr)

    def test_a_path_whose_folder_has_no_room_for_a_temporary_name(self):
        wanted = self.write_plain()
        path = self.deep(PATH_MAX - 1, 5)
        self.tool("optimize", self.model, path)
        # A file that replaces another needs a second name for a moment.
        self.tool("optimize", self.model, path, "--force", code=4)
        self.tool("optimize", path, "again.onnx")
        self.assertEqual((self.root / "again.onnx").read_bytes(), wanted)

    def test_modes_are_those_of_the_umask_or_of_the_old_file(self):
        fault_scenarios.write_model(self.model, ("w.bin", "sub/other.bin"))
        for umask, file, folder in ((0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0o002, 0o664, 0o775)):
            out = self.root / f"{umask:o}"
            out.mkdir()
            with self.subTest(oct(umask)):
                self.tool("optimize", self.model, out / "o.onnx", umask=umask)
                self.tool("run", self.model, "--outputs", out / "made", umask=umask)
                for name, mode in {"o.onnx": file, "w.bin": file, "sub": folder, "sub/other.bin": file,
                                   "made": folder, "made/output_0.pb": file}.items():
                    self.assertEqual(stat.S_IMODE((out / name).stat().st_mode), mode, name)
                (out / "o.onnx").chmod(0o604)
                self.tool("optimize", self.model, out / "o.onnx", "--force", umask=umask)
                self.assertEqual(stat.S_IMODE((out / "o.onnx").stat().st_mode), 0o604)

    @unittest.skipIf(os.geteuid() != 0, "skipped: only root can become somebody who may not write")
    def test_folders_that_may_not_be_written_to(self):
        self.write_plain()
        (self.root / "out").mkdir()
        (self.root / "out/old.onnx").write_bytes(b"old")
        (self.root / "out/old.onnx").chmod(0o666)
        for name, options in (("new.onnx", []), ("old.onnx", ["--force"])):
            done = addnorm.run("optimize", self.model, self.root / "out" / name, *options, user=NOBODY, group=NOBODY)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("permission denied", done.stderr)
            self.assertIsNone(fault_scenarios.message_problem(done.stderr))
        # Nothing is written in place.
        self.assertEqual(fault_scenarios.contents(self.root / "out"), {"old.onnx": b"old"})


if __name__ == "__main__":
    unittest.main()
