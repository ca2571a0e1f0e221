// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/text.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "proto/errors.h"
#include "proto/file_descriptor.h"
#include "proto/file_kind.h"
#include "proto/status_macros.h"

namespace addnorm::proto {
namespace {

// The whole file if it begins like a text model, else only its first bytes.
absl::StatusOr<std::string> ReadIfText(const std::string& path) {
  FileDescriptor fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoError(errno, path);
  constexpr size_t kChunk = 4096;
  std::string text;
  while (true) {
    const size_t at = text.size();
    text.resize(at + kChunk);
    const int64_t n = ReadFully(fd.get(), text.data() + at, kChunk, at);
    text.resize(at + static_cast<size_t>(std::max<int64_t>(n, 0)));
    if (n < static_cast<int64_t>(kChunk) || (at == 0 && !LooksLikeText(text)))
      return text;
  }
}

}  // namespace

absl::StatusOr<std::string> SerializeText(std::string_view text) {
  const std::string held(text);  // the parser keeps a view
  onnx::ModelProto model;
  try {
    onnx::OnnxParser parser(held);
    const auto status = parser.Parse(model);
    if (!status.IsOK())
      return absl::InvalidArgumentError(status.ErrorMessage());
    if (!parser.EndOfInput())
      return InvalidModel("text after the end of the model");
  } catch (const std::exception& error) {  // out-of-range literals
    return InvalidModel("cannot be parsed: {}", error.what());
  }
  return model.SerializeAsString();
}

absl::StatusOr<std::shared_ptr<ModelFile>> OpenText(std::string name,
                                                    std::string_view text) {
  const absl::StatusOr<std::string> bytes = SerializeText(text);
  if (!bytes.ok()) return WithContext(bytes.status(), name);
  return ModelFile::FromBytes(std::move(name), *bytes);
}

absl::StatusOr<std::shared_ptr<ModelFile>> OpenModelOrText(
    const std::string& path) {
  if (path == "-") return ModelFile::Open(path);
  ASSIGN_OR_RETURN(const std::string text, ReadIfText(path));
  return LooksLikeText(text) ? OpenText(path, text) : ModelFile::Open(path);
}

}  // namespace addnorm::proto
