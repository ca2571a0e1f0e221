// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A number of bytes for people: in messages here, in reports of tool/.
//
//   FormatBytes(208'900);  // "208.9 kB"
#ifndef ADDNORM_PROTO_FORMAT_BYTES_H_
#define ADDNORM_PROTO_FORMAT_BYTES_H_

#include <cstdint>
#include <string>

namespace addnorm::proto {

// "640 bytes", "208.9 kB", "4.1 GB".
std::string FormatBytes(uint64_t bytes);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_FORMAT_BYTES_H_
