// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Inputs of runs: symbolic dimensions, generated values, folders.
#include "tool/run_inputs.h"

#include <cmath>
#include <string>
#include <vector>

#include "proto/tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/imported.h"
#include "tests/support/proto_files.h"
#include "tool/input_facts.h"
#include "tool/input_values.h"
#include "tool/npy.h"
#include "tool/symbol_dims.h"

namespace addnorm::tool {
namespace {

using runtime::Dims;
using runtime::Tensor;
using tests::ImportText;
using tests::ScratchDirectory;

constexpr std::string_view kDecoder = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (int64[batch, sequence] input_ids,
        int64[batch, "past + sequence"] attention_mask,
        int64[batch, sequence] position_ids,
        float[batch, 2, past, 4] past_key,
        float16[s72, s70, 3] other,
        bool[1] use_cache) => (float[batch, sequence, 4] y)
  <float[10, 4] table = {0}>
  {
    ids = Cast<to = 6>(input_ids)
    y = Gather(table, ids)
  })";

std::unique_ptr<ir::Model> Decoder() {
  // The text form has no short way to write 40 zeros.
  std::string text(kDecoder);
  const std::string zeros = "{0}";
  std::string forty = "{0";
  for (int i = 1; i < 40; ++i) forty += ", 0";
  text.replace(text.find(zeros), zeros.size(), forty + "}");
  return ImportText(text);
}

RunInputs Gathered(const ir::Model& model, const InputRequest& request = {}) {
  auto inputs = GatherInputs(model, request);
  INFO(inputs.status());
  REQUIRE(inputs.ok());
  return *std::move(inputs);
}

template <typename T>
std::vector<T> Elements(const Tensor& tensor) {
  return {tensor.elements<T>().begin(), tensor.elements<T>().end()};
}

TEST_CASE("inputs: symbols are called what they are", "[run]") {
  const std::pair<const char*, DimRole> cases[] = {
      {"batch_size", DimRole::kBatch},
      {"N", DimRole::kBatch},
      {"sequence_length", DimRole::kSequence},
      {"decoder_sequence_length", DimRole::kSequence},
      {"T", DimRole::kSequence},
      {"encoder_sequence_length", DimRole::kEncoder},
      {"enc", DimRole::kEncoder},
      {"past_sequence_length", DimRole::kPast},
      {"total_sequence_length", DimRole::kTotal},
      {"s72", DimRole::kOther},
      {"unk__144", DimRole::kOther},
  };
  for (const auto& [symbol, role] : cases) {
    INFO(symbol);
    CHECK(RoleOf(symbol) == role);
  }
}

TEST_CASE("inputs: shapes come from defaults, and sums from their parts",
          "[run]") {
  const auto model = Decoder();
  const RunInputs inputs = Gathered(*model);
  const Dims expected[] = {{1, 8},       {1, 8},    {1, 8},
                           {1, 2, 0, 4}, {1, 8, 3}, {1}};
  for (size_t i = 0; i < inputs.tensors.size(); ++i)
    CHECK(inputs.tensors[i].dims() == expected[i]);
  const RunInputs given =
      Gathered(*model, {.dims = {{"past", 3}, {"sequence", 2}, {"batch", 2}}});
  CHECK(given.tensors[1].dims() == Dims{2, 5});
  CHECK(given.tensors[3].dims() == Dims{2, 2, 3, 4});
  CHECK(given.dims.front().origin == "given");
}

TEST_CASE("inputs: a total is the past and the sequence", "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (int64[batch_size, total_sequence_length] attention_mask,
          float[batch_size, past_sequence_length] past,
          int64[batch_size, sequence_length] ids) => (int64[a, b] y)
    { y = Identity(ids) })");
  const RunInputs inputs =
      Gathered(*model, {.dims = {{"past_sequence_length", 5}}});
  CHECK(inputs.tensors[0].dims() == Dims{1, 13});
}

TEST_CASE("inputs: heads of past keys are as long as the attention's",
          "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    main (float[1, 2, past, kv_cache_dim] k, float[1, 2, past, kv_cache_dim] v,
          float[1, s, 128] q, int32[1] l, int32 t) => (float[1, s, 64] y)
    {
      y, pk, pv = com.microsoft.GroupQueryAttention
          <num_heads = 4, kv_num_heads = 2>(q, , , k, v, l, t)
    })");
  CHECK(Gathered(*model).tensors[0].dims() == Dims{1, 2, 0, 16});
}

TEST_CASE("inputs: a cache of a window holds it, and is no past", "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    main (float[1, 2, past_sliding_length, 16] k,
          float[1, 2, past_sliding_length, 16] v, float[1, s, 128] q,
          int64[1, total_length] mask, int32[1] l, int32 t)
        => (float[1, s, 64] y)
    {
      y, pk, pv = com.microsoft.GroupQueryAttention
          <num_heads = 4, kv_num_heads = 2, local_window_size = 32,
           sliding_window_cache = 1>(q, , , k, v, l, t)
    })");
  const RunInputs inputs = Gathered(*model);
  CHECK(inputs.tensors[0].dims() == Dims{1, 2, 32, 16});
  CHECK(inputs.tensors[3].dims() == Dims{1, 8});
}

TEST_CASE("inputs: integers are what their names and readers ask for",
          "[run]") {
  const auto model = Decoder();
  const RunInputs inputs =
      Gathered(*model, {.dims = {{"past", 2}, {"batch", 2}, {"sequence", 3}}});
  CHECK(inputs.origins[0] == "generated: ids below 10");
  for (const int64_t id : Elements<int64_t>(inputs.tensors[0])) {
    CHECK(id >= 0);
    CHECK(id < 10);
  }
  CHECK(Elements<int64_t>(inputs.tensors[1]) == std::vector<int64_t>(10, 1));
  CHECK(Elements<int64_t>(inputs.tensors[2]) ==
        std::vector<int64_t>{2, 3, 4, 2, 3, 4});
  CHECK(Elements<bool>(inputs.tensors[5]) == std::vector<bool>{true});
}

TEST_CASE("inputs: ids are looked up in tables behind functions and branches",
          "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    main (int64[n] ids, bool c, int64[n] others) => (float[n] y, float[n] z)
    <float[3] table = {1, 2, 3}>
    {
      y = my.Look(table, ids)
      z = If(c) <then_branch = t () => (float[n] u) { u = Gather(table, others) },
                 else_branch = e () => (float[n] v) { v = Gather(table, ids) }>
    }
    <domain: "my", opset_import: ["" : 17]>
    Look (table, rows) => (picked) {
      flat = Reshape(rows, rows)
      picked = Gather(table, flat)
    })");
  CHECK(TableRows(*model->graph.inputs()[0]) == 3);
  CHECK(TableRows(*model->graph.inputs()[2]) == 3);
  CHECK(TableRows(*model->graph.inputs()[1]) == 0);
}

TEST_CASE("inputs: floats are normal, and the same on every machine", "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[1000] x, float[1000] y, float16[2] h) => (float[1000] z)
    { z = Identity(x) })");
  const RunInputs inputs = Gathered(*model);
  double sum = 0, squares = 0;
  for (const float v : inputs.tensors[0].elements<float>()) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  CHECK(std::abs(sum / 1000) < 0.1);
  CHECK(std::abs(squares / 1000 - 1) < 0.1);
  CHECK(inputs.tensors[0].ToBytes() != inputs.tensors[1].ToBytes());
  CHECK(Gathered(*model).tensors[0].ToBytes() == inputs.tensors[0].ToBytes());
  CHECK(Gathered(*model, {.seed = 1}).tensors[0].ToBytes() !=
        inputs.tensors[0].ToBytes());
  // The C++ standard says what std::mt19937_64 gives; the rest is integers.
  // These were computed by a program of their own.
  const float* x = inputs.tensors[0].data<float>();
  CHECK(x[0] == -1.0828704833984375f);
  CHECK(x[1] == 1.61199951171875f);
  CHECK(x[2] == 0.059814453125f);
}

TEST_CASE("inputs: a folder has them by place or by name", "[run]") {
  const ScratchDirectory folder;
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[n] "a/b", float[n] c, float[n] d, float[2] w) => (float[n] y)
    <float[2] w = {1, 2}> { y = Identity(c) })");
  folder.Write("a_b.npy", NpyFromTensor(Tensor::Vector<float>({1, 2, 3})));
  folder.Write("output_0.pb", "");
  folder.Write("y.npy", "");  // the output
  folder.Write("notes.txt", "");
  const ir::Tensor c{.name = "c",
                     .type = ir::DataType::kFloat,
                     .dims = {3},
                     .elements = ir::InlineElements{std::string(12, '\0')}};
  REQUIRE(proto::WriteTensorFile(c, folder / "input_1.pb").ok());
  const RunInputs inputs = Gathered(*model, {.folder = folder.path().string()});
  CHECK(inputs.origins == std::vector<std::string>{"a_b.npy", "input_1.pb",
                                                   "generated: normal(0, 1)",
                                                   "initializer"});
  CHECK(inputs.tensors[2].dims() == Dims{3});  // n is known now
  CHECK(inputs.tensors[3].is_absent());
}

TEST_CASE("inputs: errors name file, input, expected and found, and a way out",
          "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[2, n] a) => (float[2, n] y) { y = Identity(a) })");
  const auto error = [&](const InputRequest& request) {
    const auto inputs = GatherInputs(*model, request);
    REQUIRE_FALSE(inputs.ok());
    return std::string(inputs.status().message());
  };
  const ScratchDirectory folder;
  const std::string path = folder.path().string();
  folder.Write("a.npy", NpyFromTensor(Tensor::Vector<double>({1, 2})));
  CHECK(error({.folder = path}) ==
        path +
            "/a.npy: input 'a': expected float[2,n], found double[2]\n"
            "hint: --inputs DIR can hold input_0.pb or a.npy for 'a' "
            "(float[2,n])");
  folder.Write("input_0.pb", "");
  CHECK_THAT(error({.folder = path}),
             ContainsSubstring("input_0.pb: a.npy is there too"));
  CHECK_THAT(error({.folder = path + "/none"}),
             ContainsSubstring("none: no such file or directory"));
  CHECK(error({.dims = {{"m", 1}}}) ==
        "--dim m: no input has this symbolic dimension\n"
        "hint: symbols of the inputs: n");
  CHECK_THAT(error({.dims = {{"n", 5'000'000'000'000'000'000}}}),
             ContainsSubstring("more bytes are needed than can be counted"));
  folder.Write("a.npy",
               NpyFromTensor(Tensor::Vector<float>({1, 2}).WithDims({2, 1})));
  std::filesystem::remove(folder / "input_0.pb");
  CHECK(error({.folder = path, .dims = {{"n", 3}}}) ==
        "--dim n=3: the given inputs have 1\nhint: leave it out");
}

TEST_CASE("inputs: files that are no input's are refused", "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (int64[n] input_ids, int64[n] mask) => (int64[n] y)
    { y = Add(input_ids, mask) })");
  const auto error = [&](const ScratchDirectory& folder) {
    const auto inputs =
        GatherInputs(*model, {.folder = folder.path().string()});
    REQUIRE_FALSE(inputs.ok());
    CHECK(absl::IsFailedPrecondition(inputs.status()));
    return std::string(inputs.status().message());
  };
  const std::string hint =
      "\nhint: --inputs DIR can hold input_0.pb or input_ids.npy for "
      "'input_ids' (int64[n]); input_1.pb or mask.npy for 'mask' (int64[n])";
  const std::string ids = NpyFromTensor(Tensor::Vector<int64_t>({1, 2}));
  const ScratchDirectory typo;
  typo.Write("mask.npy", ids);
  typo.Write("input_idz.npy", ids);
  CHECK(error(typo) == typo.path().string() +
                           "/input_idz.npy: is the file of no input; did you "
                           "mean 'input_ids.npy'?" +
                           hint);
  const ScratchDirectory place;
  place.Write("input_2.pb", "");
  CHECK_THAT(error(place),
             ContainsSubstring("/input_2.pb: is the file of no "
                               "input; did you mean 'input_0.pb'"));
  const ScratchDirectory other;
  other.Write("notes.txt", "");
  other.Write("output_0.pb", "");
  CHECK(error(other) == other.path().string() +
                            ": has no file of an input, found 'notes.txt', "
                            "'output_0.pb'" +
                            hint);
  const ScratchDirectory empty;
  CHECK_THAT(error(empty), ContainsSubstring("found no file at all"));
}

TEST_CASE("inputs: dims that files contradict", "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[s] a, float["past + s"] b, float[s] c, float[past] d)
      => (float[s] y) { y = Add(a, c) })");
  const auto gather = [&](std::vector<std::pair<const char*, size_t>> files,
                          DimValues dims = {}) {
    const ScratchDirectory folder;
    for (const auto& [name, count] : files) {
      folder.Write(name, NpyFromTensor(
                             Tensor::Vector<float>(std::vector<float>(count))));
    }
    return GatherInputs(
        *model, {.folder = folder.path().string(), .dims = std::move(dims)});
  };
  const auto sum = gather({{"a.npy", 3}, {"b.npy", 5}});
  CHECK(absl::IsInvalidArgument(sum.status()));
  CHECK_THAT(std::string(sum.status().message()),
             StartsWith("input 'b': dimension 0 is 5, expected past + s = 3: "
                        "past=0 (default), s=3 (from inputs)\nhint: --dim "));
  CHECK(gather({{"a.npy", 3}, {"b.npy", 5}}, {{"past", 2}}).ok());
  const auto two = gather({{"a.npy", 3}, {"c.npy", 1}});
  REQUIRE(two.ok());
  CHECK(two->warnings ==
        std::vector<std::string>{"input 'c': dimension 0 ('s') is 1, but 3 in "
                                 "another input"});
  const auto near = gather({{"a.npy", 3}}, {{"pst", 2}});
  CHECK_THAT(std::string(near.status().message()),
             StartsWith("--dim pst: no input has this symbolic dimension; did "
                        "you mean 'past'?\nhint: symbols of the inputs: s, "
                        "past"));
  CHECK_FALSE(ParseDims({"s=1", "s=2"}).ok());
  CHECK(ParseDims({"s=1", "s=1"}).ok());
}

TEST_CASE("inputs: a type that cannot be made asks for a file", "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (string[2] s) => (string[2] y) { y = Identity(s) })");
  const auto inputs = GatherInputs(*model, {});
  CHECK_THAT(std::string(inputs.status().message()),
             StartsWith("input 's': ") &&
                 ContainsSubstring("hint: --inputs DIR can hold input_0.pb"));
}

TEST_CASE("inputs: names become file names", "[run]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float a, float "/m/a:0", float "_m_a_0", float ".b") => (float y)
    { y = Identity(a) })");
  CHECK(FileStems(model->graph.inputs()) ==
        std::vector<std::string>{"a", "_m_a_0", "_m_a_0_2", "_b"});
}

}  // namespace
}  // namespace addnorm::tool
