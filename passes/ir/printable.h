// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Names in a model can be any bytes; this makes them safe to show. It is not a
// quoting that can be undone: a backslash stays as it is. JSON needs no such
// thing.
//
//   Printable("l.0\x1b[31m/Add");  // "l.0\\x1b[31m/Add"
#ifndef ADDNORM_PASSES_IR_PRINTABLE_H_
#define ADDNORM_PASSES_IR_PRINTABLE_H_

#include <string>
#include <string_view>

namespace addnorm::ir {

// What a terminal would obey instead of show (controls, escapes, changes of
// direction) and what is no UTF-8 becomes \xNN or \u{NNNN}; the rest stays. A
// line feed becomes \n, unless `keep_lines`.
std::string Printable(std::string_view text, bool keep_lines = false);

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_PRINTABLE_H_
