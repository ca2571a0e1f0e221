// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The arms of a benchmark of the pair residual Add + RMSNorm: unfused and
// fused, each with plain stores, with streaming ones and in place, and probes
// that only move memory, all on the same buffers.
//
// Unfused are two passes over memory by the same row primitives, vectorised and
// threaded: the best that two separate ops do, not a chain of seven nodes. It
// times nothing (bench_harness.h).
//
//   ASSIGN_OR_RETURN(auto arms, PairArms::Create(setting, arena));
//   RETURN_IF_ERROR(arms->CheckBits());
//   Interleave(arms->bench_arms(), {.seconds = 1});
#ifndef ADDNORM_RUNTIME_PAIR_ARMS_H_
#define ADDNORM_RUNTIME_PAIR_ARMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bench_harness.h"
#include "runtime/kernels/add_rms_norm.h"
#include "runtime/recipe.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

// What is in the caches when a call begins.
enum class CacheState : uint8_t {
  kWarm,     // the call before was on the same buffers
  kCold,     // nothing: buffers rotate through more memory than the caches have
  kProducer  // b, which an op just wrote; a is cold
};

// Tensors of a pair: T is the bytes of one. Plain stores also read what they
// overwrite (read for ownership), unless that was read anyway.
struct Traffic {
  double tensors = 0;           // read and written, and read for ownership
  double explicit_tensors = 0;  // read and written
};

enum class ArmKind : uint8_t { kUnfused, kFused, kProbe };

// What is known of an arm before it runs.
struct PairArm {
  std::string_view name;
  ArmKind kind = ArmKind::kProbe;
  Traffic traffic;
  // The place of the arm that it is to be compared with, like for like: the
  // unfused one with the same stores; itself if there is none.
  size_t base = 0;
  // The place of the arm to take instead where that is faster: then both this
  // one and its base are bad choices.
  std::optional<size_t> instead = std::nullopt;
};

// By place: unfused, unfused again (A/A), …; probes last.
inline constexpr PairArm kPairArms[] = {
    {"unfused", ArmKind::kUnfused, {7, 5}, 0},
    {"unfused again", ArmKind::kUnfused, {7, 5}, 0},
    {"unfused streaming", ArmKind::kUnfused, {5, 5}, 2},
    {"unfused in place", ArmKind::kUnfused, {6, 5}, 3},
    {"fused", ArmKind::kFused, {6, 4}, 0},
    {"fused streaming", ArmKind::kFused, {4, 4}, 2, 4},
    {"fused in place", ArmKind::kFused, {4, 4}, 3},
    {"read", ArmKind::kProbe, {2, 2}, 7},
    {"copy", ArmKind::kProbe, {6, 4}, 8},
    {"streaming copy", ArmKind::kProbe, {4, 4}, 9},
    {"add", ArmKind::kProbe, {4, 3}, 10},
};
inline constexpr size_t kPairArmCount = std::size(kPairArms);

struct PairSetting {
  RmsNormRecipe recipe;
  int64_t rows = 0;
  int64_t length = 0;
  CacheState cache = CacheState::kWarm;
  int threads = 1;
  uint64_t seed = 0;
};

// Memory that all settings of a sweep share, so that its pages are old.
class BufferArena {
 public:
  // Cold buffers take at most so many bytes.
  explicit BufferArena(size_t cold_bytes) : cold_bytes_(cold_bytes) {}
  size_t cold_bytes() const { return cold_bytes_; }
  // Grows as needed; kResourceExhausted if that fails.
  absl::StatusOr<std::byte*> Reserve(size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  size_t cold_bytes_;
  size_t size_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
};

// What one call reads and writes, and what the pair computes of it.
struct PairBuffers {
  std::byte *a = nullptr, *b = nullptr, *sum = nullptr, *y = nullptr;
};
struct PairResults {
  std::vector<std::byte> sum, y;
};

class PairArms {
 public:
  // The arena must outlive it, and only one at a time may use it.
  static absl::StatusOr<std::unique_ptr<PairArms>> Create(
      const PairSetting& setting, BufferArena& arena);

  // That each arm gives the bits of "unfused"; kInternal if not.
  absl::Status CheckBits();

  // Somebody else's implementation, as one more arm: it is called with the
  // place of buffers in sets(), and must write sum and y there.
  void AddArm(std::string name, std::function<void(size_t set)> run);
  // Of one call, on the first buffers, filled anew.
  PairResults Results(size_t arm);

  // In the order of kPairArms, then of AddArm.
  const std::vector<BenchArm>& bench_arms() const { return bench_arms_; }
  size_t tensor_bytes() const { return tensor_bytes_; }  // T
  // All have the same values in a and b, and one scale.
  const std::vector<PairBuffers>& sets() const { return sets_; }
  std::vector<std::byte>& scale() { return scale_; }
  double epsilon() const;

 private:
  using Set = PairBuffers;
  using AddRows = void (*)(const void* a, const void* b, void* sum, size_t n);

  PairArms(const PairSetting& setting, AddRmsNorm norm);

  absl::Status MakeSets(BufferArena& arena);
  void MakeValues();
  void FillSet(const Set& set) const;
  void Call(size_t arm, const Set& set);
  void Produce();
  void Unfused(const Set& set, std::byte* sum, std::byte* y, Stores stores);
  void Norm(const std::byte* a, const std::byte* b, std::byte* sum,
            std::byte* y, Stores stores);
  void Probe(size_t arm, const Set& set);
  // part(offset, bytes) for each row, rows shared out as the kernels do.
  template <typename Part>
  void ForRows(Part part);

  PairSetting setting_;
  AddRmsNorm norm_;
  AddRows add_ = nullptr;
  ThreadPool threads_;
  size_t tensor_bytes_ = 0;
  size_t row_bytes_ = 0;
  std::vector<Set> sets_;
  size_t next_ = 0;
  std::vector<std::byte> a_values_, b_values_, scale_;
  std::vector<std::function<void(size_t set)>> calls_;  // by arm
  std::vector<BenchArm> bench_arms_;
};

// The lines of one last-level cache; 0 if the system does not say.
int64_t LastLevelCacheSize();

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_PAIR_ARMS_H_
