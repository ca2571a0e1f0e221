// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes to be written, most of which are ranges of the input file.
//
//   Rope rope;
//   rope.AppendRange(0, 120);     // bytes 0..119 of the input
//   rope.AppendBytes("\x0a\x03");  // then two new ones
#ifndef ADDNORM_PROTO_ROPE_H_
#define ADDNORM_PROTO_ROPE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/model_file.h"

namespace addnorm::proto {

class Rope {
 public:
  // Bytes [offset, offset + length) of the input, or, where `bytes` is not
  // empty, those.
  struct Segment {
    uint64_t offset = 0;
    uint64_t length = 0;
    std::string bytes;

    bool is_range() const { return bytes.empty(); }
  };

  const std::vector<Segment>& segments() const { return segments_; }
  uint64_t size() const { return size_; }

  // Neighbouring segments of one kind become one.
  void AppendRange(uint64_t offset, uint64_t length);
  void AppendBytes(std::string_view bytes);
  void Append(const Rope& other);

  // All of it in memory: for skeletons and tests, not for whole models.
  absl::StatusOr<std::string> Flatten(const ModelFile& file) const;

 private:
  std::vector<Segment> segments_;
  uint64_t size_ = 0;
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_ROPE_H_
