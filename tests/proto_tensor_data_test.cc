// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "proto/import.h"
#include "proto/tensor_data.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using std::string_literals::operator""s;
using onnx::TensorProto;
using tests::Message;

struct Held {
  std::unique_ptr<ir::Model> model;
  const ir::Tensor* tensor = nullptr;
};

// The tensor as the initializer of a model.
absl::StatusOr<Held> ImportAsInitializer(const TensorProto& tensor) {
  onnx::ModelProto model;
  model.mutable_graph()->set_name("g");
  *model.mutable_graph()->add_initializer() = tensor;
  model.mutable_graph()->mutable_initializer(0)->set_name("w");
  auto file = ModelFile::FromBytes("model", model.SerializeAsString());
  if (!file.ok()) return file.status();
  auto imported = Import(*file);
  if (!imported.ok()) return imported.status();
  Held held{.model = std::move(imported->model)};
  held.tensor = held.model->graph.FindValue("w")->initializer();
  return held;
}

TensorProto Tensor(int type, std::vector<int64_t> dims,
                   const std::function<void(TensorProto&)>& fill) {
  TensorProto tensor;
  tensor.set_data_type(type);
  tensor.mutable_dims()->Add(dims.begin(), dims.end());
  fill(tensor);
  return tensor;
}

std::string Bytes(const TensorProto& tensor) {
  const auto held = ImportAsInitializer(tensor);
  INFO(held.status());
  REQUIRE(held.ok());
  const auto bytes = held->model->reader->Read(*held->tensor);
  INFO(bytes.status());
  REQUIRE(bytes.ok());
  return *bytes;
}

std::string Refusal(const TensorProto& tensor) {
  const auto held = ImportAsInitializer(tensor);
  REQUIRE_FALSE(held.ok());
  CHECK(held.status().code() == absl::StatusCode::kInvalidArgument);
  return Message(held.status());
}

auto Raw(const std::string& bytes) {
  return [bytes](TensorProto& t) { t.set_raw_data(bytes); };
}
auto Int32s(std::vector<int32_t> items) {
  return [items](TensorProto& t) {
    t.mutable_int32_data()->Add(items.begin(), items.end());
  };
}

TEST_CASE("every encoding of a tensor gives the bytes that raw_data would have",
          "[proto]") {
  const auto float_data = [](std::vector<float> items) {
    return [items](TensorProto& t) {
      t.mutable_float_data()->Add(items.begin(), items.end());
    };
  };
  CHECK(Bytes(Tensor(TensorProto::FLOAT, {2}, float_data({1.0f, -2.0f}))) ==
        "\0\0\x80\x3f\0\0\0\xc0"s);
  CHECK(Bytes(Tensor(TensorProto::COMPLEX64, {1}, float_data({1.0f, -2.0f})))
            .size() == 8);
  CHECK(Bytes(Tensor(TensorProto::FLOAT, {}, Raw("abcd"))) == "abcd");
  CHECK(Bytes(Tensor(TensorProto::DOUBLE, {1}, [](auto& t) {
          t.add_double_data(1.0);
        })) == "\0\0\0\0\0\0\xf0\x3f"s);
  CHECK(Bytes(Tensor(TensorProto::INT64, {1}, [](auto& t) {
          t.add_int64_data(-1);
        })) == std::string(8, '\xff'));
  CHECK(Bytes(Tensor(TensorProto::UINT64, {1}, [](auto& t) {
          t.add_uint64_data(258);
        })) == "\2\1\0\0\0\0\0\0"s);
  CHECK(Bytes(Tensor(TensorProto::UINT32, {1},
                     [](auto& t) { t.add_uint64_data(258); })) == "\2\1\0\0"s);
  CHECK(Bytes(Tensor(TensorProto::INT32, {2}, Int32s({-1, 2}))) ==
        "\xff\xff\xff\xff\2\0\0\0"s);
  CHECK(Bytes(Tensor(TensorProto::INT16, {1}, Int32s({-2}))) == "\xfe\xff"s);
  CHECK(Bytes(Tensor(TensorProto::UINT8, {1}, Int32s({255}))) == "\xff");
  CHECK(Bytes(Tensor(TensorProto::BOOL, {2}, Int32s({1, 0}))) == "\1\0"s);
  CHECK(Bytes(Tensor(TensorProto::FLOAT16, {1}, Int32s({0x3c00}))) ==
        "\0\x3c"s);
  CHECK(Bytes(Tensor(TensorProto::FLOAT16, {1}, Int32s({-0x4400}))) ==
        "\0\xbc"s);
  CHECK(Bytes(Tensor(TensorProto::BFLOAT16, {1}, Int32s({0x3f80}))) ==
        "\x80\x3f"s);
  CHECK(Bytes(Tensor(TensorProto::FLOAT8E4M3FN, {1}, Int32s({0x38}))) ==
        "\x38");
  CHECK(Bytes(Tensor(TensorProto::INT4, {3}, Int32s({0x21, -1}))) ==
        "\x21\xff");
  CHECK(Bytes(Tensor(TensorProto::INT4, {3}, Raw("\x21\x03"))) == "\x21\x03");
  CHECK(Bytes(Tensor(TensorProto::UINT2, {5}, Int32s({0x1b, 2}))) ==
        "\x1b\x02");
  CHECK(Bytes(Tensor(TensorProto::FLOAT6E2M3, {4}, Raw("abc"))) == "abc");
  CHECK(Bytes(Tensor(TensorProto::FLOAT, {0, 3}, [](auto&) {})).empty());
}

TEST_CASE("a large tensor stays in the file and reads as the same bytes",
          "[proto]") {
  constexpr int kCount = 5000;
  const auto numbers = [](int i) { return i * 7919 - 12'345'678; };
  TensorProto typed = Tensor(TensorProto::INT32, {kCount}, [&](auto& t) {
    for (int i = 0; i < kCount; ++i) t.add_int32_data(numbers(i));
  });
  std::string raw;
  for (int i = 0; i < kCount; ++i) {
    const int32_t number = numbers(i);
    raw.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  const auto held = ImportAsInitializer(typed);
  REQUIRE(held.ok());
  CHECK(std::holds_alternative<ir::FileElements>(held->tensor->elements));
  CHECK(Bytes(typed) == raw);
  CHECK(Bytes(Tensor(TensorProto::INT32, {kCount}, Raw(raw))) == raw);
  CHECK_THAT(Refusal(Tensor(TensorProto::INT32, {kCount + 1}, Raw(raw))),
             ContainsSubstring(
                 "tensor 'w': has 20000 bytes in raw_data, expected 20004"));
  // Without reading them, numbers of variable length can only be bounded.
  typed.set_dims(0, kCount * 10);
  CHECK_THAT(
      Refusal(typed),
      ContainsSubstring("in int32_data, expected 50000 for int32[50000]"));
  typed.set_dims(0, kCount + 1);
  const auto off_by_one = ImportAsInitializer(typed);
  REQUIRE(off_by_one.ok());
  CHECK_THAT(
      Message(off_by_one->model->reader->Read(*off_by_one->tensor).status()),
      ContainsSubstring("has 20000 bytes of elements, expected 20004"));
}

TEST_CASE("NaN payloads, negative zeros and denormals survive", "[proto]") {
  const std::string bits = "\1\0\x80\x7f\x01\0\xc0\xff\0\0\0\x80\1\0\0\0"s;
  CHECK(Bytes(Tensor(TensorProto::FLOAT, {4}, Raw(bits))) == bits);
}

TEST_CASE("types that nobody looks into pass", "[proto]") {
  CHECK(ImportAsInitializer(Tensor(99, {3}, Raw("abc"))).ok());
  CHECK(
      ImportAsInitializer(Tensor(TensorProto::UNDEFINED, {3}, Raw("ab"))).ok());
  const auto strings = ImportAsInitializer(Tensor(
      TensorProto::STRING, {1}, [](auto& t) { t.add_string_data("x"); }));
  REQUIRE(strings.ok());
  CHECK(strings->model->reader->Read(*strings->tensor).status().code() ==
        absl::StatusCode::kUnimplemented);
}

TEST_CASE("data that do not fit type and dims are refused with both sizes",
          "[proto]") {
  CHECK_THAT(
      Refusal(Tensor(TensorProto::FLOAT, {8}, Raw("abcd"))),
      ContainsSubstring(
          "tensor 'w': has 4 bytes in raw_data, expected 32 for float[8]"));
  CHECK_THAT(Refusal(Tensor(TensorProto::FLOAT, {1}, Raw("abcdefgh"))),
             ContainsSubstring("has 8 bytes in raw_data, expected 4"));
  CHECK_THAT(
      Refusal(Tensor(TensorProto::INT8, {3}, Int32s({1, 2}))),
      ContainsSubstring("has 2 items in int32_data, expected 3 for int8[3]"));
  CHECK_THAT(Refusal(Tensor(TensorProto::FLOAT, {8}, [](auto&) {})),
             ContainsSubstring("has no data, expected 8 elements"));
  CHECK_THAT(Refusal(Tensor(TensorProto::STRING, {2},
                            [](auto& t) { t.add_string_data("x"); })),
             ContainsSubstring("has 1 items in string_data, expected 2"));
  CHECK_THAT(Refusal(Tensor(TensorProto::FLOAT, {-1}, Raw("abcd"))),
             ContainsSubstring("has dims [-1], which are negative"));
  CHECK_THAT(
      Refusal(Tensor(TensorProto::FLOAT, {1ll << 32, 1ll << 32}, Raw("abcd"))),
      ContainsSubstring("has dims [4294967296,4294967296]"));
  CHECK_THAT(Refusal(Tensor(TensorProto::FLOAT, {1ll << 61, 1}, Raw(""))),
             ContainsSubstring("more than memory can hold"));
  CHECK_THAT(
      Refusal(Tensor(TensorProto::FLOAT, {1}, Int32s({1}))),
      ContainsSubstring("has data in int32_data, which is not for type float"));
  CHECK_THAT(Refusal(Tensor(TensorProto::FLOAT, {1},
                            [](auto& t) {
                              t.set_raw_data("abcd");
                              t.add_float_data(1);
                            })),
             ContainsSubstring("has data in float_data and in raw_data"));
}

}  // namespace
}  // namespace addnorm::proto
