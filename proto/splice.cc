// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/splice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/errors.h"

namespace addnorm::proto {
namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

// Tag and length of a length-delimited field.
std::string Header(uint32_t field, uint64_t length) {
  constexpr uint32_t kLengthDelimited = 2;
  return Varint(field << 3 | kLengthDelimited) + Varint(length);
}

}  // namespace

void Splice::Insert(RecordId inside, uint32_t at, std::string bytes,
                    RecordId record) {
  edits_[inside].push_back(
      {.at = at, .end = at, .bytes = std::move(bytes), .record = record});
}

void Splice::Erase(RecordId record) {
  const Record& r = document_.record(record);
  if (!removed_.insert(record).second) return;
  edits_[r.parent].push_back({.at = r.begin, .end = r.end, .bytes = {}});
}

void Splice::InsertBefore(RecordId record, std::string bytes) {
  const Record& r = document_.record(record);
  Insert(r.parent, r.begin, std::move(bytes));
}

void Splice::InsertAfter(RecordId record, std::string bytes) {
  const Record& r = document_.record(record);
  Insert(r.parent, r.end, std::move(bytes));
}

void Splice::InsertAtStart(RecordId message, std::string bytes) {
  Insert(message, document_.record(message).body, std::move(bytes));
}

void Splice::InsertAtEnd(RecordId message, std::string bytes) {
  Insert(message, document_.record(message).end, std::move(bytes));
}

void Splice::MoveBefore(RecordId record, RecordId place) {
  Erase(record);
  Insert(document_.record(place).parent, document_.record(place).begin, {},
         record);
}

void Splice::MoveAfter(RecordId record, RecordId place) {
  Erase(record);
  Insert(document_.record(place).parent, document_.record(place).end, {},
         record);
}

// An edited message is itself an edit of the one around it, unless it is taken
// away there (then nothing refers to it, or a move does).
Splice::EditMap Splice::WithEnclosingMessages() const {
  EditMap all = edits_;
  absl::flat_hash_set<RecordId> done = removed_;
  for (const auto& [edited, unused] : edits_) {
    for (RecordId id = edited; id != kRoot && done.insert(id).second;) {
      const Record& r = document_.record(id);
      all[r.parent].push_back(
          {.at = r.begin, .end = r.end, .bytes = {}, .record = id});
      id = r.parent;
    }
  }
  for (auto& [unused, edits] : all) {
    // Insertions first: what is left out may begin at their place.
    std::stable_sort(edits.begin(), edits.end(),
                     [](const Edit& a, const Edit& b) {
                       return std::pair(a.at, a.end != a.at) <
                              std::pair(b.at, b.end != b.at);
                     });
  }
  return all;
}

// Recursion ends at the walk's depth limit.
Rope Splice::Render(RecordId id, EditMap& edits) const {
  const Record& r = document_.record(id);
  Rope rope;
  const auto found = edits.find(id);
  if (found == edits.end()) {
    rope.AppendRange(r.begin, r.end - r.begin);
    return rope;
  }
  Rope body;
  uint32_t at = r.body;
  for (const Edit& edit : found->second) {
    body.AppendRange(at, edit.at - at);
    body.AppendBytes(edit.bytes);
    if (edit.record >= 0) body.Append(Render(edit.record, edits));
    at = edit.end;
  }
  body.AppendRange(at, r.end - at);
  if (id == kRoot) return body;
  if (body.size() == r.end - r.body) {
    rope.AppendRange(r.begin, r.body - r.begin);
  } else {
    rope.AppendBytes(Header(r.field, body.size()));
  }
  rope.Append(body);
  return rope;
}

absl::StatusOr<Rope> Splice::Build() const {
  EditMap edits = WithEnclosingMessages();
  Rope rope = Render(kRoot, edits);
  constexpr uint64_t kMaxSize = std::numeric_limits<int32_t>::max();
  if (rope.size() > kMaxSize) {
    return InvalidModel(
        "the output would have {} bytes, more than the 2 GiB that ONNX files "
        "can have\n"
        "hint: convert the model to external data first",
        rope.size());
  }
  return rope;
}

}  // namespace addnorm::proto
