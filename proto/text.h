// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Models as ONNX text: the one wrapper of onnx's text parser.
//
// onnx's parser throws on some inputs and keeps a view of its argument; neither
// gets out of here. It is not a printer: NaN payloads do not survive onnx's
// own.
//
//   ASSIGN_OR_RETURN(auto file, OpenText("fixture", R"(
//     <ir_version: 8, opset_import: ["" : 17]>
//     g (float[N] a) => (float[N] y) { y = Sqrt(a) })"));
#ifndef ADDNORM_PROTO_TEXT_H_
#define ADDNORM_PROTO_TEXT_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/model_file.h"

namespace addnorm::proto {

// A serialised ModelProto.
absl::StatusOr<std::string> SerializeText(std::string_view text);

// A model file in memory; external data are looked for beside the path.
absl::StatusOr<std::shared_ptr<ModelFile>> OpenText(std::string name,
                                                    std::string_view text,
                                                    std::string path = "");

// A model file, or, if it is none and text, what ONNX's parser makes of it. "-"
// is standard input.
absl::StatusOr<std::shared_ptr<ModelFile>> OpenModelOrText(
    const std::string& path);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TEXT_H_
