// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A report of bench as one HTML page that needs nothing else: no network, no
// script, no font. It shows the object that --json prints, which it also holds.
//
//   answer.json = ToJson(cases, machine);
//   page = KernelPage(answer.json);
#ifndef ADDNORM_TOOL_HTML_PAGE_H_
#define ADDNORM_TOOL_HTML_PAGE_H_

#include <string>

#include "nlohmann/json.hpp"

namespace addnorm::tool::html {

std::string KernelPage(const nlohmann::ordered_json& report);
std::string ModelPage(const nlohmann::ordered_json& report);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_PAGE_H_
