// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/input_options.h"

#include "tool/option_checks.h"

namespace addnorm::tool {

void AddInputsOption(CLI::App& app, std::string& folder) {
  app.add_option("--inputs", folder,
                 "Folder with input_N.pb or NAME.npy; what is not there is\n"
                 "generated")
      ->option_text("DIR")
      ->check(NotEmpty());
}

void AddDimOption(CLI::App& app, std::vector<std::string>& words) {
  app.add_option("--dim", words,
                 "A symbolic dimension of generated inputs, from 0 on; can be\n"
                 "repeated")
      ->option_text("NAME=N")
      ->take_all();
}

}  // namespace addnorm::tool
