// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Assertions for our own bugs. Never reachable from a model file: whatever a
// file can trigger is an absl::Status instead.
//
//   ADDNORM_CHECK(value->uses().empty(), "an erased value is still in use");
#ifndef ADDNORM_PASSES_IR_CHECK_H_
#define ADDNORM_PASSES_IR_CHECK_H_

#include <stdexcept>
#include <string>

namespace addnorm::ir {

// Ends as exit code 70 (tool/main.cc), after the output's temporary file is
// gone.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace addnorm::ir

#define ADDNORM_CHECK(condition, what)                                         \
  do {                                                                         \
    if (!(condition)) {                                                        \
      throw addnorm::ir::InternalError(std::string(__FILE__) + ": " + (what) + \
                                       ": " #condition);                       \
    }                                                                          \
  } while (false)

#endif  // ADDNORM_PASSES_IR_CHECK_H_
