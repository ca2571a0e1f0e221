# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""What ONNX text cannot say: annotations, device configurations, metadata.

The site is the one of tests/fixtures/operands/plain.onnxtxt; each test changes
one thing of it.
"""

import tempfile
import unittest

import onnx
import onnx.parser
from onnx import TensorProto, helper

import addnorm
import structure

INNER = ["square", "mean", "mean_eps", "root", "inverse"]


def plain():
    path = addnorm.ROOT / "tests/fixtures/operands/plain.onnxtxt"
    return onnx.parser.parse_model(path.read_text())


def node(model, output):
    return next(n for n in model.graph.node if output in n.output)


class NearMissTest(unittest.TestCase):
    def fused(self, model):
        with tempfile.TemporaryDirectory() as folder:
            result, self.report = addnorm.optimize(model, folder)
        return result

    def expect(self, model, count):
        result = self.fused(model)
        self.assertEqual(len(addnorm.fused_nodes(result)), count, self.report)
        if count == 0:
            self.assertEqual(result.SerializeToString(), model.SerializeToString())
        return result

    def annotate(self, model, name):
        annotation = model.graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="two")

    def test_the_site_without_a_change_is_fused(self):
        self.expect(plain(), 1)

    def test_an_annotated_inner_value_stays(self):
        for name in INNER:
            with self.subTest(name):
                model = plain()
                self.annotate(model, name)
                self.expect(model, 0)

    def test_annotations_of_values_that_stay_do_not_matter(self):
        for name in ["s", "y", "residual", "weight"]:
            with self.subTest(name):
                model = plain()
                self.annotate(model, name)
                result = self.expect(model, 1)
                self.assertEqual(result.graph.quantization_annotation,
                                 model.graph.quantization_annotation)

    def test_a_node_with_device_configurations_stays(self):
        for name in ["s", *INNER, "normed"]:
            with self.subTest(name):
                model = plain()
                model.ir_version = 11
                model.configuration.add(name="two", num_devices=2)
                node(model, name).device_configurations.add(configuration_id="two")
                self.expect(model, 0)

    def test_a_string_epsilon_is_no_epsilon(self):
        model = plain()
        model.graph.initializer.remove(
            next(t for t in model.graph.initializer if t.name == "eps"))
        model.graph.initializer.append(helper.make_tensor("eps", TensorProto.STRING, [], [b"1"]))
        self.expect(model, 0)

    def test_the_call_takes_name_and_metadata_of_the_add(self):
        model = plain()
        model.ir_version = 10
        add = node(model, "s")
        add.name, add.doc_string = "the add", "residual of layer 7"
        add.metadata_props.add(key="namespace", value="layers.7")
        node(model, "root").metadata_props.add(key="namespace", value="layers.7.norm")
        call, = addnorm.fused_nodes(self.expect(model, 1))
        self.assertEqual(call.name, "the add")
        self.assertEqual(call.doc_string, add.doc_string)
        self.assertEqual(call.metadata_props, add.metadata_props)

    def test_everything_else_is_kept(self):
        model = plain()
        model.doc_string, model.producer_name, model.model_version = "d", "p", 7
        model.graph.doc_string = "g"
        model.metadata_props.add(key="k", value="v")
        model.graph.value_info.append(helper.make_tensor_value_info("extra", TensorProto.FLOAT, None))
        model.graph.node.append(helper.make_node("Neg", ["y"], ["extra"], name="extra",
                                                 doc_string="kept"))
        result = self.expect(model, 1)
        self.assertEqual(structure.untouched_fields_differ(model, result), [])

    def test_value_info_of_inner_values_goes(self):
        model = plain()
        del model.graph.output[1]  # s, which another node still reads
        model.graph.node.append(helper.make_node("Neg", ["s"], ["extra"]))
        for name in ["s", "root"]:
            model.graph.value_info.append(
                helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "seq", None]))
        result = self.expect(model, 1)
        self.assertEqual([v.name for v in result.graph.value_info], ["s"])

    def test_names_that_the_tool_might_make_are_taken(self):
        for name in ["y_1", "sum", "ai.addnorm", "AddRmsNorm"]:
            with self.subTest(name):
                model = plain()
                model.graph.node.append(helper.make_node("Neg", ["y"], [name], name=name))
                result = self.expect(model, 1)
                self.assertIsNone(addnorm.checker_complaint(result))
                self.assertEqual(structure.differences(model, result), [])


if __name__ == "__main__":
    unittest.main()
