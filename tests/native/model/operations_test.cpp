// The operations of a block, each against its definition in float64.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "doctest/doctest.h"
#include "model/block.h"
#include "model/forward_pass.h"
#include "model/logit_divergence.h"
#include "model/steps/attention.h"
#include "model/steps/norm.h"
#include "model/steps/rotary.h"
#include "model/token_loss.h"
#include "numeric/half.h"
#include "random_values.h"

namespace wasmquant::model {
namespace {

TEST_CASE("a norm divides by the root of the mean square") {
  RandomValues random(1);
  for (const size_t columns : {1, 2, 7, 64}) {
    const std::vector<float> x = random.vector(3 * columns), weight = random.vector(columns);
    for (const bool plus_one : {false, true}) {
      std::vector<float> y(x.size());
      normalize({1e-3, plus_one}, weight, {}, x.data(), 3, columns, y.data());
      for (size_t row = 0; row < 3; ++row) {
        double square = 0;
        for (size_t i = 0; i < columns; ++i) square += double{x[row * columns + i]} * x[row * columns + i];
        const double root = std::sqrt(square / static_cast<double>(columns) + 1e-3);
        for (size_t i = 0; i < columns; ++i)
          CHECK(y[row * columns + i] ==
                doctest::Approx(x[row * columns + i] / root * (weight[i] + plus_one)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("RoPE rotates pairs half a head apart") {
  constexpr size_t kDim = 10, kPositions = 40;
  Rope rope;
  rope.theta = 50;
  rope.scaling = Rope::Scaling::linear;
  rope.factor = 2.5;
  const RotaryTable table(rope, kDim, kPositions);
  const std::vector<float> x = RandomValues(2).vector(kDim);
  for (size_t position = 0; position < kPositions; ++position) {
    std::vector<float> y = x;
    table.apply(y.data(), position);
    for (size_t i = 0; i < kDim / 2; ++i) {
      const double angle = static_cast<double>(position) * std::pow(50.0, -2.0 * static_cast<double>(i) / kDim) / 2.5;
      const double low = x[i], high = x[i + kDim / 2];
      CHECK(std::fabs(y[i] - (low * std::cos(angle) - high * std::sin(angle))) < 1e-5);
      CHECK(std::fabs(y[i + kDim / 2] - (high * std::cos(angle) + low * std::sin(angle))) < 1e-5);
    }
  }
}

Architecture attention_of(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t window, float cap) {
  Architecture a;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.head_dim = head_dim;
  a.window = window;
  a.scales.attention_cap = cap;
  a.scales.attention = 0.7f;
  return a;
}

std::vector<double> attended(const Architecture& a, bool is_sliding, const std::vector<float>& q,
                             const std::vector<float>& k, const std::vector<float>& v, size_t length) {
  const size_t dim = a.head_dim, columns = a.query_columns(), keys = a.key_columns();
  std::vector<double> out(length * columns);
  for (size_t head = 0; head < a.heads; ++head)
    for (size_t token = 0; token < length; ++token) {
      const size_t from = head * a.kv_heads / a.heads * dim;
      const size_t chunk = is_sliding && a.is_chunked ? token - token % a.window : 0;
      const size_t first = is_sliding && !a.is_chunked && token >= a.window ? token - a.window + 1 : chunk;
      std::vector<double> weight;
      for (size_t other = first; other <= token; ++other) {
        double score = 0;
        for (size_t i = 0; i < dim; ++i)
          score += double{q[token * columns + head * dim + i]} * k[other * keys + from + i];
        score *= a.scales.attention;
        weight.push_back(std::exp(
            a.scales.attention_cap > 0 ? a.scales.attention_cap * std::tanh(score / a.scales.attention_cap) : score));
      }
      const double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
      for (size_t other = first; other <= token; ++other)
        for (size_t i = 0; i < dim; ++i)
          out[token * columns + head * dim + i] += weight[other - first] / sum * v[other * keys + from + i];
    }
  return out;
}

TEST_CASE("attention: grouped heads, windows and caps, sequences around the tiles") {
  RandomValues random(3);
  for (const size_t length : {1, 2, 5, 31, 32, 33, 129, 200})
    for (const auto& [heads, kv_heads] : {std::pair{4u, 4u}, {4u, 2u}, {6u, 1u}})
      for (const uint32_t window : {0u, 1u, 3u, 40u})
        for (const float cap : {0.0f, 2.0f, -2.0f}) {  // below 0: chunks
          Architecture a = attention_of(heads, kv_heads, 6, window, std::fabs(cap));
          a.is_chunked = cap < 0;
          const std::vector<float> q = random.vector(length * a.query_columns());
          const std::vector<float> k = random.vector(length * a.key_columns());
          const std::vector<float> v = random.vector(length * a.key_columns());
          std::vector<float> y(q.size(), 99.0f);
          AttentionMemory memory;
          attend(a, window > 0, q.data(), k.data(), v.data(), {}, {}, 0, length, memory, y.data());
          const std::vector<double> expected = attended(a, window > 0, q, k, v, length);
          double largest = 0;
          for (size_t i = 0; i < y.size(); ++i) largest = std::max(largest, std::fabs(y[i] - expected[i]));
          CHECK_MESSAGE(largest < 2e-5, length, " tokens, ", heads, "/", kv_heads, " heads, window ", window);
          // One token after another, from the keys and values of those before: the same bits.
          for (size_t past = length > 3 ? length - 3 : 0; past < length; ++past) {
            std::vector<float> one(a.query_columns(), 99.0f);
            attend(a, window > 0, q.data() + past * a.query_columns(), k.data(), v.data(), {}, {}, past, past + 1,
                   memory, one.data());
            CHECK(std::equal(one.begin(), one.end(), y.begin() + static_cast<ptrdiff_t>(past * a.query_columns())));
          }
        }
}

TEST_CASE("the loss of the next token, for any tiles of the vocabulary") {
  constexpr size_t kVocabulary = 50, kRows = 6;
  std::vector<float> logits = RandomValues(4).vector(kRows * kVocabulary);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = logits[i] * 20 + (i % 7 == 0 ? 200.0f : 0.0f);
  std::vector<int32_t> targets = {0, 49, 17, 30, 7, -1};
  for (const size_t width : {50, 49, 16, 7, 1}) {
    TokenLoss loss(targets);
    for (size_t first = 0; first < kVocabulary; first += width) {
      const size_t here = std::min(width, kVocabulary - first);
      std::vector<float> tile(kRows * here);
      for (size_t row = 0; row < kRows; ++row)
        std::copy_n(logits.data() + row * kVocabulary + first, here, tile.data() + row * here);
      loss.add(std::span(tile).first(2 * here), here, 0, static_cast<uint32_t>(first));
      loss.add(std::span(tile).subspan(2 * here), here, 2, static_cast<uint32_t>(first));
    }
    for (size_t row = 0; row + 1 < kRows; ++row) {
      const float* line = logits.data() + row * kVocabulary;
      const double largest = *std::max_element(line, line + kVocabulary);
      double sum = 0;
      for (size_t i = 0; i < kVocabulary; ++i) sum += std::exp(line[i] - largest);
      const double expected = std::log(sum) + largest - line[targets[row]];
      CHECK_MESSAGE(std::fabs(loss.loss(row) - expected) < 1e-6 * (1 + expected), "width ", width, ", row ", row);
    }
  }
}

TEST_CASE("the divergence of two predictions does not depend on the tiles of the vocabulary") {
  constexpr size_t kVocabulary = 50, kRows = 4;
  std::vector<float> reference = RandomValues(4).vector(kRows * kVocabulary), logits = reference;
  const std::vector<float> change = RandomValues(5).vector(kRows * kVocabulary);
  for (size_t i = 0; i < logits.size(); ++i) {
    reference[i] = reference[i] * 20 + (i % 7 == 0 ? 200.0f : 0.0f);
    logits[i] = reference[i] + change[i] * static_cast<float>(i / kVocabulary);  // none in the first row
  }
  const std::vector<int32_t> targets = {0, 49, 17, 30};
  for (const size_t width : {50, 49, 16, 7, 1}) {
    LogitDivergence divergence(targets);
    for (size_t first = 0; first < kVocabulary; first += width) {
      const size_t here = std::min(width, kVocabulary - first);
      std::vector<float> tiles[2] = {std::vector<float>(kRows * here), std::vector<float>(kRows * here)};
      for (size_t row = 0; row < kRows; ++row) {
        std::copy_n(reference.data() + row * kVocabulary + first, here, tiles[0].data() + row * here);
        std::copy_n(logits.data() + row * kVocabulary + first, here, tiles[1].data() + row * here);
      }
      divergence.add(tiles[0], tiles[1], here, 0, static_cast<uint32_t>(first));
    }
    for (size_t row = 0; row < kRows; ++row) {
      const auto log_softmax = [&](const std::vector<float>& all) {
        const float* line = all.data() + row * kVocabulary;
        const double largest = *std::max_element(line, line + kVocabulary);
        double sum = 0;
        for (size_t i = 0; i < kVocabulary; ++i) sum += std::exp(line[i] - largest);
        std::vector<double> out(kVocabulary);
        for (size_t i = 0; i < kVocabulary; ++i) out[i] = line[i] - largest - std::log(sum);
        return out;
      };
      const std::vector<double> p = log_softmax(reference), q = log_softmax(logits);
      double kld = 0;
      for (size_t i = 0; i < kVocabulary; ++i) kld += std::exp(p[i]) * (p[i] - q[i]);
      const auto target = static_cast<size_t>(targets[row]);
      const PositionDivergence found = divergence.at(row);
      CHECK_MESSAGE(std::fabs(found.kld - kld) < 1e-6 * (1 + kld), "width ", width, ", row ", row);
      CHECK(std::fabs(found.loss + q[target]) < 1e-6 * (1 - q[target]));
      CHECK(std::fabs(found.reference_loss + p[target]) < 1e-6 * (1 - p[target]));
      CHECK(found.is_same_top ==
            (std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin()));
      if (row == 0) CHECK(found.kld == 0);
    }
  }
}

TEST_CASE("a pass that only feeds a sink does not change the activations") {
  Architecture a = attention_of(2, 1, 4, 0, 0);
  a.vocabulary = 10;
  a.hidden = 8;
  a.intermediate = 12;
  a.layers = 1;
  a.max_positions = 16;
  a.is_sliding = List<bool>(1);
  a.is_rotated = List<bool>{true};
  a.names = ModelNames("input_norm=n1 q=q k=k v=v o=o feed_forward_norm=n2 gate=g up=u down=d final_norm=norm");
  RandomValues random(5);
  ForwardPass pass(a, InputPrecision::float32);
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6};
  REQUIRE(bool(pass.set_tokens(tokens, std::vector<uint32_t>{3, 3})));
  const std::vector<float> table = random.vector(80);
  pass.run_embedding(0, table, 0);
  for (const BlockWeight& weight : block_weights(a))
    pass.block()[weight.slot] = random.vector(std::max<size_t>(weight.rows, 1) * weight.columns);
  const auto logits = [&] {
    const std::span<float> found = pass.logits(0, table, 0);
    return std::vector<float>(found.begin(), found.end());
  };
  struct Count final : InputSink {
    size_t values[kBlockInputs] = {};
    Status accept(uint32_t, LinearInput input, std::span<const float> x, size_t) override {
      values[static_cast<size_t>(input)] += x.size();
      return {};
    }
  } seen;
  const std::vector<float> before = logits();
  CHECK(bool(pass.run_block(0, 0, &seen, false)));
  CHECK(logits() == before);
  CHECK(seen.values[static_cast<size_t>(LinearInput::attention)] == tokens.size() * 8);
  CHECK(seen.values[static_cast<size_t>(LinearInput::feed_forward_output)] == tokens.size() * 12);
  CHECK(bool(pass.run_block(0, 0, nullptr)));
  CHECK(logits() != before);
}

TEST_CASE("inputs are quantized per token to 255 codes") {
  std::vector<float> x = {0.1f, -12.7f, 3.26f, 0.04f, 0, 0, 0, 0};
  quantize_inputs(InputPrecision::int8_per_token, x, 4);
  CHECK(x[0] == doctest::Approx(0.1f));
  CHECK(x[1] == doctest::Approx(-12.7f));
  CHECK(x[2] == doctest::Approx(3.3f));
  CHECK(x[3] == 0);
  CHECK(x[5] == 0);
  std::vector<float> broken = {0.3f, std::numeric_limits<float>::quiet_NaN()};
  for (const InputPrecision precision : {InputPrecision::int8_per_token, InputPrecision::q8_0, InputPrecision::q8_k}) {
    quantize_inputs(precision, broken, 2);
    CHECK(std::isnan(broken[1]));
  }
  std::vector<float> same = {0.1f, 0.25f};
  quantize_inputs(InputPrecision::float32, same, 2);
  CHECK(same[1] == 0.25f);
}

TEST_CASE("inputs are rounded as llama.cpp rounds them for the type of the weight") {
  using enum InputPrecision;
  CHECK(llama_cpp_precision(StorageDtype::F32) == float32);
  CHECK(llama_cpp_precision(StorageDtype::F16) == float16);
  CHECK(llama_cpp_precision(StorageDtype::BF16) == bfloat16);
  CHECK(llama_cpp_precision(StorageDtype::ggml_q4_0) == q8_0);
  CHECK(llama_cpp_precision(StorageDtype::ggml_q5_1) == q8_0);
  CHECK(llama_cpp_precision(StorageDtype::ggml_iq4_nl) == q8_0);
  CHECK(llama_cpp_precision(StorageDtype::ggml_q6_k) == q8_k);
  CHECK(llama_cpp_precision(StorageDtype::ggml_iq4_xs) == q8_k);
  CHECK(llama_cpp_precision(StorageDtype::I32) == float32);
  const std::vector<float> x = RandomValues(6).vector(512);
  for (const InputPrecision precision : {q8_0, q8_k}) {
    const size_t block = precision == q8_0 ? 32 : 256;
    std::vector<float> found = x;
    quantize_inputs(precision, found, 256);
    for (size_t i = 0; i < x.size(); ++i) {
      float largest = 0;
      for (size_t j = i / block * block; j < i / block * block + block; ++j)
        largest = std::max(largest, std::fabs(x[j]));
      const float exact = largest / 127.0f, scale = precision == q8_0 ? from_half(half_of(exact)) : exact;
      CHECK(found[i] == std::nearbyint(x[i] * (127.0f / largest)) * scale);
    }
  }
  std::vector<float> halves = {1 + 0x1p-11f, 1 + 0x1p-9f, -0.1f};
  std::vector<float> wide = halves;
  quantize_inputs(float16, halves, 3);
  CHECK(halves[0] == 1);  // a tie, to even
  CHECK(halves[1] == 1 + 0x1p-9f);
  CHECK(halves[2] == from_half(half_of(-0.1f)));
  quantize_inputs(bfloat16, wide, 3);
  CHECK(wide[1] == 1);
  CHECK(wide[2] == -0.10009765625f);
}

}  // namespace
}  // namespace wasmquant::model
