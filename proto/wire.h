// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The structure of a model file on the wire: which message is where.
//
// A Document is the result of one walk over a file that reads tags and lengths
// and seeks over tensors' payloads. It records the messages that are edited,
// moved or referred to, in the order of the file. It is not a parser:
// libprotobuf parses the skeleton, the file without the payloads recorded here,
// and judges the rest.
//
// Edits are made on these records (proto/splice.h), so whatever is not edited,
// unknown fields and odd encodings included, is kept byte for byte.
//
//   ASSIGN_OR_RETURN(Document document, Document::Walk(fd, size));
//   for (RecordId node : document.Children({graph}, Kind::kNode)) ...
#ifndef ADDNORM_PROTO_WIRE_H_
#define ADDNORM_PROTO_WIRE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace addnorm::proto {

// The number of a record; ir::Source numbers are these.
using RecordId = int32_t;
inline constexpr RecordId kRoot = 0;  // the whole file, a ModelProto

enum class Kind : uint8_t {
  kUnrecorded,
  kModel,
  kTrainingInfo,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kFunction,
  kOpsetImport,
  kIrVersion,  // a scalar field, not a message
  // A run of occurrences of one field of a tensor or attribute that is left out
  // of the skeleton. Its body is its last occurrence's value, where that has a
  // length.
  kPayload,
};

// 24 bytes, since large models have some hundred thousand of them. A model file
// is smaller than 2 GiB.
struct Record {
  uint32_t begin = 0;  // of the tag
  uint32_t body = 0;   // past tag and length
  uint32_t end = 0;
  RecordId parent = -1;
  // Attributes, tensors: which occurrence of the field in the parent, from 0.
  // Payloads: how many occurrences the run has.
  uint32_t index = 0;
  Kind kind = Kind::kUnrecorded;
  uint8_t field = 0;
};

class Document {
 public:
  // Errors name the byte: "truncated or corrupt at byte 1234: …".
  static absl::StatusOr<Document> Walk(int fd, uint64_t size);

  const Record& record(RecordId id) const {
    return records_[static_cast<size_t>(id)];
  }
  RecordId size() const { return static_cast<RecordId>(records_.size()); }

  // The records of a kind directly inside a message, in file order. A message
  // that a file splits into several parts (protobuf merges them) has several
  // records. Attributes, tensors and training info are recorded only where
  // something in them is; field 0 stands for any field.
  std::vector<RecordId> Children(std::span<const RecordId> parts, Kind kind,
                                 int field = 0) const;

 private:
  friend class Walker;
  std::vector<Record> records_;  // in the order of their first bytes
};

// A payload whose run is not longer than this stays in the skeleton.
inline constexpr uint32_t kMaxSkeletonTensor = 1024;
inline constexpr uint32_t kMaxSkeletonAttribute = 64 * 1024;

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_WIRE_H_
