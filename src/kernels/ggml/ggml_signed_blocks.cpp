// Blocks of iq2 and iq3: magnitudes are an entry of a codebook times a scale for 16 or 32 elements, 2 * code + 1 each.
// Several factors are tried; the one whose weighted correlation is best gives the scale, with which the elements are looked
// up again (quantize_row_iq2_xxs_impl and its siblings). The scales become 2 * level + 1 thirty-firsts of the largest.
#include <cmath>
#include <cstring>

#include "kernels/ggml/ggml_codebook_search.h"
#include "kernels/ggml/ggml_eights.h"
#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml/ggml_recipes.h"
#include "kernels/ggml/ggml_scales.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

struct SignedType {
  uint32_t run;         // elements of a scale
  bool is_even;         // an even number of signs: the element that matters least takes another if necessary
  float energy_factor;  // of the mean square in the weights
  int32_t tries;        // factors on either side of the middle
  float step;           // between them
  float empty_below;    // no magnitude in a run reaches it
  float refit;          // of d, for the loss in rounding scales
};
SignedType signed_type(GgmlType type) {
  switch (type) {
    case GgmlType::iq2_xxs:
      return {32, true, 1, 6, 0.1f, 1e-15f, 1};
    case GgmlType::iq2_xs:
      return {16, true, 1, 9, 0.1f, 1e-15f, 1};
    case GgmlType::iq2_s:
      return {16, false, 2, 9, 0.1f, 1e-8f, 0.9875f};
    case GgmlType::iq3_xxs:
      return {32, true, 2, 15, 0.2f, 1e-8f, 1.0125f};
    default:  // iq3_s
      return {32, false, 2, 9, 0.2f, 0x1p-149f, 1.033f};
  }
}

/// The elements of one scale.
struct SignedRun {
  uint32_t count;
  float x[32], weight[32], root[32];  // magnitudes, of which the parity of signs may make some negative
  uint8_t signs[4] = {};
  uint8_t codes[32] = {};
  float scale = 0;
  bool is_empty = true;
};

void take_signs(const float* x, bool is_even, SignedRun& run) {
  for (uint32_t k = 0; k < run.count; k += 8) {
    uint32_t signs = 0, least_at = 0;
    float least = 0;
    bool is_odd = false;
    for (uint32_t i = 0; i < 8; ++i) {
      const float v = x[k + i], cost = run.weight[k + i] * v * v;
      const bool is_negative = !(v >= 0);
      run.x[k + i] = is_negative ? -v : v;
      signs |= static_cast<uint32_t>(is_negative) << i;
      is_odd ^= is_negative;
      if (i == 0 || cost < least) {
        least = cost;
        least_at = i;
      }
    }
    if (is_even && is_odd) {
      run.x[k + least_at] = -run.x[k + least_at];
      signs ^= 1u << least_at;
    }
    run.signs[k / 8] = static_cast<uint8_t>(signs);
  }
}

/// Codes of the entry at a scale, for elements from `at`. Returns whether the nearest codes were one.
bool look_up(const CodebookSearch& search, const SignedRun& run, uint32_t at, float factor, float scale,
             uint8_t* codes) {
  const uint32_t length = search.book().length;
  const auto most = static_cast<int32_t>(search.book().base) - 1;
  for (uint32_t i = 0; i < length; ++i) {
    const int32_t code = nearest_int(0.5f * (factor * run.x[at + i] - 1));
    codes[i] = byte_of(code < 0 ? 0 : code < most ? code : most);
  }
  if (search.entry_of(codes) >= 0) return true;
  float least = 3.402823466e38f;
  uint32_t best = search.book().count;
  search.for_each_neighbour(codes, [&](uint32_t entry) {
    const uint8_t* const other = search.codes_of(entry);
    float distance = 0;
    for (uint32_t i = 0; i < length; ++i) {
      const float difference = scale * static_cast<float>(2 * other[i] + 1) - run.x[at + i];
      distance += run.root[at + i] * difference * difference;
    }
    if (!(distance < least)) return;
    least = distance;
    best = entry;
  });
  std::memcpy(codes, search.codes_of(best < search.book().count ? best : 0), length);  // 0: beyond float32
  return false;
}

struct Correlation {
  float sum_xq = 0, sum_q2 = 0;
  Correlation(const SignedRun& run, const uint8_t* codes) {
    for (uint32_t i = 0; i < run.count; ++i) {
      const float w = run.weight[i], q = static_cast<float>(2 * codes[i] + 1);
      sum_xq += w * run.x[i] * q;
      sum_q2 += w * q * q;
    }
  }
};

void fit_run(GgmlType type, const SignedType& row, const CodebookSearch& search, SignedRun& run) {
  const uint32_t length = search.book().length, groups = run.count / length;
  float most = run.x[0];
  for (uint32_t i = 1; i < run.count; ++i) most = most > run.x[i] ? most : run.x[i];
  if (most < row.empty_below) return;
  const auto top = static_cast<float>(2 * search.book().base - 1);
  float scale = most / top, best = 0;
  if (type == GgmlType::iq2_xxs) {
    uint8_t ignored[32];
    scale = fit_scales(run.x, run.weight, run.count, static_cast<int32_t>(search.book().base) + 1, ignored);
    most = scale * static_cast<float>(search.book().base);
    if (most <= 0) return;
  }
  uint32_t off = type == GgmlType::iq3_s ? 0xFF : 0;  // bit k: group k is not what is nearest
  for (int32_t k = -row.tries; k <= row.tries; ++k) {
    const float factor = (top + static_cast<float>(k) * row.step) / most;
    uint8_t codes[32];
    uint32_t off_now = 0;
    for (uint32_t g = 0; g < groups; ++g)
      off_now |= static_cast<uint32_t>(!look_up(search, run, g * length, factor, 1 / factor, codes + g * length)) << g;
    const Correlation found(run, codes);
    if (!(found.sum_q2 > 0 && found.sum_xq * found.sum_xq > best * found.sum_q2)) continue;
    scale = found.sum_xq / found.sum_q2;
    best = scale * found.sum_xq;
    std::memcpy(run.codes, codes, run.count);
    off = off_now;
  }
  const bool is_whole = type == GgmlType::iq2_xxs || (type == GgmlType::iq3_s && off != 0);
  if ((is_whole || off != 0) && scale > 0) {
    for (uint32_t g = 0; g < groups; ++g)
      if (is_whole || (off >> g & 1) != 0) look_up(search, run, g * length, 1 / scale, scale, run.codes + g * length);
    const Correlation found(run, run.codes);
    if (found.sum_q2 > 0) scale = found.sum_xq / found.sum_q2;
  }
  run.is_empty = false;
  run.scale = std::fabs(scale);
  for (uint8_t& signs : run.signs) signs = static_cast<uint8_t>(scale < 0 ? ~signs : signs);
}

}  // namespace

void store_signed_block(GgmlType type, const float* x, const float* importance, uint8_t* out) noexcept {
  const SignedType row = signed_type(type);
  const CodebookSearch& search = search_of(type);
  const uint32_t length = search.book().length;
  std::memset(out, 0, info_of(type).block_bytes);
  float energy = 0, scales[16], largest = 0;
  for (size_t i = 0; i < kSuperBlock; ++i) energy += x[i] * x[i];
  energy = row.energy_factor * energy / kSuperBlock;
  for (uint32_t at = 0; at < kSuperBlock; at += row.run) {
    SignedRun run;
    run.count = row.run;
    for (uint32_t i = 0; i < row.run; ++i) {
      const float square = x[at + i] * x[at + i];
      const float root = std::sqrt(energy + square);
      run.weight[i] = importance                                             ? importance[at + i] * root
                      : type == GgmlType::iq2_s                              ? 0.25f * energy + square
                      : type == GgmlType::iq3_s || type == GgmlType::iq3_xxs ? square
                                                                             : root;  // which ggml refuses
      run.root[i] = std::sqrt(run.weight[i]);
    }
    take_signs(x + at, row.is_even, run);
    fit_run(type, row, search, run);
    scales[at / row.run] = run.scale;
    largest = largest > run.scale ? largest : run.scale;
    if (run.is_empty) continue;
    for (uint32_t k = 0; k < row.run; k += 8) {
      uint32_t entry[2] = {};
      for (uint32_t i = 0; i < 8; i += length)
        entry[i / length] = static_cast<uint32_t>(search.entry_of(run.codes + k + i));
      put_signed_eight(type, (at + k) / 8, {entry[0], entry[1], run.signs[k / 8]}, out);
    }
  }
  if (largest == 0) {
    if (row.is_even) std::memset(out, 0, info_of(type).block_bytes);  // iq2_s and iq3_s keep signs
    return;
  }
  const float d = largest / 31, inverse = 1 / d;
  store_u16(half_of(d * row.refit), out);
  for (uint32_t run = 0; run < kSuperBlock / row.run; ++run) {
    const int32_t level = nearest_int(0.5f * (inverse * scales[run] - 1));
    put_level(type, run, static_cast<uint32_t>(level < 0 ? 0 : level < 15 ? level : 15), out);
  }
}

}  // namespace wasmquant::kernels
