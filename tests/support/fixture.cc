// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fixture.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace addnorm::tests {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(ADDNORM_SOURCE_DIR) / "tests/fixtures";
constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-";

struct Directive {
  std::string word;
  std::string argument;
};

// "# WORD: argument"; nullopt for prose and for lines of the model.
std::optional<Directive> ParseDirective(std::string_view line) {
  if (line.substr(0, 2) != "# ") return std::nullopt;
  line.remove_prefix(2);
  const size_t colon = line.find(':');
  if (colon == 0 || line.find_first_not_of(kCapitals) != colon)
    return std::nullopt;
  const size_t start =
      std::min(line.find_first_not_of(' ', colon + 1), line.size());
  return Directive{std::string(line.substr(0, colon)),
                   std::string(line.substr(start))};
}

void Apply(const Directive& directive, Fixture& fixture) {
  const auto& [word, argument] = directive;
  if (argument.empty()) throw std::runtime_error(word + ": says nothing");
  if (word == "PASS") {
    fixture.pass = argument;
  } else if (word == "FUSED") {
    fixture.fused = std::stoi(argument);
  } else if (word == "CHECK" || word == "CHECK-NOT") {
    fixture.checks.push_back({argument, word == "CHECK-NOT"});
  } else if (word == "REJECT") {
    fixture.fused = 0;
    fixture.reasons.push_back(argument);
  } else if (word == "QUIET") {
    fixture.fused = 0;
    fixture.layer_norms = std::stoi(argument);
  } else if (word == "REASON") {
    fixture.reasons.push_back(argument);
  } else {
    throw std::runtime_error("unknown expectation " + word);
  }
}

std::vector<std::string> ListFixtures(bool not_yet) {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(kFolder)) {
    if (!entry.is_regular_file()) continue;
    const auto name =
        std::filesystem::relative(entry.path(), kFolder).generic_string();
    if ((name.rfind("not_yet/", 0) == 0) == not_yet) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Fixture ParseFixture(std::string_view text) {
  Fixture fixture;
  fixture.text = text;
  std::istringstream lines(fixture.text);
  for (std::string line; std::getline(lines, line);) {
    if (const auto directive = ParseDirective(line)) Apply(*directive, fixture);
  }
  if (fixture.pass.empty()) throw std::runtime_error("no line '# PASS: name'");
  if (!fixture.fused && fixture.checks.empty())
    throw std::runtime_error("nothing is expected");
  return fixture;
}

Fixture ReadFixture(const std::string& name) {
  std::ifstream file(kFolder / name);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("cannot read " + name);
  return ParseFixture(text.str());
}

std::vector<std::string> FixtureNames() { return ListFixtures(false); }
std::vector<std::string> NotYetFixtureNames() { return ListFixtures(true); }

}  // namespace addnorm::tests
