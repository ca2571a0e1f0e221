// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/external_elements.h"

#include <string>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "proto/tensor_encoding.h"

namespace addnorm::proto {

absl::StatusOr<OpenRegion> OpenElements(const ModelFile& file,
                                        const ir::Tensor& tensor,
                                        const ir::ExternalElements& elements) {
  const std::string offset = fmt::format("{}", elements.offset.value_or(0));
  const std::string length = fmt::format("{}", elements.length.value_or(0));
  DataEntries entries = {{"location", elements.location}, {"offset", offset}};
  if (elements.length) entries.emplace_back("length", length);
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(tensor));
  ExternalData& data = file.external_data();
  ASSIGN_OR_RETURN(const DataRegion region,
                   data.Resolve(entries, ByteSize(tensor.type, count)));
  ASSIGN_OR_RETURN(FileDescriptor fd, data.OpenFile(*region.file));
  return OpenRegion{std::move(fd), region};
}

}  // namespace addnorm::proto
