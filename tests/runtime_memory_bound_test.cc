// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What memory there is, read from files as the kernel writes them, and what is
// refused.
#include <cstdint>
#include <string>

#include "fmt/format.h"
#include "runtime/memory_bound.h"
#include "tests/support/catch.h"
#include "tests/support/run_text.h"
#include "tests/support/sandbox.h"

namespace addnorm::runtime {
namespace {

using tests::Contains;
using tests::RunText;
using tests::Sandbox;
using tests::WriteFile;

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST_CASE("available memory is what the machine has, swap included",
          "[runtime]") {
  const Sandbox root;
  WriteFile(root / "proc/meminfo",
            "MemTotal:       24684084 kB\nMemFree:         100 kB\n"
            "MemAvailable:       2048 kB\nSwapTotal:    9000 kB\n"
            "SwapFree:           1024 kB\n");
  CHECK(AvailableMemory(root / "") == 3 * kMiB);
}

TEST_CASE("available memory is that of the smallest control group",
          "[runtime]") {
  const Sandbox root;
  WriteFile(root / "proc/meminfo", "MemAvailable: 1048576 kB\n");
  WriteFile(root / "proc/self/cgroup", "0::/a/b\n");
  const std::string groups = "sys/fs/cgroup/";
  const auto write = [&](const std::string& group, const char* limit,
                         uint64_t usage) {
    WriteFile(root / (groups + group + "memory.max"), limit);
    WriteFile(root / (groups + group + "memory.current"),
              std::to_string(usage));
  };
  write("a/b/", "max\n", 5 * kMiB);
  CHECK(AvailableMemory(root / "") == 1024 * kMiB);
  write("a/", "67108864\n", 60 * kMiB);
  CHECK(AvailableMemory(root / "") == 4 * kMiB);
  // Cached files give way.
  WriteFile(root / (groups + "a/memory.stat"),
            "anon 1\ninactive_file 1048576\nactive_file 2097152\n");
  CHECK(AvailableMemory(root / "") == 7 * kMiB);
  // More than the limit may be in use for a moment.
  write("a/b/", "1048576\n", 2 * kMiB);
  CHECK(AvailableMemory(root / "") == 0);
}

TEST_CASE("available memory knows the first version of control groups",
          "[runtime]") {
  const Sandbox root;
  WriteFile(root / "proc/self/cgroup",
            "9:name=systemd:/x\n5:cpu,memory:/job\n0::/\n");
  const std::string group = "sys/fs/cgroup/memory/";
  WriteFile(root / (group + "memory.limit_in_bytes"), "9223372036854771712\n");
  WriteFile(root / (group + "memory.usage_in_bytes"), "1048576\n");
  const uint64_t unlimited = AvailableMemory(root / "");
  CHECK(unlimited > kMiB * kMiB);
  WriteFile(root / (group + "job/memory.limit_in_bytes"), "3145728\n");
  WriteFile(root / (group + "job/memory.usage_in_bytes"), "2097152\n");
  WriteFile(root / (group + "job/memory.stat"),
            "inactive_file 7\ntotal_inactive_file 524288\n"
            "total_active_file 0\n");
  CHECK(AvailableMemory(root / "") == 3 * kMiB / 2);
}

TEST_CASE("where the system says nothing of memory there is no limit",
          "[runtime]") {
  const Sandbox root;
  CHECK(AvailableMemory(root / "none") > kMiB * kMiB);
  // Here it does say.
  CHECK(AvailableMemory() < kMiB * kMiB);
}

TEST_CASE("the bound refuses what is not left, and says how much is",
          "[runtime]") {
  MemoryBound bound(100);
  CHECK(bound.Take(60).ok());
  CHECK(bound.CheckRoom(40).ok());
  CHECK(bound.Take(41).message() == "41 bytes are needed, 40 are left");
  CHECK(bound.Take(UINT64_MAX).message() ==
        fmt::format("{} bytes are needed, 40 are left", UINT64_MAX));
  bound.Give(60);
  CHECK(bound.Take(100).ok());
  bound.TakeUnasked(1);
  CHECK(bound.CheckRoom(1).code() == absl::StatusCode::kResourceExhausted);
  CHECK(bound.CheckRoom(1).message() == "1 bytes are needed, 0 are left");
}

// The body of a model of opset 18 with the input n = {2^50}.
std::string ErrorOf(std::string_view body) {
  const auto outputs =
      RunText(fmt::format("<ir_version: 8, opset_import: [\"\" : 18]> "
                          "g (int64[1] n) => (y) {{ {} }}",
                          body),
              {tests::MakeTensor<int64_t>({1}, {int64_t{1} << 50})});
  REQUIRE_FALSE(outputs.ok());
  CHECK(outputs.status().code() == absl::StatusCode::kResourceExhausted);
  return std::string(outputs.status().message());
}

TEST_CASE("memory that cannot be had is refused by node, value and bytes",
          "[runtime]") {
  const struct {
    const char* body;
    const char* error;
  } rows[] = {
      {"[big] y = ConstantOfShape(n)",
       "ConstantOfShape 'big': output 'y': no memory for "
       "float[1125899906842624]: 45035996273"},
      {"[big] y = Expand(n, n)",
       "Expand 'big': output 'y': no memory for int64[1125899906842624]: "
       "90071"},
      {"[big] y = Tile(n, n)",
       "Tile 'big': output 'y': no memory for int64[1125899906842624]: 900719"},
      {"z = Constant<value_int = 0>() one = Constant<value_int = 1>() "
       "m = Squeeze(n) [big] y = Range(z, m, one)",
       "Range 'big': output 'y': no memory for int64[1125899906842624]: 90071"},
      {"m = Concat<axis = 0>(n, n) [big] y = ConstantOfShape(m)",
       "ConstantOfShape 'big': output 'y': no memory for "
       "float[1125899906842624,1125899906842624]: more bytes are needed than "
       "can be counted"},
  };
  for (const auto& row : rows) {
    INFO(row.body);
    const std::string error = ErrorOf(row.body);
    CHECK(error.rfind(row.error, 0) == 0);
    CHECK((Contains(error, " bytes are needed, ") ||
           Contains(error, "than can be counted")));
  }
}

TEST_CASE("a loop ends where its rows could not be stacked any more",
          "[runtime]") {
  // 64 MiB in one buffer, in as many rows as 2^50.
  const std::string error = ErrorOf(R"(
    k = Constant<value_ints = [16777216]>()
    x = ConstantOfShape(k)
    m = Squeeze(n)
    [many] y = Loop<body = b (int64 i, bool c) => (bool d, r) {
      d = Identity(c)
      r = Identity(x)
    }>(m, ))");
  CHECK(Contains(error, "Loop 'many': no memory for "));
  CHECK(Contains(error, " iterations: "));
}

}  // namespace
}  // namespace addnorm::runtime
