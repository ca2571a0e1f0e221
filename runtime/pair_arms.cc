// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/pair_arms.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <random>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "runtime/element_cast.h"
#include "runtime/kernels/memory_probes.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/row_type.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kMostSets = 1 << 16;
constexpr double kEpsilon = 1e-6;
// As the kernel's own (add_rms_norm.cc): rows of all arms go to the same
// threads.
constexpr int64_t kElementsOfAPart = 16384;

// Places in kPairArms.
enum Place : size_t {
  kUnfused,
  kAgain,
  kUnfusedStreaming,
  kUnfusedInPlace,
  kFused,
  kFusedStreaming,
  kFusedInPlace,
  kRead,
  kCopy,
  kStreamingCopy,
  kAdd
};

// What it reads must not be left out.
std::atomic<uint64_t> sink = 0;

template <typename T>
void AddRowsOf(const void* a, const void* b, void* sum, size_t n) {
  BinaryRows(BinaryOp::kAdd, static_cast<const T*>(a), static_cast<const T*>(b),
             static_cast<T*>(sum), n);
}

template <typename T>
void StoreElement(double value, std::byte* to) {
  const T element = CastElement<T>(value);
  std::memcpy(to, &element, sizeof element);
}

std::vector<std::byte> NormalElements(ir::DataType type, size_t count,
                                      uint64_t seed) {
  const size_t size = ElementSize(type);
  const auto store =
      WithFloatType(type, []<typename T>() { return &StoreElement<T>; });
  std::vector<std::byte> bytes(count * size);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < count; ++i)
    store(normal(random), bytes.data() + i * size);
  return bytes;
}

}  // namespace

int64_t LastLevelCacheSize() {
  int64_t size = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  for (const int level : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE})
    size = std::max<int64_t>(size, sysconf(level));
#endif
  return size;
}

void BufferArena::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

absl::StatusOr<std::byte*> BufferArena::Reserve(size_t bytes) {
  if (bytes <= size_) return memory_.get();
  memory_.reset();
  size_ = 0;
  // Not operator new, which ends the program where there is no memory.
  memory_.reset(static_cast<std::byte*>(
      std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage)));
  if (memory_ == nullptr) {
    return absl::ResourceExhaustedError(
        fmt::format("no memory for buffers of {} bytes", bytes));
  }
  // So that no page is new to an arm.
  std::memset(memory_.get(), 0, bytes);
  size_ = bytes;
  return memory_.get();
}

PairArms::PairArms(const PairSetting& setting, AddRmsNorm norm)
    : setting_(setting), norm_(std::move(norm)), threads_(setting.threads) {}

absl::StatusOr<std::unique_ptr<PairArms>> PairArms::Create(
    const PairSetting& setting, BufferArena& arena) {
  ASSIGN_OR_RETURN(AddRmsNorm norm, AddRmsNorm::Create(setting.recipe));
  const ir::DataType type = setting.recipe.type;
  if (!ir::IsFloat(type) || norm.result_type() != type) {
    return absl::UnimplementedError(fmt::format(
        "a benchmark of a recipe from {} to {}", ir::DataTypeName(type),
        ir::DataTypeName(norm.result_type())));
  }
  std::unique_ptr<PairArms> arms(new PairArms(setting, std::move(norm)));
  arms->add_ = WithFloatType(
      type, []<typename T>() -> AddRows { return &AddRowsOf<T>; });
  arms->row_bytes_ = static_cast<size_t>(setting.length) * ElementSize(type);
  arms->tensor_bytes_ = static_cast<size_t>(setting.rows) * arms->row_bytes_;
  RETURN_IF_ERROR(arms->MakeSets(arena));
  arms->MakeValues();
  for (const Set& set : arms->sets_) arms->FillSet(set);
  for (size_t arm = 0; arm < kPairArmCount; ++arm) {
    arms->AddArm(std::string(kPairArms[arm].name),
                 [self = arms.get(), arm](size_t set) {
                   self->Call(arm, self->sets_[set]);
                 });
  }
  return arms;
}

absl::Status PairArms::MakeSets(BufferArena& arena) {
  // Whole pages, and one more for an offset: where tensors are equally far from
  // the beginning of a page, a store can hold up the loads after it.
  const size_t stride = (tensor_bytes_ + 2 * kPage - 1) / kPage * kPage + kPage;
  size_t count = 1;
  if (setting_.cache != CacheState::kWarm)
    count = std::clamp<size_t>(arena.cold_bytes() / (4 * stride), 2, kMostSets);
  ASSIGN_OR_RETURN(std::byte * memory, arena.Reserve(count * 4 * stride));
  std::mt19937_64 random(setting_.seed);
  for (size_t i = 0; i < count; ++i) {
    Set& set = sets_.emplace_back();
    for (std::byte** buffer : {&set.a, &set.b, &set.sum, &set.y}) {
      *buffer = memory + random() % (kPage / kLine) * kLine;
      memory += stride;
    }
  }
  return absl::OkStatus();
}

// A row of scale, and as many values of a and b as are worth drawing.
void PairArms::MakeValues() {
  constexpr size_t kMostRows = 64;
  const ir::DataType type = setting_.recipe.type;
  const auto length = static_cast<size_t>(setting_.length);
  const size_t rows = std::min(static_cast<size_t>(setting_.rows), kMostRows);
  a_values_ = NormalElements(type, rows * length, setting_.seed + 1);
  b_values_ = NormalElements(type, rows * length, setting_.seed + 2);
  if (!setting_.recipe.scale_types.empty()) {
    scale_ = NormalElements(setting_.recipe.scale_types[0], length,
                            setting_.seed + 3);
  }
}

void PairArms::FillSet(const Set& set) const {
  for (size_t at = 0; at < tensor_bytes_; at += a_values_.size()) {
    const size_t bytes = std::min(a_values_.size(), tensor_bytes_ - at);
    std::memcpy(set.a + at, a_values_.data(), bytes);
    std::memcpy(set.b + at, b_values_.data(), bytes);
  }
}

template <typename Part>
void PairArms::ForRows(Part part) {
  const int64_t grain =
      (kElementsOfAPart + setting_.length - 1) / setting_.length;
  threads_.ParallelFor(setting_.rows, grain, [&](int64_t begin, int64_t end) {
    part(static_cast<size_t>(begin), static_cast<size_t>(end));
  });
}

void PairArms::Norm(const std::byte* a, const std::byte* b, std::byte* sum,
                    std::byte* y, Stores stores) {
  const bool has_scale = !scale_.empty();
  // It cannot fail: Create and the shapes have seen to that.
  norm_
      .Run({.rows = setting_.rows,
            .length = setting_.length,
            .a = a,
            .b = b,
            .scale = has_scale ? scale_.data() : nullptr,
            .scale_count = has_scale ? setting_.length : 0,
            .epsilon = kEpsilon,
            .sum = sum,
            .y = y,
            .stores = stores},
           threads_)
      .IgnoreError();
}

void PairArms::Unfused(const Set& set, std::byte* sum, std::byte* y,
                       Stores stores) {
  const auto length = static_cast<size_t>(setting_.length);
  ForRows([&](size_t begin, size_t end) {
    const size_t at = begin * row_bytes_;
    if (stores == Stores::kPlain)
      return add_(set.a + at, set.b + at, sum + at, (end - begin) * length);
    std::vector<std::byte> row(row_bytes_);
    for (size_t i = begin * row_bytes_; i < end * row_bytes_; i += row_bytes_) {
      add_(set.a + i, set.b + i, row.data(), length);
      StreamRow(row.data(), sum + i, row_bytes_);
    }
    FlushStreams();
  });
  Norm(sum, nullptr, nullptr, y, stores);
}

void PairArms::Probe(size_t arm, const Set& set) {
  const size_t length = static_cast<size_t>(setting_.length);
  ForRows([&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const size_t at = row * row_bytes_;
      if (arm == kRead) {
        sink +=
            ReadRow(set.a + at, row_bytes_) + ReadRow(set.b + at, row_bytes_);
      } else if (arm == kAdd) {
        add_(set.a + at, set.b + at, set.sum + at, length);
      } else {
        const auto copy = arm == kCopy ? CopyRow : StreamRow;
        copy(set.a + at, set.sum + at, row_bytes_);
        copy(set.b + at, set.y + at, row_bytes_);
      }
    }
    if (arm == kStreamingCopy) FlushStreams();
  });
}

void PairArms::Call(size_t arm, const Set& set) {
  switch (arm) {
    case kUnfused:
    case kAgain:
      return Unfused(set, set.sum, set.y, Stores::kPlain);
    case kUnfusedStreaming:
      return Unfused(set, set.sum, set.y, Stores::kStreaming);
    case kUnfusedInPlace:
      return Unfused(set, set.b, set.a, Stores::kPlain);
    case kFused:
      return Norm(set.a, set.b, set.sum, set.y, Stores::kPlain);
    case kFusedStreaming:
      return Norm(set.a, set.b, set.sum, set.y, Stores::kStreaming);
    case kFusedInPlace:
      return Norm(set.a, set.b, set.b, set.a, Stores::kPlain);
    default:
      return Probe(arm, set);
  }
}

// As the op before would: b is in the caches, as far as it fits.
void PairArms::Produce() {
  const Set& set = sets_[next_];
  ForRows([&](size_t begin, size_t end) {
    for (size_t at = begin * row_bytes_; at < end * row_bytes_;
         at += row_bytes_)
      std::memcpy(set.b + at, b_values_.data() + at % b_values_.size(),
                  row_bytes_);
  });
}

double PairArms::epsilon() const { return kEpsilon; }

void PairArms::AddArm(std::string name, std::function<void(size_t set)> run) {
  const size_t arm = calls_.size();
  calls_.push_back(std::move(run));
  const auto next = [this, arm] {
    calls_[arm](next_);
    next_ = (next_ + 1) % sets_.size();
  };
  BenchArm& made = bench_arms_.emplace_back();
  made.name = std::move(name);
  made.run = next;
  if (setting_.cache == CacheState::kProducer)
    made.before_call = [this] { Produce(); };
  if (setting_.cache != CacheState::kWarm) return;
  // In place, sums become larger from call to call; and the arm before may
  // have left something else in the caches.
  made.before_epoch = [this, next] {
    FillSet(sets_[0]);
    next();
  };
}

PairResults PairArms::Results(size_t arm) {
  const Set& set = sets_[0];
  FillSet(set);
  calls_[arm](0);
  const bool in_place = arm == kUnfusedInPlace || arm == kFusedInPlace;
  const std::byte* sum = in_place ? set.b : set.sum;
  const std::byte* y = in_place ? set.a : set.y;
  PairResults results{{sum, sum + tensor_bytes_}, {y, y + tensor_bytes_}};
  FillSet(set);
  return results;
}

absl::Status PairArms::CheckBits() {
  const PairResults expected = Results(kUnfused);
  for (size_t arm = kAgain; arm < kRead; ++arm) {
    const PairResults found = Results(arm);
    if (found.sum != expected.sum || found.y != expected.y) {
      return absl::InternalError(
          fmt::format("{} gives other bits than unfused", kPairArms[arm].name));
    }
  }
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
