// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What `optimize` tells: operators before and after, sites, files, time.
//
//   answer.text = ToText(result, /*explain=*/true, terminal);
#ifndef ADDNORM_TOOL_OPTIMIZE_REPORT_H_
#define ADDNORM_TOOL_OPTIMIZE_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "passes/fusion_report.h"
#include "tool/model_facts.h"
#include "tool/term.h"

namespace addnorm::tool {

// Where the output finds a data file of the input.
enum class DataPlace {
  kUnknown,  // nothing was written, or to where nothing can be put beside it
  kShared,   // it is the input's own
  kCopied,   // a new copy
  kPresent,  // an equal file that was there
};

// A file beside the model that holds tensors.
struct DataFileFacts {
  std::string location;
  uint64_t bytes = 0;
  DataPlace place = DataPlace::kUnknown;
};

// What verify says of the output, before it is published.
// NOLINTNEXTLINE(bugprone-exception-escape): see Answer
struct OutputVerification {
  bool is_verified = false;
  bool is_different = false;  // else it may be that it cannot be compared
  std::string text;
  nlohmann::ordered_json json;
};

// NOLINTNEXTLINE(bugprone-exception-escape)
struct OptimizeResult {
  std::string input;
  std::string output;
  bool is_written = false;
  std::string_view target;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;  // or what they would be
  passes::FusionReport report;
  OpCounts before;
  OpCounts after;
  std::vector<DataFileFacts> data_files;
  std::optional<OutputVerification> verification;  // with --verify
  double wall_seconds = 0;
  double cpu_seconds = 0;
};

std::string ToText(const OptimizeResult& result, bool explain,
                   const Terminal& terminal);
nlohmann::ordered_json ToJson(const OptimizeResult& result);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_OPTIMIZE_REPORT_H_
