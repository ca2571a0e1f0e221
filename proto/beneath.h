// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Opening a file by a path that must not lead out of a directory, links
// included.
//
// The kernel does it where it can (openat2, Linux 5.6); else, or on request,
// the path is walked here, component by component and link by link, which is as
// safe against links that change meanwhile. It does not judge what it opens.
//
//   FileDescriptor fd = OpenBeneath(directory, "sub/../w.bin",
//   Lookup::kKernel); if (!fd.valid() && errno == EXDEV) // leads outside
#ifndef ADDNORM_PROTO_BENEATH_H_
#define ADDNORM_PROTO_BENEATH_H_

#include <string>
#include <string_view>
#include <vector>

#include "proto/file_descriptor.h"

namespace addnorm::proto {

enum class Lookup { kKernel, kComponents };

// For reading, without waiting for a FIFO's writer. Invalid with errno set if
// it fails: EXDEV for a path that leads out, through `..` or any absolute link.
FileDescriptor OpenBeneath(int directory, const std::string& path,
                           Lookup lookup);

// The parts between slashes; empty ones and "." are left out.
std::vector<std::string_view> PathComponents(std::string_view path);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_BENEATH_H_
