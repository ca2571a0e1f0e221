// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one tensor in its data file, opened for reading.
//
//   ASSIGN_OR_RETURN(OpenRegion data, OpenElements(file, tensor, elements));
//   ReadFully(data.fd.get(), out, data.region.length, data.region.offset);
#ifndef ADDNORM_PROTO_EXTERNAL_ELEMENTS_H_
#define ADDNORM_PROTO_EXTERNAL_ELEMENTS_H_

#include "absl/status/statusor.h"
#include "passes/ir/tensor.h"
#include "proto/external_data.h"
#include "proto/file_descriptor.h"
#include "proto/model_file.h"

namespace addnorm::proto {

struct OpenRegion {
  FileDescriptor fd;
  DataRegion region;
};

// `elements` are the tensor's. Errors are those of ExternalData.
absl::StatusOr<OpenRegion> OpenElements(const ModelFile& file,
                                        const ir::Tensor& tensor,
                                        const ir::ExternalElements& elements);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_EXTERNAL_ELEMENTS_H_
