// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/text.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/file_descriptor.h"
#include "proto/file_kind.h"

namespace addnorm::proto {
namespace {

absl::StatusOr<std::string> ReadAll(const Input& input) {
  const off_t size = ::lseek(input.fd.get(), 0, SEEK_END);
  if (size < 0) return ErrnoError(errno, input.name);
  std::string text(static_cast<size_t>(size), '\0');
  const int64_t n = ReadFully(input.fd.get(), text.data(), text.size(), 0);
  if (n < 0) return ErrnoError(errno, input.name);
  text.resize(static_cast<size_t>(n));
  return text;
}

// Far more than a person or a test writes.
constexpr off_t kMaxText = 64 << 20;

bool MayBeText(const Input& input) {
  std::array<char, 4096> head;
  const int64_t n = ReadFully(input.fd.get(), head.data(), head.size(), 0);
  return n > 0 && ::lseek(input.fd.get(), 0, SEEK_END) <= kMaxText &&
         IsText(std::string_view(head.data(), static_cast<size_t>(n)));
}

// The parser recurses with every bracket, and protobuf refuses what is deeper
// than 100 messages anyway, which takes fewer brackets.
constexpr int kMaxBrackets = 256;

// Strings and comments are what they are for the parser.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size() && depth <= kMaxBrackets; ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
    } else if (c == '(' || c == '<' || c == '{' || c == '[') {
      ++depth;
    } else if (c == ')' || c == '}' || c == ']' ||
               (c == '>' && i > 0 && text[i - 1] != '=')) {  // no arrow
      depth = std::max(depth - 1, 0);
    }
  }
  return depth > kMaxBrackets;
}

// onnx's messages are several lines with an indented context.
std::string OnOneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_space) line += c;
    if (is_space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

absl::StatusOr<std::string> SerializeText(std::string_view text) {
  if (IsTooDeep(text)) {
    return InvalidModel("is ONNX text with more than {} brackets in brackets",
                        kMaxBrackets);
  }
  const std::string held(text);  // the parser keeps a view
  onnx::ModelProto model;
  try {
    onnx::OnnxParser parser(held);
    const auto status = parser.Parse(model);
    if (!status.IsOK())
      return InvalidModel("is no ONNX text: {}",
                          OnOneLine(status.ErrorMessage()));
    if (!parser.EndOfInput())
      return InvalidModel("text after the end of the model");
  } catch (const std::exception& error) {  // out-of-range literals
    return InvalidModel("cannot be parsed: {}", error.what());
  }
  return model.SerializeAsString();
}

absl::StatusOr<std::shared_ptr<ModelFile>> OpenText(std::string name,
                                                    std::string_view text,
                                                    std::string path) {
  const absl::StatusOr<std::string> bytes = SerializeText(text);
  if (!bytes.ok()) return WithContext(bytes.status(), name);
  return ModelFile::FromBytes(std::move(name), *bytes, std::move(path));
}

absl::StatusOr<std::shared_ptr<ModelFile>> OpenModelOrText(
    const std::string& path) {
  ASSIGN_OR_RETURN(const Input input, OpenInput(path));
  auto file = ModelFile::FromDescriptor(input.fd.get(), input.name, input.path);
  if (!absl::IsInvalidArgument(file.status()) || !MayBeText(input)) return file;
  ASSIGN_OR_RETURN(const std::string text, ReadAll(input));
  auto parsed = OpenText(input.name, text, input.path);
  // Of other text, say what it is, not where it is no model.
  return parsed.ok() || LooksLikeText(text) ? parsed : file;
}

}  // namespace addnorm::proto
