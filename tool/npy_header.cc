// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/npy_header.h"

#include <cctype>
#include <charconv>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::tool {
namespace {

using runtime::Dims;

constexpr std::string_view kMagic = "\x93NUMPY";

// NumPy's own limit; a file with more dims is none of its files.
constexpr size_t kMaxRank = 64;

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format(format, std::forward<Args>(args)...));
}

// The header is a Python dict of strings, True or False, and a tuple.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  absl::StatusOr<NpyHeader> Parse() {
    NpyHeader header;
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
  absl::Status Value(int key, NpyHeader& header) {
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
absl::StatusOr<std::string_view> TakeText(std::string_view& file) {
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

}  // namespace

absl::StatusOr<NpyHeader> TakeNpyHeader(std::string_view& file) {
  ASSIGN_OR_RETURN(const std::string_view text, TakeText(file));
  return HeaderParser(text).Parse();
}

std::string NpyHeaderBytes(const NpyHeader& header) {
  std::string shape;
  for (const int64_t dim : header.dims) shape += fmt::format("{}, ", dim);
  if (header.dims.size() > 1) shape.resize(shape.size() - 2);
  if (header.dims.size() == 1) shape.pop_back();
  std::string text = fmt::format(
      "{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", header.descr,
      header.is_fortran_order ? "True" : "False", shape);
  // Elements begin at a multiple of 64 bytes, after a line feed.
  constexpr size_t kAlignment = 64;
  const size_t fixed = kMagic.size() + 4;
  text.append(kAlignment - 1 - (fixed + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string bytes(kMagic);
  bytes += '\1';
  bytes += '\0';
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text;
}

}  // namespace addnorm::tool
