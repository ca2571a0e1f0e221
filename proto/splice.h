// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Edits of a model file on its bytes: records erased, moved, and new bytes
// between.
//
// The result is the input with those ranges changed and the lengths of all
// enclosing messages written anew; every other byte is a range of the input. It
// knows nothing of ONNX: what is inserted must be whole fields, tag included.
//
//   Splice splice(document);
//   splice.Erase(node);
//   splice.InsertBefore(next, serialised_field);
//   ASSIGN_OR_RETURN(Rope rope, splice.Build());
#ifndef ADDNORM_PROTO_SPLICE_H_
#define ADDNORM_PROTO_SPLICE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "proto/rope.h"
#include "proto/wire.h"

namespace addnorm::proto {

class Splice {
 public:
  explicit Splice(const Document& document) : document_(document) {}

  // Edits inside an erased record are dropped with it.
  void Erase(RecordId record);

  // Edits at one place take effect in the order in which they were made.
  void InsertBefore(RecordId record, std::string bytes);
  void InsertAfter(RecordId record, std::string bytes);
  void InsertAtStart(RecordId message, std::string bytes);
  void InsertAtEnd(RecordId message, std::string bytes);

  // Takes a record, as edited, from its place to another; both places are in
  // messages of one depth.
  void MoveBefore(RecordId record, RecordId place);
  void MoveAfter(RecordId record, RecordId place);

  // InvalidArgument if the result is more than protobuf can read.
  absl::StatusOr<Rope> Build() const;

 private:
  // Something that happens inside one message, at one place.
  struct Edit {
    uint32_t at = 0;
    uint32_t end = 0;      // bytes [at, end) of the input are left out
    std::string bytes;     // and these are put there,
    RecordId record = -1;  // or this record, as edited, is
  };
  using EditMap = absl::flat_hash_map<RecordId, std::vector<Edit>>;

  void Insert(RecordId inside, uint32_t at, std::string bytes,
              RecordId record = -1);
  EditMap WithEnclosingMessages() const;
  Rope Render(RecordId id, EditMap& edits) const;

  const Document& document_;
  EditMap edits_;  // by the message that they are directly inside
  absl::flat_hash_set<RecordId> removed_;
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_SPLICE_H_
