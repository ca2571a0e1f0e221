// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The rounds of a benchmark, on a clock that only the arms move.
#include "runtime/bench_harness.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace addnorm::tests {
namespace {

using runtime::BenchArm;
using runtime::BenchOptions;
using runtime::Interleave;
using runtime::Timings;

struct FakeClock {
  double seconds = 0;
  std::function<double()> Now() {
    return [this] { return seconds; };
  }
  std::function<void()> Work(double time) {
    return [this, time] { seconds += time; };
  }
};

TEST_CASE("each round has one epoch of each arm, in changing order",
          "[bench]") {
  FakeClock clock;
  std::string order;
  std::vector<BenchArm> arms;
  for (const char* name : {"a", "b", "c"}) {
    arms.push_back({name, [&, name] {
                      order += name;
                      clock.seconds += 1;
                    }});
  }
  const Timings timings = Interleave(
      arms, {.seconds = 90, .warm_up_rounds = 0, .now = clock.Now()});
  CHECK(timings.calls == 1);
  REQUIRE(order.size() % 3 == 0);
  std::vector<std::string> rounds;
  for (size_t i = 0; i < order.size(); i += 3) {
    rounds.push_back(order.substr(i, 3));
    std::string sorted = rounds.back();
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == "abc");
  }
  std::sort(rounds.begin(), rounds.end());
  CHECK(std::unique(rounds.begin(), rounds.end()) - rounds.begin() == 6);
}

TEST_CASE("epochs are as long as asked, the same for all arms", "[bench]") {
  FakeClock clock;
  const std::vector<BenchArm> arms = {{"slow", clock.Work(2e-5)},
                                      {"fast", clock.Work(1e-6)},
                                      {"middle", clock.Work(1e-5)}};
  const Timings timings = Interleave(
      arms, {.seconds = 1, .epoch_seconds = 1e-3, .now = clock.Now()});
  CHECK(timings.calls >= 100);
  CHECK(timings.calls <= 800);
  for (size_t i = 0; i < timings.rounds(); ++i) {
    CHECK(timings.seconds[0][i] == Approx(2e-5));
    CHECK(timings.seconds[1][i] == Approx(1e-6));
  }
  CHECK(timings.elapsed == Approx(1).margin(0.1));
}

TEST_CASE("the time is kept, but for the least number of rounds", "[bench]") {
  FakeClock clock;
  const std::vector<BenchArm> arms = {{"a", clock.Work(10)},
                                      {"b", clock.Work(10)}};
  BenchOptions options{.seconds = 0.2, .now = clock.Now()};
  CHECK(Interleave(arms, options).rounds() == 1);
  options.least_rounds = 7;
  CHECK(Interleave(arms, options).rounds() == 7);
  options.seconds = 1e6;
  options.most_rounds = 9;
  CHECK(Interleave(arms, options).rounds() == 9);
}

TEST_CASE("epochs can be timed by another clock than the whole", "[bench]") {
  FakeClock wall, processor;
  const std::vector<BenchArm> arms = {{"a", [&] {
                                         wall.seconds += 10;
                                         processor.seconds += 2;
                                       }}};
  const Timings timings = Interleave(
      arms, {.seconds = 100, .now = processor.Now(), .wall = wall.Now()});
  CHECK(timings.seconds[0][0] == Approx(2));
  CHECK(timings.elapsed == Approx(100));
  const double start = runtime::ProcessorSeconds();
  CHECK(runtime::ProcessorSeconds() >= start);
}

TEST_CASE("what is before a call or an epoch is not timed", "[bench]") {
  FakeClock clock;
  std::vector<BenchArm> arms = {
      {"a", clock.Work(1), clock.Work(50), clock.Work(100)},
      {"b", clock.Work(2)}};
  const Timings timings =
      Interleave(arms, {.seconds = 1000, .now = clock.Now()});
  CHECK(timings.seconds[0][0] == Approx(1));
  CHECK(timings.seconds[1][0] == Approx(2));
}

TEST_CASE("an interrupted call does not decide where calls are timed singly",
          "[bench]") {
  FakeClock clock;
  int calls = 0;
  std::vector<BenchArm> arms = {{"a", [&] {
                                   // Every tenth call is interrupted.
                                   clock.seconds += ++calls % 10 == 0 ? 50 : 1;
                                 }}};
  arms[0].before_call = clock.Work(0);
  const Timings timings = Interleave(
      arms, {.seconds = 9000, .epoch_seconds = 30, .now = clock.Now()});
  REQUIRE(timings.calls >= 10);
  for (const double seconds : timings.seconds[0]) CHECK(seconds == Approx(1));
}

TEST_CASE("only epochs that count are told of, and rounds can be stopped",
          "[bench]") {
  FakeClock clock;
  int64_t calls = 0, epochs = 0;
  std::vector<BenchArm> arms = {{"a", clock.Work(0.25)}};
  arms[0].after_epoch = [&](int64_t of_epoch) {
    calls += of_epoch;
    ++epochs;
  };
  std::vector<double> shares;
  const Timings timings = Interleave(arms, {.seconds = 100,
                                            .epoch_seconds = 1,
                                            .now = clock.Now(),
                                            .on_progress = [&](double share) {
                                              shares.push_back(share);
                                              return shares.size() < 4;
                                            }});
  CHECK(timings.stopped);
  CHECK(timings.rounds() == 3);
  CHECK(epochs == 3);
  CHECK(calls == 3 * timings.calls);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(Interleave({}, {}).rounds() == 0);
}

}  // namespace
}  // namespace addnorm::tests
