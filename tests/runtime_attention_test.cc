// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention ops beyond ONNX's node tests: caches, windows, types, threads, and
// operands that do not fit.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/support/catch.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

using Outputs = std::vector<Tensor>;

// Numbers in [-1, 1) that depend on the seed.
template <typename T = float>
Tensor Random(Dims dims, uint32_t seed) {
  Tensor tensor = *Tensor::Create(kTypeOf<T>, std::move(dims), nullptr);
  for (T& element : tensor.mutable_elements<T>()) {
    seed = seed * 1664525u + 1013904223u;
    element = Narrow<T>(static_cast<float>(seed >> 8) * 0x1p-23f - 1.0F);
  }
  return tensor;
}

template <typename T>
Tensor Filled(Dims dims, T value) {
  Tensor tensor = *Tensor::Create(kTypeOf<T>, std::move(dims), nullptr);
  std::ranges::fill(tensor.mutable_elements<T>(), value);
  return tensor;
}

absl::StatusOr<Outputs> TryRun(const std::string& text, Outputs inputs,
                               int threads = 1) {
  return tests::RunText(
      "<ir_version: 10, opset_import: [\"\" : 24, \"com.microsoft\" : 1]>\n" +
          text,
      std::move(inputs), threads);
}

Outputs Run(const std::string& text, Outputs inputs, int threads = 1) {
  const auto outputs = TryRun(text, std::move(inputs), threads);
  INFO(text << "\n" << outputs.status());
  REQUIRE(outputs.ok());
  return *outputs;
}

std::string MessageOf(const std::string& text, Outputs inputs) {
  const auto outputs = TryRun(text, std::move(inputs));
  return outputs.ok() ? "none" : std::string(outputs.status().message());
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() &&
         a.ToBytes() == b.ToBytes();
}

bool Close(const std::vector<double>& want, const Tensor& have) {
  REQUIRE(have.count() == std::ssize(want));
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(want[i] - double{have.data<float>()[i]}) < 1e-5))
      return false;
  }
  return true;
}

// Attention of [1, heads, rows, size] by its definition, in double: query i
// sees keys first(i) … last(i).
template <typename F>
std::vector<double> Reference(const Tensor& q, const Tensor& k, const Tensor& v,
                              F&& range) {
  const int64_t heads = q.dims()[1], rows = q.dims()[2], size = q.dims()[3];
  const int64_t group = heads / k.dims()[1], keys = k.dims()[2];
  std::vector<double> y;
  for (int64_t h = 0; h < heads; ++h) {
    const float* key = k.data<float>() + h / group * keys * size;
    const float* value = v.data<float>() + h / group * keys * size;
    for (int64_t i = 0; i < rows; ++i) {
      const float* query = q.data<float>() + (h * rows + i) * size;
      std::vector<double> sums(static_cast<size_t>(size), 0);
      double total = 0;
      const auto [first, last] = range(i);
      for (int64_t j = first; j <= last; ++j) {
        const double score =
            std::inner_product(query, query + size, key + j * size, 0.0);
        const double power =
            std::exp(score / std::sqrt(static_cast<double>(size)));
        total += power;
        for (int64_t e = 0; e < size; ++e)
          sums[e] += power * double{value[j * size + e]};
      }
      for (const double sum : sums) y.push_back(sum / total);
    }
  }
  return y;
}

constexpr char kCausal[] =
    "g (float[] q, float[] k, float[] v) => (float[] y)"
    "{ y = Attention<is_causal = 1>(q, k, v) }";

TEST_CASE("causal attention is right across blocks of rows", "[runtime]") {
  const Tensor q = Random({1, 4, 150, 24}, 1), k = Random({1, 2, 150, 24}, 2),
               v = Random({1, 2, 150, 24}, 3);
  const auto expected =
      Reference(q, k, v, [](int64_t i) { return std::pair(int64_t{0}, i); });
  CHECK(Close(expected, Run(kCausal, {q, k, v})[0]));
}

TEST_CASE("attention does not depend on the number of threads", "[runtime]") {
  const Outputs inputs = {Random({2, 4, 150, 24}, 1),
                          Random({2, 2, 150, 24}, 2),
                          Random({2, 2, 150, 24}, 3)};
  CHECK(SameBits(Run(kCausal, inputs, 1)[0], Run(kCausal, inputs, 3)[0]));
}

TEST_CASE("attention of half types is that of floats, rounded once",
          "[runtime]") {
  Outputs half, wide;
  for (const uint32_t seed : {1, 2, 3}) {
    half.push_back(Random<BFloat16>({1, 2, 5, 8}, seed));
    wide.push_back(Filled({1, 2, 5, 8}, 0.0F));
    std::ranges::transform(half.back().elements<BFloat16>(),
                           wide.back().mutable_data<float>(), Widen<BFloat16>);
  }
  const Tensor expected = Run(kCausal, wide)[0];
  const Tensor y =
      Run("g (bfloat16[] q, bfloat16[] k, bfloat16[] v) => (bfloat16[] y)"
          "{ y = Attention<is_causal = 1>(q, k, v) }",
          half)[0];
  for (int64_t i = 0; i < y.count(); ++i)
    CHECK(y.data<BFloat16>()[i] == Narrow<BFloat16>(expected.data<float>()[i]));
}

TEST_CASE("a query that sees no key has a zero row", "[runtime]") {
  const Outputs y =
      Run("g (float[] q, float[] k, float[] v, bool[] m) => (float[] y)"
          "{ y = Attention(q, k, v, m) }",
          {Random({1, 1, 2, 8}, 1), Random({1, 1, 3, 8}, 2),
           Random({1, 1, 3, 8}, 3), Filled({2, 3}, false)});
  CHECK(SameBits(y[0], Filled({1, 1, 2, 8}, 0.0F)));
}

// ---- GroupQueryAttention: 4 heads of 16 that share 2 heads of keys.

struct GqaNode {
  std::string attributes = "";
  bool packed = false;
};

std::string Gqa(const GqaNode& node) {
  const std::string operands =
      node.packed ? "q, , , pk, pv, n, t, c, s" : "q, k, v, pk, pv, n, t, c, s";
  return fmt::format(
      "g (float[] q{}, float[] pk, float[] pv, int32[] n, int32[] t, float[] c,"
      "   float[] s) => (float[] y, float[] nk, float[] nv)"
      "{{ y, nk, nv = com.microsoft.GroupQueryAttention<num_heads = 4,"
      "   kv_num_heads = 2, do_rotary = 1{}>({}) }}",
      node.packed ? "" : ", float[] k, float[] v", node.attributes, operands);
}

// Rows [from, from + count) of [1, rows, width].
Tensor Rows(const Tensor& x, int64_t from, int64_t count) {
  const int64_t width = x.dims()[2];
  Tensor rows = *Tensor::Create(x.type(), {1, count, width}, nullptr);
  std::copy_n(x.data<float>() + from * width, count * width,
              rows.mutable_data<float>());
  return rows;
}

struct GqaRun {
  Tensor q = Random({1, 12, 64}, 1), k = Random({1, 12, 32}, 2),
         v = Random({1, 12, 32}, 3);
  Tensor cos = Random({40, 8}, 4), sin = Random({40, 8}, 5);

  Outputs Step(const std::string& node, int64_t from, int64_t count, Tensor pk,
               Tensor pv) const {
    const auto total = static_cast<int32_t>(from + count);
    return Run(node, {Rows(q, from, count), Rows(k, from, count),
                      Rows(v, from, count), std::move(pk), std::move(pv),
                      Tensor::Vector<int32_t>({total - 1}),
                      Tensor::Scalar<int32_t>(total), cos, sin});
  }
};

TEST_CASE("a cache with room gives the bits of one that grows", "[runtime]") {
  const GqaRun run;
  const Outputs first = run.Step(Gqa({}), 0, 8, Filled({1, 2, 0, 16}, 0.0F),
                                 Filled({1, 2, 0, 16}, 0.0F));
  const Outputs grown = run.Step(Gqa({}), 8, 4, first[1], first[2]);
  const Tensor room = Filled({1, 2, 20, 16}, 7.0F);
  const Outputs prompt = run.Step(Gqa({}), 0, 8, room, room);
  const Outputs shared = run.Step(Gqa({}), 8, 4, prompt[1], prompt[2]);
  CHECK(shared[1].dims() == Dims{1, 2, 20, 16});
  CHECK(grown[1].dims() == Dims{1, 2, 12, 16});
  CHECK(SameBits(grown[0], shared[0]));
  for (size_t i = 0; i < 12 * 16; ++i)
    CHECK(grown[2].data<float>()[i] == shared[2].data<float>()[i]);
  CHECK(shared[1].data<float>()[12 * 16] == 7.0F);  // what was there
}

TEST_CASE("a window's cache has the same rows however tokens arrive",
          "[runtime]") {
  const GqaRun run;
  const std::string node =
      Gqa({", sliding_window_cache = 1, local_window_size = 3"});
  const Tensor empty = Filled({1, 2, 5, 16}, 0.0F);
  const Outputs at_once = run.Step(node, 0, 12, empty, empty);
  Outputs step = {Tensor(), empty, empty};
  for (int64_t i = 0; i < 12; ++i)
    step = run.Step(node, i, 1, step[1], step[2]);
  // 12 tokens, capacity 5, window 3: 3 rows are freed at a time, 3 are left.
  for (const size_t cache : {1, 2}) {
    for (size_t i = 0; i < 3 * 16; ++i)
      CHECK(at_once[cache].data<float>()[i] == step[cache].data<float>()[i]);
  }
  // The last token's result, and that of a cache that holds all.
  const Outputs all =
      run.Step(Gqa({", local_window_size = 3"}), 0, 12,
               Filled({1, 2, 0, 16}, 0.0F), Filled({1, 2, 0, 16}, 0.0F));
  CHECK(SameBits(all[0], at_once[0]));
  CHECK(SameBits(Rows(all[0], 11, 1), step[0]));
}

TEST_CASE("packed queries, keys and values are separate ones", "[runtime]") {
  const GqaRun run;
  const Tensor none = Filled({1, 2, 0, 16}, 0.0F);
  const Outputs apart = run.Step(Gqa({}), 0, 12, none, none);
  Tensor packed = *Tensor::Create(ir::DataType::kFloat, {1, 12, 128}, nullptr);
  for (int64_t row = 0; row < 12; ++row) {
    float* to = packed.mutable_data<float>() + row * 128;
    to = std::copy_n(run.q.data<float>() + row * 64, 64, to);
    to = std::copy_n(run.k.data<float>() + row * 32, 32, to);
    std::copy_n(run.v.data<float>() + row * 32, 32, to);
  }
  const Outputs joined = Run(Gqa({.packed = true}),
                             {packed, none, none, Tensor::Vector<int32_t>({11}),
                              Tensor::Scalar<int32_t>(12), run.cos, run.sin});
  for (size_t i = 0; i < 3; ++i) CHECK(SameBits(apart[i], joined[i]));
}

TEST_CASE("the norm of queries and keys comes before the rotation",
          "[runtime]") {
  const GqaRun run;
  const auto node = [](const char* weights) {
    return fmt::format(
        "g (float[] q, float[] k, float[] v, int32[] n, int32[] t, float[] c,"
        "   float[] s, float[] w) => (float[] y)"
        "{{ y = com.microsoft.GroupQueryAttention<num_heads = 4,"
        "   kv_num_heads = 2, do_rotary = 1, qk_norm_epsilon = 0.25>"
        "   (q, k, v, , , n, t, c, s{}) }}",
        weights);
  };
  const Tensor weight = Random({16}, 9);
  const auto normalised = [&](Tensor x) {
    Tensor y = *Tensor::Create(x.type(), x.dims(), nullptr);
    for (int64_t i = 0; i < x.count(); i += 16) {
      const float* from = x.data<float>() + i;
      const double squares = std::inner_product(from, from + 16, from, 0.0);
      for (int64_t e = 0; e < 16; ++e)
        y.mutable_data<float>()[i + e] = static_cast<float>(
            double{from[e]} / std::sqrt(squares / 16 + 0.25) *
            double{weight.data<float>()[e]});
    }
    return y;
  };
  const Tensor last = Tensor::Vector<int32_t>({11}),
               total = Tensor::Scalar<int32_t>(12);
  const Tensor want =
      Run(node(""), {normalised(run.q), normalised(run.k), run.v, last, total,
                     run.cos, run.sin, weight})[0];
  const Tensor have =
      Run(node(", , , , , , w, w"),
          {run.q, run.k, run.v, last, total, run.cos, run.sin, weight})[0];
  CHECK(Close({want.data<float>(), want.data<float>() + want.count()}, have));
}

// ---- block-wise weights

TEST_CASE("products with weights of 2, 4 and 8 bits", "[runtime]") {
  const int64_t bits = GENERATE(2, 4, 8);
  const int64_t rows = GENERATE(3, 40);
  const Tensor a = Random({rows, 80}, 1), scales = Random({50, 3}, 2);
  Tensor b = *Tensor::Create(ir::DataType::kUint8, {50, 3, 4 * bits}, nullptr);
  for (int64_t i = 0; i < b.count(); ++i)
    b.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + i / 11);
  std::vector<double> expected;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t n = 0; n < 50; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < 80; ++k) {
        const int64_t bit = (n * 3 + k / 32) * 32 * bits + k % 32 * bits;
        const int value = b.data<uint8_t>()[bit / 8] >> (bit % 8);
        const int weight = (value & ((1 << bits) - 1)) - (1 << (bits - 1));
        sum += double{a.data<float>()[row * 80 + k]} * weight *
               double{scales.data<float>()[n * 3 + k / 32]};
      }
      expected.push_back(sum / 256);
    }
  }
  const std::string node = fmt::format(
      "g (float[] a, uint8[] b, float[] s) => (float[] y)"
      "{{ y = com.microsoft.MatMulNBits<K = 80, N = 50, bits = {},"
      "   block_size = 32>(a, b, s) }}",
      bits);
  Tensor y = Run(node, {a, b, scales}, 2)[0];
  CHECK(SameBits(y, Run(node, {a, b, scales}, 1)[0]));
  for (float& element : y.mutable_elements<float>()) element /= 256;
  CHECK(Close(expected, y));
}

TEST_CASE("gathered rows of int4, with zeros for an index out of range",
          "[runtime]") {
  Tensor data = *Tensor::Create(ir::DataType::kInt4, {2, 16}, nullptr);
  for (int64_t i = 0; i < 32; ++i)
    data.mutable_data<int8_t>()[i] = static_cast<int8_t>(i % 16 - 8);
  const Tensor y =
      Run("g (int4[] d, int64[] i, float[] s) => (float[] y)"
          "{ y = com.microsoft.GatherBlockQuantized<block_size = 16,"
          "   quantize_axis = 1>(d, i, s) }",
          {data, Tensor::Vector<int64_t>({-1, 5}), Filled({2, 1}, 0.5F)})[0];
  std::vector<double> expected;
  for (int i = 0; i < 16; ++i) expected.push_back((i - 8) * 0.5);
  expected.resize(32, 0);
  CHECK(Close(expected, y));
}

// ---- what is refused

TEST_CASE("what attention ops do not support is named", "[runtime]") {
  const GqaRun run;
  const Tensor none = Filled({1, 2, 0, 16}, 0.0F);
  const auto message = [&](const std::string& attributes) {
    return MessageOf(
        Gqa({attributes}),
        {run.q, run.k, run.v, none, none, Tensor::Vector<int32_t>({11}),
         Tensor::Scalar<int32_t>(12), run.cos, run.sin});
  };
  CHECK_THAT(message(", qk_output = 1"),
             ContainsSubstring("qk_output is not supported"));
  CHECK_THAT(message(", k_quant_type = \"PER_TENSOR\""),
             ContainsSubstring("k_quant_type 'PER_TENSOR' is not supported"));
  CHECK_THAT(
      message(", sliding_window_cache = 1, local_window_size = 3"),
      ContainsSubstring("a cache of 0 rows cannot hold the window of 3"));
}

TEST_CASE("operands of attention that do not fit are refused", "[runtime]") {
  struct Row {
    Dims q, k, v;
    const char* message;
  };
  const Row row = GENERATE(values<Row>({
      {{1, 4, 2, 8}, {1, 3, 2, 8}, {1, 3, 2, 8}, "4 heads of queries are no"},
      {{1, 4, 2, 8}, {1, 0, 2, 8}, {1, 0, 2, 8}, "4 heads of queries are no"},
      {{1, 4, 2, 8}, {1, 4, 2, 7}, {1, 4, 2, 8}, "do not match"},
      {{1, 4, 2, 8}, {2, 4, 2, 8}, {2, 4, 2, 8}, "do not match"},
      {{1, 2, 8}, {1, 2, 8}, {1, 2, 8}, "cannot be cut into 0 heads"},
      {{2, 8}, {2, 8}, {2, 8}, "neither of rank 3 nor 4"},
  }));
  CHECK_THAT(MessageOf(kCausal,
                       {Random(row.q, 1), Random(row.k, 2), Random(row.v, 3)}),
             ContainsSubstring(row.message));
}

}  // namespace
}  // namespace addnorm::runtime
