// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/pread_stream.h"
#include "proto/wire_table.h"

namespace addnorm::proto {
namespace {

using google::protobuf::internal::WireFormatLite;

// libprotobuf's own limit; it will parse the skeleton with it.
constexpr size_t kMaxDepth = 100;
// Bytes of a tag or length; padding beyond that is an error for libprotobuf
// too.
constexpr uint32_t kMaxShortVarint = 5;

}  // namespace

class Walker {
 public:
  Walker(int fd, uint64_t size)
      : stream_(fd, size), in_(&stream_), size_(static_cast<uint32_t>(size)) {}

  absl::StatusOr<Document> Walk() {
    Enter({.end = size_, .kind = Kind::kModel});
    while (!open_.empty()) {
      if (Position() != open_.back().end) {
        RETURN_IF_ERROR(Field());
      } else if (open_.back().group_field != 0) {
        return Corrupt(Position(), "a group that does not end");
      } else {
        Leave();
      }
    }
    return std::move(document_);
  }

 private:
  // A message whose end has not been reached, or (kind kUnrecorded) a group.
  struct Open {
    RecordId id;
    uint32_t end;
    Kind kind;
    uint32_t group_field;
    std::array<uint32_t, kMaxField + 1> seen;  // occurrences of each field
  };

  uint32_t Position() const {
    return static_cast<uint32_t>(in_.CurrentPosition());
  }

  absl::Status Corrupt(uint32_t at, std::string_view what) const {
    if (stream_.error() != 0) return ErrnoError(stream_.error(), "cannot read");
    return InvalidModel(
        "truncated or corrupt at byte {}: {}\n"
        "hint: the file may be incomplete: copy or download it again",
        at, what);
  }

  std::vector<Record>& records() { return document_.records_; }

  void Enter(Record record) {
    record.parent = open_.empty() ? -1 : open_.back().id;
    records().push_back(record);
    open_.push_back({.id = document_.size() - 1,
                     .end = record.end,
                     .kind = record.kind,
                     .group_field = 0,
                     .seen = {}});
  }

  void Leave() {
    const Open closed = open_.back();
    open_.pop_back();
    if (closed.kind == Kind::kTensor || closed.kind == Kind::kAttribute)
      KeepOnlyLarge(closed);
    const bool is_optional =
        closed.kind == Kind::kAttribute || closed.kind == Kind::kTrainingInfo ||
        closed.kind == Kind::kTensor || closed.kind == Kind::kSparseTensor;
    const bool is_empty = closed.id == document_.size() - 1;
    // Initializers are always recorded: passes may erase them.
    if (is_optional && is_empty && open_.back().kind != Kind::kGraph)
      records().pop_back();
  }

  // Payloads that are small together go into the skeleton after all.
  void KeepOnlyLarge(const Open& closed) {
    const uint32_t limit = closed.kind == Kind::kTensor ? kMaxSkeletonTensor
                                                        : kMaxSkeletonAttribute;
    const auto first = records().begin() + closed.id + 1;
    uint64_t total = 0;
    for (auto it = first; it != records().end(); ++it) {
      if (it->parent == closed.id && it->kind == Kind::kPayload)
        total += it->end - it->begin;
    }
    if (total > limit) return;
    // Only an attribute can have other records between them: keep its payloads
    // then.
    if (std::all_of(first, records().end(),
                    [](const Record& r) { return r.kind == Kind::kPayload; })) {
      records().erase(first, records().end());
    }
  }

  absl::Status Field() {
    const uint32_t begin = Position();
    const uint32_t tag = in_.ReadTag();
    const int wire_type = static_cast<int>(tag & 7);
    const uint32_t field = tag >> 3;
    if (Position() > open_.back().end || (tag == 0 && Position() == size_)) {
      return Corrupt(begin, "a tag that does not end");
    }
    if (Position() - begin > kMaxShortVarint)
      return Corrupt(begin, "a tag that is too long");
    if (field == 0) return Corrupt(begin, "field number 0");
    const Kind kind =
        KindOf(open_.back().kind, static_cast<int>(std::min(field, 1u << 28)),
               wire_type);
    const uint32_t index =
        kind != Kind::kUnrecorded ? open_.back().seen[field]++ : 0;
    Record record{.begin = begin,
                  .index = index,
                  .kind = kind,
                  .field = static_cast<uint8_t>(field)};
    switch (wire_type) {
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return Delimited(record);
      case WireFormatLite::WIRETYPE_START_GROUP:
        return StartGroup(begin, field);
      case WireFormatLite::WIRETYPE_END_GROUP:
        return EndGroup(begin, field);
      case WireFormatLite::WIRETYPE_VARINT:
      case WireFormatLite::WIRETYPE_FIXED32:
      case WireFormatLite::WIRETYPE_FIXED64:
        return Scalar(record, wire_type);
      default:
        return Corrupt(begin, fmt::format("wire type {}", wire_type));
    }
  }

  absl::Status Delimited(Record record) {
    uint64_t length = 0;
    const uint32_t length_at = Position();
    if (!in_.ReadVarint64(&length))
      return Corrupt(length_at, "a length that does not end");
    record.body = Position();
    if (record.body - length_at > kMaxShortVarint)
      return Corrupt(length_at, "a length that is too long");
    const uint32_t end = open_.back().end;
    if (record.body > end || length > end - record.body) {
      return Corrupt(
          record.begin,
          fmt::format("a length of {} where {} bytes are left", length,
                      record.body > end ? 0 : end - record.body));
    }
    record.end = record.body + static_cast<uint32_t>(length);
    const bool is_message =
        record.kind != Kind::kUnrecorded && record.kind != Kind::kPayload;
    if (is_message) {
      if (open_.size() > kMaxDepth) return TooDeep(record.begin);
      Enter(record);
      return absl::OkStatus();
    }
    if (record.kind == Kind::kPayload) AddPayload(record);
    if (!in_.Skip(static_cast<int>(length)))
      return Corrupt(record.begin, "the file ends inside a field");
    return absl::OkStatus();
  }

  absl::Status Scalar(Record record, int wire_type) {
    record.body = Position();
    uint64_t ignored = 0;
    const bool read = wire_type == WireFormatLite::WIRETYPE_VARINT
                          ? in_.ReadVarint64(&ignored)
                      : wire_type == WireFormatLite::WIRETYPE_FIXED32
                          ? in_.Skip(4)
                          : in_.Skip(8);
    if (!read || Position() > open_.back().end) {
      return Corrupt(record.begin, "a number that does not end");
    }
    record.end = Position();
    if (record.kind == Kind::kPayload) AddPayload(record);
    if (record.kind == Kind::kIrVersion) {
      record.parent = open_.back().id;
      records().push_back(record);
    }
    return absl::OkStatus();
  }

  // Extends the run that ends where this occurrence begins, or starts a new
  // one.
  void AddPayload(Record record) {
    record.parent = open_.back().id;
    record.index = 1;
    Record& last = records().back();
    if (last.kind == Kind::kPayload && last.parent == record.parent &&
        last.field == record.field && last.end == record.begin) {
      last.body = record.body;
      last.end = record.end;
      ++last.index;
    } else {
      records().push_back(record);
    }
  }

  absl::Status StartGroup(uint32_t begin, uint32_t field) {
    if (open_.size() > kMaxDepth) return TooDeep(begin);
    Open group = open_.back();
    group.kind = Kind::kUnrecorded;
    group.group_field = field;
    open_.push_back(group);
    return absl::OkStatus();
  }

  absl::Status EndGroup(uint32_t begin, uint32_t field) {
    if (open_.back().group_field != field)
      return Corrupt(begin, "the end of a group that is not open");
    open_.pop_back();
    return absl::OkStatus();
  }

  absl::Status TooDeep(uint32_t at) const {
    return InvalidModel(
        "messages are nested more than {} levels deep at byte {}", kMaxDepth,
        at);
  }

  PreadStream stream_;
  google::protobuf::io::CodedInputStream in_;
  uint32_t size_;
  std::vector<Open> open_;
  Document document_;
};

absl::StatusOr<Document> Document::Walk(int fd, uint64_t size) {
  return Walker(fd, size).Walk();
}

std::vector<RecordId> Document::Children(std::span<const RecordId> parts,
                                         Kind kind, int field) const {
  std::vector<RecordId> children;
  for (RecordId part : parts) {
    const uint32_t end = record(part).end;
    for (RecordId id = part + 1; id < size() && record(id).begin < end; ++id) {
      const Record& r = record(id);
      if (r.parent == part && r.kind == kind &&
          (field == 0 || r.field == field)) {
        children.push_back(id);
      }
    }
  }
  return children;
}

}  // namespace addnorm::proto
