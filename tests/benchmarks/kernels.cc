// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What the fused kernel takes, against our own unfused pair and against copies
// of as many bytes: arms interleaved in one process, in random order in each
// round, compared by the median of the paired ratios. Not a test.
//
//   addnorm_kernel_bench [rounds [type rows]]   all, or f32|f16|bf16 and 512|1
//   addnorm_kernel_bench --rows TYPE ROWS ROUNDS  one line a round: the time of
//   the fused kernel in nanoseconds, in place and fresh (against_ort.py)
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "runtime/element_cast.h"
#include "runtime/kernels/add_rms_norm.h"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {
namespace {

constexpr int64_t kLength = 4096;

// Cache-line aligned and written once, so that no page is new to an arm.
Tensor NewTensor(ir::DataType type, int64_t count) {
  Tensor tensor = *Tensor::Create(type, {count}, nullptr);
  std::memset(tensor.mutable_data<std::byte>(), 0, tensor.byte_size());
  return tensor;
}

template <typename T>
Tensor RandomTensor(int64_t count, unsigned seed) {
  Tensor tensor = NewTensor(kTypeOf<T>, count);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (T& v : tensor.mutable_elements<T>()) v = CastElement<T>(normal(random));
  return tensor;
}

// As Llama's: x * (1 / sqrt(mean + epsilon)) in float, cast to the type, times
// scale.
RmsNormRecipe Recipe(ir::DataType type) {
  RmsNormRecipe recipe =
      RmsNormalizationRecipe(type, type, ir::DataType::kFloat);
  recipe.scalar_steps.push_back({.op = ScalarStep::Op::kReciprocal});
  recipe.row_steps[1].op = RowStep::Op::kTimesFactor;
  return recipe;
}

// Buffers of one call; b0 and a0 restore what in-place arms overwrite.
struct Buffers {
  Tensor a, b, scale, sum, y;
};

template <typename T>
Buffers NewBuffers(int64_t rows) {
  const int64_t count = rows * kLength;
  return {RandomTensor<T>(count, 1), RandomTensor<T>(count, 2),
          RandomTensor<T>(kLength, 3), NewTensor(kTypeOf<T>, count),
          NewTensor(kTypeOf<T>, count)};
}

struct Arm {
  std::string name;
  std::function<void()> run;
};

template <typename T>
class Arms {
 public:
  explicit Arms(int64_t rows)
      : rows_(rows),
        norm_(*AddRmsNorm::Create(Recipe(kTypeOf<T>))),
        fresh_(NewBuffers<T>(rows)),
        in_place_(NewBuffers<T>(rows)) {}

  std::vector<Arm> All() {
    return {{"unfused", [this] { Unfused(); }},
            {"unfused again", [this] { Unfused(); }},
            {"fused", [this] { Fused(Stores::kPlain); }},
            {"fused in place", [this] { InPlace(); }},
            {"fused streaming", [this] { Fused(Stores::kStreaming); }},
            {"streaming copy", [this] { StreamingCopy(); }},
            {"copy", [this] { Copy(); }}};
  }

  void Fused(Stores stores) { Run(fresh_, fresh_.sum, fresh_.y, true, stores); }
  // The sum goes back and forth between two rows of finite numbers, since b
  // becomes a + b and a becomes y: values grow, but slowly and not to infinity.
  void InPlace() {
    Run(in_place_, in_place_.b, in_place_.a, true, Stores::kPlain);
  }

 private:
  void Unfused() {
    const T* a = fresh_.a.template data<T>();
    const T* b = fresh_.b.template data<T>();
    T* sum = fresh_.sum.template mutable_data<T>();
    threads_.ParallelFor(rows_, 1, [&](int64_t begin, int64_t end) {
      BinaryRows(BinaryOp::kAdd, a + begin * kLength, b + begin * kLength,
                 sum + begin * kLength,
                 static_cast<size_t>((end - begin) * kLength));
    });
    Buffers of_sum = {fresh_.sum, fresh_.b, fresh_.scale, {}, fresh_.y};
    Run(of_sum, fresh_.sum, fresh_.y, false, Stores::kPlain);
  }

  void Run(Buffers& from, Tensor& sum, Tensor& y, bool adds, Stores stores) {
    const absl::Status status =
        norm_.Run({.rows = rows_,
                   .length = kLength,
                   .a = from.a.template data<T>(),
                   .b = adds ? from.b.template data<T>() : nullptr,
                   .scale = from.scale.template data<T>(),
                   .scale_count = kLength,
                   .epsilon = 1e-6,
                   .sum = adds ? sum.template mutable_data<T>() : nullptr,
                   .y = y.template mutable_data<T>(),
                   .stores = stores},
                  threads_);
    if (!status.ok()) std::abort();
  }

  // Row by row, as the kernels go.
  void StreamingCopy() {
    const size_t bytes = kLength * sizeof(T);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t at = row * kLength;
      StreamRow(fresh_.a.template data<T>() + at,
                fresh_.sum.template mutable_data<T>() + at, bytes);
      StreamRow(fresh_.b.template data<T>() + at,
                fresh_.y.template mutable_data<T>() + at, bytes);
    }
    FlushStreams();
  }
  void Copy() {
    const size_t bytes = kLength * sizeof(T);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t at = row * kLength;
      std::memcpy(fresh_.sum.template mutable_data<T>() + at,
                  fresh_.a.template data<T>() + at, bytes);
      std::memcpy(fresh_.y.template mutable_data<T>() + at,
                  fresh_.b.template data<T>() + at, bytes);
    }
  }

  int64_t rows_;
  AddRmsNorm norm_;
  ThreadPool threads_{1};
  Buffers fresh_, in_place_;
};

// Of this thread on a processor: other programs share the machine.
double ThreadNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 +
         static_cast<double>(now.tv_nsec);
}

double Nanoseconds(const std::function<void()>& run, int repeats) {
  const double start = ThreadNanoseconds();
  for (int i = 0; i < repeats; ++i) run();
  return (ThreadNanoseconds() - start) / repeats;
}

struct Interval {
  double low, median, high;
};

// The median, between the ranks that a sign test at 95 % gives.
Interval MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double spread = 1.96 * std::sqrt(n) / 2;
  const auto at = [&](double rank) {
    return values[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))];
  };
  return {at(n / 2 - spread), at(n / 2), at(n / 2 + spread)};
}

void Report(const std::vector<Arm>& arms,
            const std::vector<std::vector<double>>& times, double bytes) {
  const auto ratio = [&](size_t arm, size_t base) {
    std::vector<double> logs;
    for (size_t i = 0; i < times[arm].size(); ++i)
      logs.push_back(std::log(times[arm][i] / times[base][i]));
    const Interval interval = MedianOf(logs);
    return fmt::format("{:5.3f} [{:5.3f}, {:5.3f}]", std::exp(interval.median),
                       std::exp(interval.low), std::exp(interval.high));
  };
  fmt::print("  {:16} {:>10} {:>7} {:>22} {:>22}\n", "", "us", "GB/s",
             "/ unfused", "/ streaming copy");
  for (size_t arm = 0; arm < arms.size(); ++arm) {
    const double median = MedianOf(times[arm]).median;
    fmt::print("  {:16} {:10.3f} {:7.1f} {:>22} {:>22}\n", arms[arm].name,
               median / 1e3, bytes / median, ratio(arm, 0), ratio(arm, 5));
  }
}

template <typename T>
void Compare(const char* type, int64_t rows, int rounds) {
  Arms<T> all(rows);
  const std::vector<Arm> arms = all.All();
  std::vector<std::vector<double>> times(arms.size());
  std::vector<size_t> order(arms.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const int repeats = rows == 1 ? 200 : 1;
  std::mt19937 random(7);
  for (int round = -3; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t arm : order) {
      const double time = Nanoseconds(arms[arm].run, repeats);
      if (round >= 0) times[arm].push_back(time);
    }
  }
  const auto row_bytes = static_cast<double>(sizeof(T) * kLength);
  fmt::print("{} {}x{}, one thread, {} rounds\n", type, rows, kLength, rounds);
  Report(arms, times, 4 * row_bytes * static_cast<double>(rows));
}

template <typename T>
void PrintTimes(int64_t rows, int rounds) {
  Arms<T> arms(rows);
  const int repeats = rows == 1 ? 200 : 1;
  std::string line;
  // One round for each line read, so that a script can alternate.
  while (rounds-- > 0 && std::getchar() != EOF) {
    arms.InPlace();
    const double in_place = Nanoseconds([&] { arms.InPlace(); }, repeats);
    const double fresh =
        Nanoseconds([&] { arms.Fused(Stores::kPlain); }, repeats);
    fmt::print("{:.0f} {:.0f}\n", in_place, fresh);
    std::fflush(stdout);
  }
}

// f.operator()<T>() for the type of that name.
template <typename F>
void ForType(const std::string& name, F f) {
  if (name == "f32") f.template operator()<float>();
  if (name == "f16") f.template operator()<Half>();
  if (name == "bf16") f.template operator()<BFloat16>();
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "--rows") {
    ForType(arguments[1], [&]<typename T>() {
      PrintTimes<T>(std::stoi(arguments[2]), std::stoi(arguments[3]));
    });
    return 0;
  }
  const int rounds = arguments.empty() ? 101 : std::stoi(arguments[0]);
  for (const char* type : {"f32", "f16", "bf16"}) {
    for (const int64_t rows : {512, 1}) {
      if (arguments.size() == 3 &&
          (arguments[1] != type || std::stoi(arguments[2]) != rows))
        continue;
      ForType(type, [&]<typename T>() { Compare<T>(type, rows, rounds); });
    }
  }
  return 0;
}

}  // namespace
}  // namespace addnorm::runtime

int main(int argc, char** argv) {
  return addnorm::runtime::Main({argv + 1, argv + argc});
}
