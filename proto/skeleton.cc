// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/skeleton.h"

#include <string>

#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/splice.h"
#include "proto/wire.h"

namespace addnorm::proto {

absl::Status ParseSkeleton(const ModelFile& file, onnx::ModelProto& skeleton) {
  const Document& document = file.document();
  Splice splice(document);
  for (RecordId id = 0; id < document.size(); ++id) {
    if (document.record(id).kind == Kind::kPayload) splice.Erase(id);
  }
  ASSIGN_OR_RETURN(const Rope rope, splice.Build());
  ASSIGN_OR_RETURN(const std::string bytes, rope.Flatten(file));
  if (!skeleton.ParseFromString(bytes)) {
    return InvalidModel(
        "truncated or corrupt: a message inside is no valid protobuf, or is "
        "nested too deeply");
  }
  return absl::OkStatus();
}

}  // namespace addnorm::proto
