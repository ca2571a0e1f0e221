// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/printable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fmt/format.h"

namespace addnorm::ir {
namespace {

// A code point of `text` and its length in bytes; length 0 for what is no UTF-8
// (overlong forms, surrogates and numbers above 0x10FFFF included).
struct Decoded {
  uint32_t code = 0;
  size_t length = 0;
};

Decoded Decode(std::string_view text) {
  const auto byte = [text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  if (byte(0) < 0x80) return {byte(0), 1};
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return {};
  uint32_t code = byte(0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10FFFF) return {};
  if (code >= 0xD800 && code <= 0xDFFF) return {};
  return {code, length};
}

// Line and paragraph separators, and marks that change the direction of text,
// would let a name rearrange the line around it.
bool IsUnsafe(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x61C ||
         code == 0x200B || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string Escaped(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  return code < 0x80 ? fmt::format("\\x{:02x}", code)
                     : fmt::format("\\u{{{:x}}}", code);
}

}  // namespace

std::string Printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code, length] = Decode(text);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (IsUnsafe(code) && !(keep_lines && code == '\n')) {
      out += Escaped(code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace addnorm::ir
