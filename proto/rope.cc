// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/rope.h"

#include "passes/ir/status_macros.h"

namespace addnorm::proto {

void Rope::AppendRange(uint64_t offset, uint64_t length) {
  if (length == 0) return;
  size_ += length;
  if (!segments_.empty() && segments_.back().is_range() &&
      segments_.back().offset + segments_.back().length == offset) {
    segments_.back().length += length;
  } else {
    segments_.push_back({.offset = offset, .length = length, .bytes = {}});
  }
}

void Rope::AppendBytes(std::string_view bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  if (segments_.empty() || segments_.back().is_range())
    segments_.emplace_back();
  segments_.back().bytes += bytes;
  segments_.back().length += bytes.size();
}

void Rope::Append(const Rope& other) {
  for (const Segment& segment : other.segments_) {
    if (segment.is_range()) {
      AppendRange(segment.offset, segment.length);
    } else {
      AppendBytes(segment.bytes);
    }
  }
}

absl::StatusOr<std::string> Rope::Flatten(const ModelFile& file) const {
  std::string flat;
  flat.reserve(size_);
  for (const Segment& segment : segments_) {
    if (!segment.is_range()) {
      flat += segment.bytes;
      continue;
    }
    const size_t at = flat.size();
    flat.resize(at + segment.length);
    RETURN_IF_ERROR(
        file.Read(segment.offset, segment.length, flat.data() + at));
  }
  return flat;
}

}  // namespace addnorm::proto
