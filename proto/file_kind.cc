// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/file_kind.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string>

#include "proto/errors.h"
#include "proto/file_descriptor.h"

namespace addnorm::proto {
namespace {

using std::string_view_literals::operator""sv;

struct Magic {
  size_t offset;
  std::string_view bytes;
  std::string_view is;
  std::string_view hint;
};

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kExport = "export the model to ONNX first";
constexpr std::string_view kDownload = "download the model file again";

constexpr Magic kMagics[] = {
    {0, "version https://git-lfs"sv, "a Git LFS pointer",
     "fetch the model with 'git lfs pull'"},
    {0, "<!DOCTYPE"sv, "an HTML page", kDownload},
    {0, "<!doctype"sv, "an HTML page", kDownload},
    {0, "<html"sv, "an HTML page", kDownload},
    {0, "PK\x03\x04"sv, "a zip archive (or a PyTorch checkpoint)",
     "unpack it, or export the model to ONNX first"},
    {0, "\x1f\x8b"sv, "gzip data", kUnpack},
    {0,
     "\xfd"
     "7zXZ"sv,
     "xz data", kUnpack},
    {0, "BZh"sv, "bzip2 data", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "zstd data", kUnpack},
    {257, "ustar"sv, "a tar archive", kUnpack},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file (Keras)", kExport},
    {0, "\x80\x02}"sv, "a Python pickle", kExport},
    {0, "\x80\x02\x8a"sv, "a Python pickle (an old PyTorch checkpoint)",
     kExport},
    {0, "\x80\x03"sv, "a Python pickle", kExport},
    {0, "\x80\x04\x95"sv, "a Python pickle", kExport},
    {0, "\x80\x05\x95"sv, "a Python pickle", kExport},
    {8, "{\""sv, "a safetensors file", kExport},
    {0, "\x93NUMPY"sv, "a NumPy array", kExport},
    {0, "ftrt"sv, "a TensorRT engine", "use the .onnx file it was built from"},
    {0, "<?xml"sv, "XML (an OpenVINO model, perhaps)",
     "use the .onnx file it was made from"},
    {4, "TFL3"sv, "a TensorFlow Lite model", "convert it to ONNX first"},
    {4, "ORTM"sv, "a model in ONNX Runtime's ORT format",
     "use the .onnx file it was made from"},
    {0, "GGUF"sv, "a GGUF file", kExport},
    {0, "{\""sv, "JSON", kDownload},
    {0, "{\n"sv, "JSON", kDownload},
    {0,
     "\x7f"
     "ELF"sv,
     "a program", "give an .onnx file"},
};

// What names of the files beside models end in.
constexpr std::string_view kDataEndings[] = {".data", "_data", ".weight",
                                             ".weights"};

absl::Status NotAModel(std::string_view is, std::string_view hint) {
  return InvalidModel("is {}, not an ONNX model\nhint: {}", is, hint);
}

// Behind the varint or the bytes that begin at the position; npos if cut off.
size_t SkipDims(std::string_view head, size_t at) {
  if (head[at] == '\x0a') {  // packed
    const size_t length =
        at + 1 < head.size() ? static_cast<unsigned char>(head[at + 1]) : 0;
    return at + 2 + length;
  }
  ++at;
  while (at < head.size() && (static_cast<unsigned char>(head[at]) & 0x80) != 0)
    ++at;
  return at + 1;
}

// A TensorProto as test data are: dims, then a type where a model has a name.
bool LooksLikeTensor(std::string_view head) {
  size_t at = 0;
  while (at < head.size() && (head[at] == '\x08' || head[at] == '\x0a'))
    at = SkipDims(head, at);
  return at + 1 < head.size() && head[at] == '\x10' && head[at + 1] > 0 &&
         head[at + 1] < 0x20;
}

}  // namespace

bool IsDataFileName(std::string_view path) {
  return std::any_of(
      std::begin(kDataEndings), std::end(kDataEndings),
      [path](std::string_view ending) { return path.ends_with(ending); });
}

bool IsText(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : byte >= '\t' && byte <= '\r';
  });
}

bool LooksLikeText(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == head.npos || !IsText(head)) return false;
  return head[first] == '#' ||
         (head[first] == '<' && head.find("ir_version") != head.npos);
}

absl::Status CheckKind(std::string_view head, uint64_t size) {
  if (size == 0)
    return InvalidModel("is empty, not an ONNX model\nhint: {}", kDownload);
  for (const Magic& magic : kMagics) {
    if (head.size() >= magic.offset &&
        head.substr(magic.offset).starts_with(magic.bytes)) {
      return NotAModel(magic.is, magic.hint);
    }
  }
  if (LooksLikeText(head))
    return NotAModel("a model as ONNX text",
                     "inspect reads it as it is; optimize needs the model file "
                     "that onnx.parser makes of it");
  if (IsText(head)) return NotAModel("text", "give an .onnx file");
  if (LooksLikeTensor(head))
    return NotAModel("one tensor (a TensorProto)", "give an .onnx file");
  if (std::all_of(head.begin(), head.end(), [](char c) { return c == 0; })) {
    return NotAModel("zeros", kDownload);
  }
  return absl::OkStatus();
}

absl::Status CheckKind(int fd, uint64_t size) {
  std::array<char, 512> head;
  const int64_t n = ReadFully(fd, head.data(), head.size(), 0);
  if (n < 0) return ErrnoError(errno, "cannot read");
  return CheckKind(std::string_view(head.data(), static_cast<size_t>(n)), size);
}

}  // namespace addnorm::proto
