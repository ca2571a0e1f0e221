// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// main() of a fuzz target without a fuzzer: gives it each file of a folder, so
// that every compiler and every test run goes over what was found.
//
//   addnorm_replay_read corpus/read
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      // The last line of the output names the input that ended the process.
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
