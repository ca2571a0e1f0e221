// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "tool/npy_header.h"

namespace addnorm::tool {
namespace {

using ir::DataType;
using runtime::Dims;
using runtime::Tensor;

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format(format, std::forward<Args>(args)...));
}

// ---- types

struct TypeRow {
  std::string_view code;  // a descr without its byte order
  size_t size;            // bytes of an element
  DataType type;
  size_t swapped = size;  // bytes that a byte order turns round
};

constexpr TypeRow kTypes[] = {
    {"f2", 2, DataType::kFloat16},
    {"f4", 4, DataType::kFloat},
    {"f8", 8, DataType::kDouble},
    {"i1", 1, DataType::kInt8},
    {"i2", 2, DataType::kInt16},
    {"i4", 4, DataType::kInt32},
    {"i8", 8, DataType::kInt64},
    {"u1", 1, DataType::kUint8},
    {"u2", 2, DataType::kUint16},
    {"u4", 4, DataType::kUint32},
    {"u8", 8, DataType::kUint64},
    {"b1", 1, DataType::kBool},
    {"?", 1, DataType::kBool},
    {"c8", 8, DataType::kComplex64, 4},
    {"c16", 16, DataType::kComplex128, 8},
    {"V1", 1, DataType::kUndefined},
    {"V2", 2, DataType::kUndefined},
};

// What a type that NumPy lacks may be stored as, the first when written.
struct BitsRow {
  DataType type;
  std::string_view codes[2];
  // Elements in files are at least and at most this; both 0: any bits.
  int least = 0, most = 0;
};

constexpr BitsRow kBits[] = {
    {DataType::kBFloat16, {"V2", "u2"}},
    {DataType::kFloat8E4M3FN, {"V1", "u1"}},
    {DataType::kFloat8E4M3FNUZ, {"V1", "u1"}},
    {DataType::kFloat8E5M2, {"V1", "u1"}},
    {DataType::kFloat8E5M2FNUZ, {"V1", "u1"}},
    {DataType::kFloat8E8M0, {"V1", "u1"}},
    {DataType::kFloat4E2M1, {"V1", "u1"}, 0, 15},
    {DataType::kUint4, {"u1", "u1"}, 0, 15},
    {DataType::kInt4, {"i1", "i1"}, -8, 7},
    {DataType::kUint2, {"u1", "u1"}, 0, 3},
    {DataType::kInt2, {"i1", "i1"}, -2, 1},
    {DataType::kBool, {"b1", "?"}, 0, 1},
};

const BitsRow* FindBits(DataType type) {
  const auto* row =
      std::find_if(std::begin(kBits), std::end(kBits),
                   [&](const BitsRow& r) { return r.type == type; });
  return row == std::end(kBits) ? nullptr : row;
}

std::string_view CodeOf(DataType type) {
  if (const BitsRow* bits = FindBits(type)) return bits->codes[0];
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.code;
  }
  return "V1";
}

// ---- elements

struct ElementType {
  const TypeRow* row;
  bool is_big_endian;
};

absl::StatusOr<ElementType> FindType(const std::string& descr) {
  std::string_view code = descr;
  const bool has_order =
      !code.empty() && std::string_view("<>|=").find(code[0]) != code.npos;
  if (has_order) code.remove_prefix(1);
  for (const TypeRow& row : kTypes) {
    if (row.code == code)
      return ElementType{&row, descr[0] == '>' && row.swapped > 1};
  }
  return absl::UnimplementedError(fmt::format(
      "has elements of type '{}', expected numbers or bool (f2 f4 f8, i1 to "
      "i8, u1 to u8, b1)",
      ir::Printable(descr)));
}

absl::StatusOr<DataType> TypeInMemory(const TypeRow& row, DataType declared) {
  const BitsRow* bits = FindBits(declared);
  if (bits != nullptr &&
      (bits->codes[0] == row.code || bits->codes[1] == row.code))
    return declared;
  if (row.type != DataType::kUndefined) return row.type;
  return Invalid("has elements of type '{}', which is not for {}", row.code,
                 ir::DataTypeName(declared));
}

absl::Status CheckRange(const Tensor& tensor) {
  const BitsRow* bits = FindBits(tensor.type());
  if (bits == nullptr || bits->most == 0) return absl::OkStatus();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const int value =
        bits->least < 0 ? tensor.data<int8_t>()[i] : tensor.data<uint8_t>()[i];
    if (value < bits->least || value > bits->most) {
      return Invalid("element {} is {}, which is no {}", i, value,
                     ir::DataTypeName(tensor.type()));
    }
  }
  return absl::OkStatus();
}

void SwapBytes(Tensor& tensor, size_t width) {
  char* bytes = tensor.mutable_data<char>();
  for (size_t i = 0; i < tensor.byte_size(); i += width)
    std::reverse(bytes + i, bytes + i + width);
}

// From the first index fastest to the last index fastest.
void CopyFortranOrder(const char* from, size_t size, Tensor& to) {
  struct Axis {
    int64_t length, stride;  // the stride is the file's, in elements
    int64_t index = 0;
  };
  // Beside a dim of 0, others may be more than a stride can hold.
  if (to.count() == 0) return;
  std::vector<Axis> axes;
  int64_t stride = 1;
  for (const int64_t length : to.dims()) {
    axes.push_back({length, stride});
    stride *= length;
  }
  char* out = to.mutable_data<char>();
  int64_t at = 0;
  for (int64_t n = 0; n < to.count(); ++n, out += size) {
    std::memcpy(out, from + static_cast<size_t>(at) * size, size);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      at += axis->stride;
      if (++axis->index < axis->length) break;
      at -= axis->stride * axis->length;
      axis->index = 0;
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> TensorFromNpy(std::string_view file, DataType declared) {
  ASSIGN_OR_RETURN(NpyHeader header, TakeNpyHeader(file));
  ASSIGN_OR_RETURN(const ElementType element, FindType(header.descr));
  ASSIGN_OR_RETURN(const DataType type, TypeInMemory(*element.row, declared));
  const size_t size = element.row->size;
  const std::optional<int64_t> count = runtime::ElementCount(header.dims);
  // Divided, because the product may be more than a size_t holds.
  if (!count || file.size() % size != 0 ||
      file.size() / size != static_cast<size_t>(*count)) {
    return Invalid("has {} bytes of elements, too {} for {}{}", file.size(),
                   count && file.size() / size >= static_cast<size_t>(*count)
                       ? "many"
                       : "few",
                   ir::DataTypeName(type), runtime::ToString(header.dims));
  }
  ASSIGN_OR_RETURN(Tensor tensor,
                   Tensor::Create(type, std::move(header.dims), nullptr));
  if (header.is_fortran_order) {
    CopyFortranOrder(file.data(), size, tensor);
  } else if (!file.empty()) {
    std::memcpy(tensor.mutable_data<char>(), file.data(), file.size());
  }
  if (element.is_big_endian) SwapBytes(tensor, element.row->swapped);
  RETURN_IF_ERROR(CheckRange(tensor));
  return tensor;
}

std::string NpyFromTensor(const Tensor& tensor) {
  const std::string_view code = CodeOf(tensor.type());
  const bool has_order =
      runtime::ElementSize(tensor.type()) > 1 && code[0] != 'V';
  std::string file =
      NpyHeaderBytes({.descr = fmt::format("{}{}", has_order ? '<' : '|', code),
                      .is_fortran_order = false,
                      .dims = tensor.dims()});
  file.append(tensor.data<char>(), tensor.byte_size());
  return file;
}

}  // namespace addnorm::tool
