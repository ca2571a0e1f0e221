// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What verify says: one screen for people, all of it in JSON.
//
//   answer.text = ToText(verification, names, terminal);
#ifndef ADDNORM_TOOL_VERIFY_REPORT_H_
#define ADDNORM_TOOL_VERIFY_REPORT_H_

#include <string>

#include "nlohmann/json.hpp"
#include "tool/term.h"
#include "tool/verification.h"

namespace addnorm::tool {

struct VerifyNames {
  std::string a, b;         // b is "" where a is compared with its inlined form
  std::string command;      // reproduces what was found
  bool shows_ulps = false;  // how many words differ by how many ULPs
  bool is_verbose = false;  // all of each list
};

std::string ToText(const Verification& verification, const VerifyNames& names,
                   const Terminal& terminal);
nlohmann::ordered_json ToJson(const Verification& verification,
                              const VerifyNames& names);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_VERIFY_REPORT_H_
