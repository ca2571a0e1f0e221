// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::tool {
namespace {

using ir::DataType;
using runtime::Dims;
using runtime::Tensor;

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy's own limit; a file with more dims is none of its files.
constexpr size_t kMaxRank = 64;

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format(format, std::forward<Args>(args)...));
}

// ---- types
// -------------------------------------------------------------------

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

// ---- the header
// ----------------------------------------------------------------

struct Header {
  std::string descr;
  bool is_fortran_order = false;
  Dims dims;
};

// The header is a Python dict of strings, True or False, and a tuple.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    bool has[3] = {};
    if (!Take('{')) return Malformed();
    while (!Take('}')) {
      ASSIGN_OR_RETURN(const std::string key, String());
      if (!Take(':')) return Malformed();
      const int i = key == "descr"           ? 0
                    : key == "fortran_order" ? 1
                    : key == "shape"         ? 2
                                             : -1;
      if (i < 0 || std::exchange(has[i], true)) return Malformed();
      RETURN_IF_ERROR(Value(i, header));
      if (!Take(',') && Next() != '}') return Malformed();
    }
    if (Next() != '\0' || !has[0] || !has[1] || !has[2]) return Malformed();
    return header;
  }

 private:
  absl::Status Value(int key, Header& header) {
    if (key == 0) {
      if (Next() == '[') {
        return absl::UnimplementedError(
            "has elements of a structured type, expected numbers");
      }
      ASSIGN_OR_RETURN(header.descr, String());
      return absl::OkStatus();
    }
    if (key == 2) return Tuple(header.dims);
    header.is_fortran_order = TakeWord("True");
    return header.is_fortran_order || TakeWord("False") ? absl::OkStatus()
                                                        : Malformed();
  }

  absl::StatusOr<std::string> String() {
    const char quote = Next();
    if (quote != '\'' && quote != '"') return Malformed();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return Malformed();
    const std::string_view body = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(body);
  }

  absl::Status Tuple(Dims& dims) {
    if (!Take('(')) return Malformed();
    while (!Take(')')) {
      Next();
      int64_t dim = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0)
        return Invalid("has a shape that no array can have");
      at_ = static_cast<size_t>(end - text_.data());
      TakeWord("L");  // Python 2 wrote it
      if (dims.size() == kMaxRank)
        return Invalid("has more than {} dimensions", kMaxRank);
      dims.push_back(dim);
      if (!Take(',') && Next() != ')') return Malformed();
    }
    return absl::OkStatus();
  }

  // After white space; '\0' at the end.
  char Next() {
    while (at_ < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    const bool is_next = Next() == c;
    at_ += is_next ? 1 : 0;
    return is_next;
  }
  bool TakeWord(std::string_view word) {
    Next();
    const bool is_next = text_.substr(at_, word.size()) == word;
    at_ += is_next ? word.size() : 0;
    return is_next;
  }

  absl::Status Malformed() const {
    return Invalid(
        "has a malformed header (at byte {} of \"{}\"), expected "
        "{{'descr': …, 'fortran_order': …, 'shape': …}}",
        at_, ir::Printable(text_.substr(0, 80)));
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The header's text, taken from the beginning of the file.
absl::StatusOr<std::string_view> TakeHeader(std::string_view& file) {
  if (!file.starts_with(kMagic))
    return Invalid("is no .npy file: it does not begin with \\x93NUMPY");
  constexpr size_t kVersion = 6, kLength = 8;
  if (file.size() < kLength) return Invalid("ends within its header");
  const int major = static_cast<unsigned char>(file[kVersion]);
  if (major < 1 || major > 3) {
    return absl::UnimplementedError(
        fmt::format("has .npy format {}, expected 1 to 3", major));
  }
  const size_t width = major == 1 ? 2 : 4;
  if (file.size() < kLength + width) return Invalid("ends within its header");
  size_t length = 0;
  for (size_t i = width; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(file[kLength + i]);
  file.remove_prefix(kLength + width);
  if (file.size() < length) {
    return Invalid("ends within its header, which has {} bytes: {} are there",
                   length, file.size());
  }
  const std::string_view header = file.substr(0, length);
  file.remove_prefix(length);
  return header;
}

// ---- elements
// ------------------------------------------------------------------

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
  const Dims& dims = to.dims();
  Dims index(dims.size(), 0);
  Dims strides(dims.size(), 1);  // in the file, in elements
  for (size_t i = 1; i < dims.size(); ++i)
    strides[i] = strides[i - 1] * dims[i - 1];
  char* out = to.mutable_data<char>();
  int64_t at = 0;
  for (int64_t n = 0; n < to.count(); ++n, out += size) {
    std::memcpy(out, from + static_cast<size_t>(at) * size, size);
    for (size_t axis = dims.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < dims[axis]) break;
      at -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> TensorFromNpy(std::string_view file, DataType declared) {
  ASSIGN_OR_RETURN(const std::string_view text, TakeHeader(file));
  ASSIGN_OR_RETURN(Header header, HeaderParser(text).Parse());
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
  std::string shape;
  for (const int64_t dim : tensor.dims()) shape += fmt::format("{}, ", dim);
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.pop_back();
  const std::string_view code = CodeOf(tensor.type());
  const bool has_order = runtime::ElementSize(tensor.type()) > 1;
  std::string header = fmt::format(
      "{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
      has_order && code[0] != 'V' ? '<' : '|', code, shape);
  // Elements begin at a multiple of 64 bytes, after a line feed.
  constexpr size_t kAlignment = 64;
  const size_t fixed = kMagic.size() + 4;
  header.append(kAlignment - 1 - (fixed + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\1';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(tensor.data<char>(), tensor.byte_size());
  return file;
}

}  // namespace addnorm::tool
