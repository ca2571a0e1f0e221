// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "onnx/onnx_pb.h"
#include "proto/tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using tests::Message;
using tests::NumberField;
using tests::ScratchDirectory;

std::string FloatTensor(std::initializer_list<uint64_t> dims,
                        const std::string& raw) {
  std::string bytes;
  for (const uint64_t dim : dims) bytes += NumberField(1, dim);
  return bytes + NumberField(2, 1) + tests::Field(8, "x") +
         tests::Field(9, raw);
}

TEST_CASE("a tensor file is read as it was written", "[proto]") {
  const ScratchDirectory scratch;
  const ir::Tensor tensor{.name = "x",
                          .type = ir::DataType::kFloat16,
                          .dims = {2, 1},
                          .elements = ir::InlineElements{"abcd"}};
  REQUIRE(WriteTensorFile(tensor, scratch / "x.pb").ok());
  const auto read = ReadTensorFile(scratch / "x.pb");
  REQUIRE(read.ok());
  CHECK(read->name == "x");
  CHECK(read->type == tensor.type);
  CHECK(read->dims == tensor.dims);
  CHECK(*read->inline_bytes() == "abcd");
  CHECK(WriteTensorFile(tensor, scratch / "x.pb", /*replace=*/false).code() ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("typed data are read as raw data would be", "[proto]") {
  const ScratchDirectory scratch;
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::BFLOAT16);
  proto.add_dims(2);
  proto.add_int32_data(0x3f80);
  proto.add_int32_data(0x4000);
  scratch.Write("x.pb", proto.SerializeAsString());
  const auto read = ReadTensorFile(scratch / "x.pb");
  REQUIRE(read.ok());
  CHECK(*read->inline_bytes() == std::string("\x80\x3f\x00\x40", 4));
}

TEST_CASE("hostile tensor files are errors that name file and fault",
          "[proto]") {
  const ScratchDirectory scratch;
  const std::string huge(10, '\xff');
  const std::pair<std::string, const char*> cases[] = {
      {"\xff\xff\xff", "x.pb: is no TensorProto"},
      {FloatTensor({2}, "abcdefgh").substr(0, 9), "x.pb: is no TensorProto"},
      {FloatTensor({3}, "abcdefgh"), "has 8 bytes of elements, expected 12"},
      {FloatTensor({uint64_t{1} << 62, uint64_t{1} << 62}, ""), "has dims ["},
      {FloatTensor({uint64_t{1} << 62}, ""), "has dims ["},
      {FloatTensor({~uint64_t{0}}, ""), "has dims [-1]"},
      {NumberField(2, 8), "elements of type string are not supported"},
      {NumberField(2, 99), "elements of type type 99 are not supported"},
      {NumberField(2, 1) + NumberField(14, 1), "external data are not"},
      {NumberField(1, 5) + NumberField(2, 1),
       "has 0 bytes of elements, expected 20"},
  };
  for (const auto& [bytes, message] : cases) {
    scratch.Write("x.pb", bytes);
    const auto read = ReadTensorFile(scratch / "x.pb");
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(Message(read.status()), ContainsSubstring(message));
    CHECK_THAT(Message(read.status()), ContainsSubstring("x.pb: "));
  }
}

TEST_CASE("what is no regular file is no tensor file", "[proto]") {
  const ScratchDirectory scratch;
  CHECK_THAT(Message(ReadTensorFile(scratch.path().string()).status()),
             ContainsSubstring("is no regular file"));
  CHECK(ReadTensorFile(scratch / "none.pb").status().code() ==
        absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace addnorm::proto
