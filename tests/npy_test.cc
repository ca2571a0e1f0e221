// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// .npy files, made byte by byte. The Python layer reads and writes them with
// NumPy itself (run_test.py).
#include "tool/npy.h"

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace addnorm::tool {
namespace {

using ir::DataType;
using runtime::Dims;
using runtime::Tensor;

std::string Npy(const std::string& header, const std::string& data,
                int major = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (size_t i = 0; i < (major == 1 ? 2u : 4u); ++i)
    file += static_cast<char>(header.size() >> 8 * i & 0xff);
  return file + header + data;
}

std::string Header(const std::string& descr, const std::string& shape,
                   bool is_fortran_order = false) {
  return "{'descr': '" + descr +
         "', 'fortran_order': " + (is_fortran_order ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

template <typename T>
std::vector<T> Elements(const Tensor& tensor) {
  REQUIRE(tensor.type() == runtime::kTypeOf<T>);
  return {tensor.elements<T>().begin(), tensor.elements<T>().end()};
}

std::string Error(const std::string& file,
                  DataType declared = DataType::kUndefined) {
  const auto tensor = TensorFromNpy(file, declared);
  REQUIRE_FALSE(tensor.ok());
  return std::string(tensor.status().message());
}

TEST_CASE("npy: C order, Fortran order and both byte orders mean the same",
          "[npy]") {
  // [[1, 2, 3], [4, 5, 6]] as 16-bit integers.
  const std::string rows("\1\0\2\0\3\0\4\0\5\0\6\0", 12);
  const std::string columns("\1\0\4\0\2\0\5\0\3\0\6\0", 12);
  const std::string swapped("\0\1\0\2\0\3\0\4\0\5\0\6", 12);
  const std::string files[] = {
      Npy(Header("<i2", "(2, 3)"), rows),
      Npy(Header("<i2", "(2, 3)"), rows, 2),
      Npy(Header("<i2", "(2, 3)"), rows, 3),
      Npy(Header("<i2", "(2L, 3L)"), rows),
      Npy(Header("<i2", "(2, 3)", true), columns),
      Npy(Header(">i2", "(2, 3)"), swapped),
      Npy("{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<i2\"}", rows),
  };
  for (const std::string& file : files) {
    const auto tensor = TensorFromNpy(file, DataType::kInt16);
    INFO(tensor.status());
    REQUIRE(tensor.ok());
    CHECK(tensor->dims() == Dims{2, 3});
    CHECK(Elements<int16_t>(*tensor) == std::vector<int16_t>{1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("npy: Fortran order of three axes", "[npy]") {
  // Element [i, j, k] of shape (2, 2, 3) is 100 i + 10 j + k.
  const std::vector<uint8_t> expected = {0,   1,   2,   10,  11,  12,
                                         100, 101, 102, 110, 111, 112};
  std::string data;
  for (int k = 0; k < 3; ++k) {
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 2; ++i)
        data += static_cast<char>(100 * i + 10 * j + k);
    }
  }
  const auto tensor = TensorFromNpy(Npy(Header("|u1", "(2, 2, 3)", true), data),
                                    DataType::kUint8);
  REQUIRE(tensor.ok());
  CHECK(Elements<uint8_t>(*tensor) == expected);
}

TEST_CASE("npy: scalars and empty arrays", "[npy]") {
  const auto scalar =
      TensorFromNpy(Npy(Header("<f4", "()"), std::string("\0\0\x80\x3f", 4)),
                    DataType::kFloat);
  REQUIRE(scalar.ok());
  CHECK(scalar->dims().empty());
  CHECK(Elements<float>(*scalar) == std::vector<float>{1});
  const auto empty =
      TensorFromNpy(Npy(Header("<f4", "(3, 0)"), ""), DataType::kFloat);
  REQUIRE(empty.ok());
  CHECK(empty->dims() == Dims{3, 0});
  const Dims huge = {int64_t{1} << 62, 4, 0};
  const auto empty_fortran =
      TensorFromNpy(Npy(Header("<f4", "(4611686018427387904, 4, 0)", true), ""),
                    DataType::kFloat);
  REQUIRE(empty_fortran.ok());
  CHECK(empty_fortran->dims() == huge);
}

TEST_CASE("npy: bits of types that NumPy lacks, where the model declares them",
          "[npy]") {
  const std::string one("\x80\x3f", 2);
  for (const char* descr : {"<u2", "|V2", "<V2"}) {
    const auto tensor =
        TensorFromNpy(Npy(Header(descr, "(1,)"), one), DataType::kBFloat16);
    INFO(descr << tensor.status());
    REQUIRE(tensor.ok());
    CHECK(tensor->type() == DataType::kBFloat16);
    CHECK(tensor->data<uint16_t>()[0] == 0x3f80);
  }
  CHECK(TensorFromNpy(Npy(Header("<u2", "(1,)"), one), DataType::kUint16)
            ->type() == DataType::kUint16);
  CHECK(Error(Npy(Header("|V2", "(1,)"), one), DataType::kFloat) ==
        "has elements of type 'V2', which is not for float");
  const auto int4 =
      TensorFromNpy(Npy(Header("|i1", "(2,)"), "\x07\xf8"), DataType::kInt4);
  REQUIRE(int4.ok());
  CHECK(int4->ToBytes() == "\x87");
  CHECK(Error(Npy(Header("|i1", "(1,)"), "\x08"), DataType::kInt4) ==
        "element 0 is 8, which is no int4");
}

TEST_CASE("npy: what is written is read back, and its data are aligned",
          "[npy]") {
  const Tensor tensors[] = {
      Tensor::Scalar<double>(0.5),
      Tensor::Vector<int64_t>({1, -2, 3}),
      Tensor::Vector<runtime::Half>({{0x3c00}, {0x7e00}}),
      Tensor::Vector<runtime::BFloat16>({{0x3f80}}),
      Tensor::Vector<runtime::Int4>({{-8}, {7}}),
      Tensor::Vector<uint8_t>({1, 2, 3, 4}).WithDims({2, 1, 2}),
      Tensor::Vector<float>({}),
  };
  for (const Tensor& tensor : tensors) {
    const std::string file = NpyFromTensor(tensor);
    CHECK((file.size() - tensor.byte_size()) % 64 == 0);
    const auto read = TensorFromNpy(file, tensor.type());
    INFO(file << read.status());
    REQUIRE(read.ok());
    CHECK(read->type() == tensor.type());
    CHECK(read->dims() == tensor.dims());
    CHECK(read->ToBytes() == tensor.ToBytes());
  }
}

TEST_CASE("npy: every cut of a file is an error", "[npy]") {
  const std::string file = Npy(Header("<i2", "(3,)"), std::string(6, 'x'));
  for (size_t size = 0; size < file.size(); ++size) {
    const auto tensor = TensorFromNpy(file.substr(0, size), DataType::kInt16);
    INFO(size);
    CHECK(tensor.status().code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(Error(file + "x") == "has 7 bytes of elements, too many for int16[3]");
  CHECK(Error(file.substr(0, file.size() - 2)) ==
        "has 4 bytes of elements, too few for int16[3]");
}

TEST_CASE("npy: hostile headers are errors that say what is wrong", "[npy]") {
  const std::pair<std::string, const char*> cases[] = {
      {"PK\3\4 a zip file", "is no .npy file"},
      {Npy("", ""), "has a malformed header"},
      {Npy("{}", ""), "has a malformed header"},
      {Npy(Header("<f4", "(3,)") + "x", ""), "has a malformed header"},
      {Npy("{'descr': '<f4', 'descr': '<f4', ", ""), "malformed header"},
      {Npy("{'descr': <f4}", ""), "has a malformed header"},
      {Npy("{'descr': '<f4", ""), "has a malformed header"},
      {Npy("{'shape': (1, 2", ""), "has a malformed header"},
      {Npy(Header("<f4", "(-1,)"), ""), "a shape that no array can have"},
      {Npy(Header("<f4", "(99999999999999999999,)"), ""),
       "has a shape that no array can have"},
      {Npy(Header("<f4", "(4611686018427387904, 4611686018427387904)"), ""),
       "has 0 bytes of elements, too few"},
      {Npy(Header("<f8", "(2305843009213693952,)"), ""),
       "has 0 bytes of elements, too few"},
      {Npy(Header("|O", "(1,)"), "x"), "has elements of type '|O'"},
      {Npy(Header("<U4", "(1,)"), "x"), "has elements of type '<U4'"},
      {Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
           ""),
       "has elements of a structured type"},
      {Npy(Header("|b1", "(1,)"), "\2"), "element 0 is 2, which is no bool"},
      {Npy(Header("<f4", "(1,)"), "four", 9), "has .npy format 9"},
      {Npy(Header("<f4", "(" + std::string(200, '1') + ")"), ""),
       "has a shape that no array can have"},
  };
  for (const auto& [file, message] : cases)
    CHECK_THAT(Error(file), ContainsSubstring(message));
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1, ";
  CHECK(Error(Npy(Header("<f4", many + ")"), "four")) ==
        "has more than 64 dimensions");
  std::string huge = Npy("", "", 2);
  huge.replace(8, 4, "\xff\xff\xff\xff");
  CHECK_THAT(Error(huge), ContainsSubstring("ends within its header"));
}

}  // namespace
}  // namespace addnorm::tool
