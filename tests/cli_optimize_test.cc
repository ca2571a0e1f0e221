// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// optimize from outside: what it prints, writes and refuses.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"
#include "tests/support/sandbox.h"

namespace addnorm::tests {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST_CASE("optimize writes the fused model and a summary", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize m.onnx out.onnx");
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  CHECK(Contains(run.out, "before  after\n"));
  CHECK(Contains(run.out, "\nnodes "));
  CHECK(Contains(run.out, "fused 1 of 1 site ("));
  CHECK(Contains(run.out, "m.onnx ("));
  CHECK(Contains(run.out, " -> out.onnx ("));
  CHECK(fs::exists(box / "out.onnx"));
}

TEST_CASE("optimize --json prints one object and nothing else", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize --json m.onnx out.onnx");
  const Json json = Json::parse(run.out);
  CHECK(json["schema"] == "onnx-addnorm/optimize/1");
  CHECK(json["exit_code"] == 0);
  CHECK(json["fused"] == 1);
  CHECK(json["written"] == true);
  CHECK(json["ops"]["before"]["Sqrt"] == 1);
  CHECK_FALSE(json["ops"]["after"].contains("Sqrt"));
  CHECK(json["output"]["bytes"] == fs::file_size(box / "out.onnx"));
}

TEST_CASE("optimize --dry-run does all but writing", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize m.onnx --dry-run");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.out, "would fuse 1 of 1 site"));
  CHECK(Contains(run.out, "nothing was written"));
  CHECK(box.Run("optimize m.onnx out.onnx --dry-run").exit_code == 0);
  CHECK_FALSE(fs::exists(box / "out.onnx"));
  CHECK(box.Run("optimize m.onnx m.onnx --dry-run").exit_code == 2);
}

TEST_CASE("optimize --explain tells the verdict of each site", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize m.onnx --dry-run --explain");
  CHECK(Contains(run.out, "can be fused     Add 'residual'\n"));
  CHECK(Contains(run.out, "                 as AddRmsNorm_"));
  CHECK(Contains(box.Run("optimize m.onnx out.onnx --explain").out,
                 "fused            Add 'residual'\n"));
}

TEST_CASE("optimize --expect-fused writes nothing if another number was fused",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  CHECK(box.Run("optimize m.onnx good.onnx --expect-fused 1").exit_code == 0);
  const Outcome run = box.Run("optimize m.onnx bad.onnx --expect-fused 2");
  CHECK(run.exit_code == 1);
  CHECK(Contains(run.out, "would fuse 1 of 1 site"));
  CHECK(run.err ==
        "error: m.onnx: expected 2 fused sites, found 1\n"
        "hint: --explain says why each site was fused or not\n");
  CHECK_FALSE(fs::exists(box / "bad.onnx"));
  CHECK(box.Run("optimize m.onnx - --expect-fused 2").out == "");
}

TEST_CASE("optimize copies a model in which nothing is fused", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kNothingToFuse);
  const Outcome run = box.Run("optimize m.onnx out.onnx");
  CHECK(run.exit_code == 0);
  CHECK(Contains(
      run.out,
      "no sites: no residual Add feeds an RMSNorm that is recognised\n"));
  CHECK(Contains(run.out, ", a copy byte for byte)\n"));
  CHECK(ReadFile(box / "m.onnx") == ReadFile(box / "out.onnx"));
}

TEST_CASE("optimize replaces an output only with --force, and never its input",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  WriteFile(box / "out.onnx", "mine");
  const std::string model = ReadFile(box / "m.onnx");
  CHECK(box.Run("optimize m.onnx out.onnx").exit_code == 2);
  CHECK(ReadFile(box / "out.onnx") == "mine");
  CHECK(box.Run("optimize m.onnx out.onnx --force").exit_code == 0);
  CHECK(ReadFile(box / "out.onnx") != "mine");
  CHECK(box.Run("optimize m.onnx ./m.onnx --force").exit_code == 2);
  CHECK(ReadFile(box / "m.onnx") == model);
}

TEST_CASE("'-' reads standard input and writes standard output", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize - - <m.onnx");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.err, "<stdin> ("));
  CHECK(Contains(run.err, " -> <stdout> ("));
  box.Run("optimize m.onnx file.onnx");
  CHECK(run.out == ReadFile(box / "file.onnx"));
  CHECK(box.Run("optimize -q m.onnx -").err == "");
}

TEST_CASE("external data stay where they are, or are copied to another folder",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kExternalWeight);
  WriteFile(box / "w.bin", std::string(32, '\0'));
  fs::create_directory(box / "sub");
  CHECK(Contains(box.Run("optimize m.onnx out.onnx").out,
                 "external data: w.bin (32 bytes), shared\n"));
  CHECK(box.Run("optimize m.onnx sub/a.onnx --data=keep").exit_code == 2);
  CHECK(Contains(box.Run("optimize m.onnx sub/a.onnx").out,
                 "external data: w.bin (32 bytes), copied\n"));
  CHECK(fs::file_size(box / "sub/w.bin") == 32);
  fs::create_directory(box / "far");
  fs::create_symlink("far/b.onnx", box / "link.onnx");
  CHECK(Contains(box.Run("optimize m.onnx link.onnx").out, ", copied\n"));
}

TEST_CASE("optimising an output again shows the same number of nodes",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const auto nodes = [&](const std::string& files) {
    return Json::parse(box.Run("optimize --json " + files).out)["nodes"];
  };
  const Json first = nodes("m.onnx a.onnx");
  CHECK(first == Json({{"before", 9}, {"after", 2}}));
  CHECK(nodes("a.onnx b.onnx") == Json({{"before", 2}, {"after", 2}}));
}

TEST_CASE("optimize never replaces data files, not even with --force",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kExternalWeight);
  WriteFile(box / "w.bin", std::string(32, '\0'));
  const std::string other = std::string(31, '\0') + "x";
  WriteFile(box / "sub/w.bin", other);
  const Outcome run = box.Run("optimize m.onnx sub/a.onnx --force");
  CHECK(run.exit_code == 2);
  CHECK(run.err ==
        "error: sub/w.bin: is not the same as 'w.bin'; a file where data would "
        "go is never replaced\nhint: write the output to another folder\n");
  CHECK(ReadFile(box / "sub/w.bin") == other);
  CHECK_FALSE(fs::exists(box / "sub/a.onnx"));
  CHECK(box.Run("optimize m.onnx sub/a.onnx --dry-run").exit_code == 2);

  WriteFile(box / "sub/w.bin", std::string(32, '\0'));
  const Json json =
      Json::parse(box.Run("optimize m.onnx sub/a.onnx --data=keep --json").out);
  CHECK(json["written"] == true);
  CHECK(json["external_data"][0]["copied"] == false);
  CHECK(Contains(box.Run("optimize m.onnx sub/b.onnx").out,
                 "w.bin (32 bytes), the same is there already\n"));
  CHECK(Contains(box.Run("optimize -h").out, "never the input or data files"));
}

TEST_CASE("what is copied unasked has a limit, which its message names",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kExternalWeight);
  WriteFile(box / "w.bin", std::string(32, '\0'));
  fs::resize_file(box / "w.bin", 65'000'000);
  fs::create_directory(box / "sub");
  for (const char* arguments :
       {"optimize m.onnx sub/a.onnx", "optimize m.onnx sub/a.onnx --dry-run"}) {
    const Outcome run = box.Run(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.err ==
          "error: sub/a.onnx: needs copies of 65.0 MB of external data "
          "('w.bin'), more than the 64.0 MB that are copied without being "
          "asked\n"
          "hint: --data=copy copies them, or write the output beside the "
          "model\n");
  }
  CHECK(fs::is_empty(box / "sub"));
}

TEST_CASE("an output in a pipe says which data files it needs beside it",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kExternalWeight);
  WriteFile(box / "w.bin", std::string(32, '\0'));
  const Outcome run = box.Run("optimize m.onnx -");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.err,
                 "warning: <stdout>: refers to 'w.bin' and must be put "
                 "beside it\n"));
  CHECK(Contains(run.err, "external data: w.bin (32 bytes)\n"));
  CHECK(box.Run("-q optimize m.onnx -").err == "");
  const Json json =
      Json::parse(box.Run("optimize m.onnx /dev/null --json").out);
  CHECK(json["written"] == true);
  CHECK(json["external_data"][0]["copied"] == false);
}

TEST_CASE("an output that cannot be written to stdout is named <stdout>",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome full = box.Run("optimize m.onnx - >/dev/full");
  CHECK(full.exit_code == 4);
  CHECK(full.err == "error: <stdout>: no space left on device\n");
  CHECK(box.Run("optimize m.onnx - >&-").err ==
        "error: <stdout>: bad file descriptor\n");
}

TEST_CASE("optimize says what can be done with ONNX text", "[cli]") {
  const Sandbox box;
  WriteFile(box / "m.txt", kModel);
  const Outcome run = box.Run("optimize m.txt out.onnx");
  CHECK(run.exit_code == 3);
  CHECK(run.err ==
        "error: m.txt: is a model as ONNX text, not an ONNX model\n"
        "hint: inspect reads it as it is; optimize needs the model file that "
        "onnx.parser makes of it\n");
}

}  // namespace addnorm::tests
