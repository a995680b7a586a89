// Blocks of iq1: elements are -1, 0 or 1, plus or minus 1/8, times a scale for 16 (iq1_m) or 32 of them. The two places that
// part the sorted elements into the three values are searched for exhaustively; then each eight become the nearest entry
// of the codebook (quantize_row_iq1_s_impl, quantize_row_iq1_m_impl).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/ggml/ggml_codebook_search.h"
#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml/ggml_recipes.h"
#include "kernels/ggml/ggml_scales.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

constexpr float kMost = 3.402823466e38f;
/// Values of codes 0, 1 and 2 with the offset added, and subtracted.
constexpr float kValues[2][3] = {{-0.875f, 0.125f, 1.125f}, {-1.125f, -0.125f, 0.875f}};

/// The elements of one scale.
struct TernaryRun {
  uint32_t count;  // 32, or 16, whose halves have offsets of their own
  const float *x, *weight;
  uint32_t order[32];  // of ascending elements
  uint8_t codes[32];
  uint32_t entry[4] = {};
  uint32_t minus = 0;  // bit 1: the offset of the first half is subtracted; bit 0: of the second
  float scale = 0;

  const float* values(uint32_t i, uint32_t signs) const {
    return kValues[count == 32 ? signs & 1 : i < 8 ? signs >> 1 : signs & 1];
  }
};

/// The parting of the best correlation, which is positive.
struct Parting {
  float best = -kMost, scale = 0;
  uint32_t first = 0, second = 0, minus = 0;
  bool is_found = false;

  void offer(float sum_xq, float sum_q2, uint32_t i, uint32_t j, uint32_t signs) {
    if (!(sum_q2 > 0 && sum_xq * sum_xq > best * sum_q2)) return;
    scale = sum_xq / sum_q2;
    best = scale * sum_xq;
    first = i;
    second = j;
    minus = signs;
    is_found = true;
  }
};

Parting part_whole(const TernaryRun& run) {
  Parting parting;
  const uint32_t n = run.count;
  float sum_x[33] = {}, sum_w[33] = {};
  for (uint32_t j = 0; j < n; ++j) {
    const uint32_t i = run.order[j];
    sum_x[j + 1] = sum_x[j] + run.weight[i] * run.x[i];
    sum_w[j + 1] = sum_w[j] + run.weight[i];
  }
  for (uint32_t i = 0; i <= n; ++i)
    for (uint32_t j = i; j <= n; ++j)
      for (uint32_t minus = 0; minus < 2; ++minus) {
        const float* const q = kValues[minus];
        parting.offer(
            sum_x[i] * q[0] + (sum_x[j] - sum_x[i]) * q[1] + (sum_x[n] - sum_x[j]) * q[2],
            sum_w[i] * q[0] * q[0] + (sum_w[j] - sum_w[i]) * q[1] * q[1] + (sum_w[n] - sum_w[j]) * q[2] * q[2], i, j,
            3 * minus);
      }
  return parting;
}

/// With values a step apart, a half's sum is S_n q_2 - S_i - S_j; likewise for squares, whose steps are below.
Parting part_halves(const TernaryRun& run) {
  constexpr float kSteps[2][2] = {{0.75f, -1.25f}, {1.25f, -0.75f}};
  constexpr uint32_t n = 16;
  Parting parting;
  float sum_x[2][n + 1] = {}, sum_w[2][n + 1] = {};
  for (uint32_t place = 0; place < n; ++place) {
    const uint32_t i = run.order[place];
    for (uint32_t half = 0; half < 2; ++half) {
      const bool is_in = i / 8 == half;
      sum_x[half][place + 1] = is_in ? sum_x[half][place] + run.weight[i] * run.x[i] : sum_x[half][place];
      sum_w[half][place + 1] = is_in ? sum_w[half][place] + run.weight[i] : sum_w[half][place];
    }
  }
  for (uint32_t i = 0; i <= n; ++i)
    for (uint32_t j = i; j <= n; ++j) {
      float xq[2][2], q2[2][2];  // half, offset
      for (uint32_t half = 0; half < 2; ++half)
        for (uint32_t minus = 0; minus < 2; ++minus) {
          const float top = kValues[minus][2], *const x = sum_x[half], *const w = sum_w[half];
          xq[half][minus] = x[n] * top - (x[i] + x[j]);
          q2[half][minus] = w[n] * top * top + w[i] * kSteps[minus][0] + w[j] * kSteps[minus][1];
        }
      for (uint32_t k = 0; k < 4; ++k)
        parting.offer(xq[0][k >> 1] + xq[1][k & 1], q2[0][k >> 1] + q2[1][k & 1], i, j, k);
    }
  return parting;
}

/// Entry of eight codes from `at`. Returns whether they are one.
bool look_up(const CodebookSearch& search, TernaryRun& run, uint32_t at) {
  const int32_t own = search.entry_of(run.codes + at);
  uint32_t best = own < 0 ? 0 : static_cast<uint32_t>(own);
  float least = kMost;
  if (own < 0)
    search.for_each_neighbour(run.codes + at, [&](uint32_t entry) {
      float distance = 0;
      for (uint32_t i = 0; i < 8; ++i) {
        const float q = run.values(at, run.minus)[search.codes_of(entry)[i]],
                    difference = run.scale * q - run.x[at + i];
        distance += run.weight[at + i] * difference * difference;
      }
      if (!(distance < least)) return;
      least = distance;
      best = entry;
    });
  run.entry[at / 8] = best;
  return own >= 0;
}

void fit_run(const CodebookSearch& search, float empty_below, TernaryRun& run) {
  float most = 0;
  for (uint32_t i = 0; i < run.count; ++i) most = std::max(most, std::fabs(run.x[i]));
  if (most < empty_below) return;
  for (uint32_t i = 0; i < run.count; ++i) {
    uint32_t place = i;
    for (; place > 0 && run.x[run.order[place - 1]] > run.x[i]; --place) run.order[place] = run.order[place - 1];
    run.order[place] = i;
  }
  const Parting parting = run.count == 32 ? part_whole(run) : part_halves(run);
  if (!parting.is_found) return;
  const bool is_flipped = parting.scale < 0;
  run.scale = std::fabs(parting.scale);
  run.minus = parting.minus ^ (is_flipped ? 3u : 0u);
  for (uint32_t place = 0; place < run.count; ++place) {
    const uint32_t code = place < parting.first ? 0 : place < parting.second ? 1 : 2;
    run.codes[run.order[place]] = static_cast<uint8_t>(is_flipped ? 2 - code : code);
  }
  bool are_entries = true;
  for (uint32_t at = 0; at < run.count; at += 8) are_entries &= look_up(search, run, at);
  if (are_entries) return;
  float sum_xq = 0, sum_q2 = 0;
  for (uint32_t i = 0; i < run.count; ++i) {
    const float q = run.values(i, run.minus)[search.codes_of(run.entry[i / 8])[i % 8]], weighted = run.weight[i] * q;
    sum_xq += weighted * run.x[i];
    sum_q2 += weighted * q;
  }
  if (sum_xq > 0 && sum_q2 > 0) run.scale = sum_xq / sum_q2;
}

uint32_t level_of(float inverse, float scale) {
  const int32_t level = nearest_int(0.5f * (inverse * scale - 1));
  return static_cast<uint32_t>(level < 0 ? 0 : level < 7 ? level : 7);
}

void store_whole(const TernaryRun* runs, float largest, uint8_t* out) {
  const float d = largest / 15, inverse = largest > 0 ? 1 / d : 0;
  store_u16(half_of(d * 1.125f), out);
  for (uint32_t r = 0; r < 8; ++r) {
    uint32_t word = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      out[2 + 4 * r + k] = static_cast<uint8_t>(runs[r].entry[k]);
      word |= runs[r].entry[k] >> 8 << (3 * k);
    }
    if (largest > 0) word |= level_of(inverse, runs[r].scale) << 12 | (runs[r].minus & 1) << 15;
    store_u16(static_cast<uint16_t>(word), out + 34 + 2 * r);
  }
}

/// Here d is fit to the levels.
void store_halves(const CodebookSearch& search, const TernaryRun* runs, float largest, uint8_t* out) {
  float d = largest / 15, sum_xq = 0, sum_q2 = 0;
  const float inverse = largest > 0 ? 1 / d : 0;
  uint32_t words[4] = {};
  for (uint32_t r = 0; r < 16; ++r) {
    const TernaryRun& run = runs[r];
    uint32_t nibbles = run.entry[0] >> 8 | run.entry[1] >> 8 << 4;
    if (largest > 0) nibbles |= (run.minus >> 1) << 3 | (run.minus & 1) << 7;
    out[2 * r] = static_cast<uint8_t>(run.entry[0]);
    out[2 * r + 1] = static_cast<uint8_t>(run.entry[1]);
    out[32 + r] = static_cast<uint8_t>(nibbles);
    const uint32_t level = largest > 0 ? level_of(inverse, run.scale) : 0;
    words[r / 4] |= level << (3 * (r % 4));
    for (uint32_t i = 0; i < 16; ++i) {
      const float value = run.values(i, run.minus)[search.codes_of(run.entry[i / 8])[i % 8]];
      const float q = value * static_cast<float>(2 * level + 1), weighted = run.weight[i] * q;
      sum_xq += weighted * run.x[i];
      sum_q2 += weighted * q;
    }
  }
  if (largest > 0 && sum_q2 > 0) d = sum_xq / sum_q2;
  const uint32_t half = half_of(d * 1.1125f);
  for (uint32_t i = 0; i < 4; ++i)
    store_u16(static_cast<uint16_t>(words[i] | (half >> (4 * i) & 15) << 12), out + 48 + 2 * i);
}

}  // namespace

void store_ternary_codebook_block(GgmlType type, const float* x, const float* importance, uint8_t* out) noexcept {
  const bool is_whole = type == GgmlType::iq1_s;
  const uint32_t length = is_whole ? 32 : 16;
  const CodebookSearch& search = search_of(type);
  float energy = 0, weight[kSuperBlock], largest = 0;
  for (size_t i = 0; i < kSuperBlock; ++i) energy += x[i] * x[i];
  energy = 2 * energy / kSuperBlock;
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const float square = x[i] * x[i];
    weight[i] = importance ? importance[i] * std::sqrt(energy + square)
                : is_whole ? std::sqrt(energy + square)  // ggml refuses: each column as important as the others
                           : square;
  }
  TernaryRun runs[16];
  for (uint32_t r = 0; r < kSuperBlock / length; ++r) {
    runs[r].count = length;
    runs[r].x = x + r * length;
    runs[r].weight = weight + r * length;
    fit_run(search, is_whole ? 1e-12f : 1e-7f, runs[r]);
    largest = std::max(largest, runs[r].scale);
  }
  if (is_whole) return store_whole(runs, largest, out);
  store_halves(search, runs, largest, out);
}

}  // namespace wasmquant::kernels
