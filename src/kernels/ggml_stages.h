// The hot steps of quantizing to GGUF block types. Stages work per element; a type's recipe (ggml_blocks.cpp,
// ggml_super_blocks.cpp) combines them per block. Each has an xsimd body and a scalar oracle of the same name in
// namespace reference, equal bit for bit.
//
// Searches process eight sub-blocks in parallel, one per lane, so that every sum is formed in ggml's order: element by
// element. All inputs are finite. Formulas: ggml-quants.c, in the function named at each search.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/error_lanes.h"

namespace wasmquant::kernels {

/// Elements of a run in block_extents, and sub-blocks per search.
inline constexpr size_t kExtentRun = 32;
inline constexpr size_t kSearchWidth = 8;

/// Smallest and largest of each run of kExtentRun elements. The sign of a zero is open.
void block_extents(const float* x, size_t runs, float* low, float* high) noexcept;

/// How positions become codes.
///   nearest           nearest even, clamped to low..high
///   wrapped, divided  likewise, but positions beyond 2^22 wrap as in ggml's nearest_int: the low 23 bits of
///                     position + 1.5 * 2^23, minus 2^22
///   away              nearest, halves away from zero; |position| <= 127
/// then plus offset, as one byte. position = (x + add) * factor; for divided, (x + add) / factor. NaN counts as low.
enum class Coding : uint8_t { nearest, wrapped, divided, away };
/// Code limits and the offset added to codes.
struct CodeRange {
  float low = 0, high = 0;
  int32_t offset = 0;
};
/// Element i has the parameters add[i / run], factor[i / run]. run is a power of two; count and run are multiples of
/// 32, or run is 16.
void block_codes(Coding coding, const float* x, size_t count, size_t run, const float* add, const float* factor,
                 const CodeRange& range, uint8_t* codes) noexcept;

/// How runs of kExtentRun elements become one-byte codes, and codes become values, as in dequantize_blocks.
///   is_rounded        code = x * factor, nearest, halves away from zero; |x * factor| <= 127
///                     value = code * scale
///   else              code = floor((x + add) * factor + bias), at most high; the sum is >= 0
///                     value = (code - center) * scale; with has_minimum code * scale + minimum
struct RunCoding {
  float bias, high, center;
  bool is_rounded, has_minimum;
};
/// One entry per run; add and minimum are used with has_minimum only.
struct RunParameters {
  const float *add, *factor, *scale, *minimum;
};
/// How the codes of a run are stored.
///   bytes    a byte each
///   nibbles  16 bytes: element i of the run in the low nibble of byte i, element i + 16 in the high one
///   fifths   4 bytes, bit i of which is bit 4 of element i, then the lower bits as nibbles
enum class RunPacking : uint8_t { bytes, nibbles, fifths };
/// Where codes go: those of run r start at bytes + r * stride.
struct RunBytes {
  uint8_t* bytes;
  size_t stride;
  RunPacking packing;
};
/// Codes, and the error of their values. At most kErrorBlock elements, one block of error_lanes.h. The sums are valid
/// if is_in_range(). Non-finite elements get arbitrary codes and push the sums out of range.
ErrorSums measured_codes(const float* x, size_t runs, const RunCoding& coding, const RunParameters& parameters,
                         const RunBytes& to) noexcept;

/// From extents to the parameters of measured_codes: scale = extent / levels, factor = 1 / scale, add = -low.
///   has_minimum  extent = high - low
///   levels > 0   extent = the larger of high and -low
///   levels < 0   extent = high > -low ? high : low
/// where -0 counts as +0. factor is zero where scale is zero or either is not finite; returns true in the latter case.
/// Arrays have room for kErrorBlock / kExtentRun numbers; those after `runs` are unspecified.
bool run_scales(const float* low, const float* high, size_t runs, float levels, bool has_minimum, float* scale,
                float* factor, float* add) noexcept;

/// The sixteen values of iq4_nl and iq4_xs.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// Codes of the values nearest to x[i] * factor[i / run], ties to the larger, NaN to the largest. count and run are
/// multiples of 32.
void iq4_codes(const float* x, size_t count, size_t run, const float* factor, uint8_t* codes) noexcept;

/// Twice the values of fp4's codes.
inline constexpr int8_t kFp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/// fp4 (e2m1) codes of x[i] * factor[i / 32], ties to the smaller magnitude, zero always +0. factor: powers of two.
void fp4_codes(const float* x, size_t count, const float* factor, uint8_t* codes) noexcept;

/// The weight of each element in a search.
///   magnitude      |x|
///   rms_magnitude  root mean square of the sub-block (of 32 elements) + |x|
///   square         x^2
///   given          importance
///   given_energy   importance * sqrt(energy + x^2)
enum class Weighting : uint8_t { magnitude, rms_magnitude, square, given, given_energy };

/// The elements of a search.
struct SearchInput {
  const float* x;  // kSearchWidth sub-blocks, one after the other
  size_t length;   // elements of a sub-block: 16 or 32
  Weighting weighting;
  const float* importance;  // of the same elements, for given and given_energy
  const float* energy;      // one per sub-block, for given_energy
};

/// Per sub-block: x ~ scale * code + minimum (affine) or scale * (code - levels) (symmetric).
/// The codes of the search come from block_codes with add and factor (wrapped after an unguarded affine search, nearest
/// otherwise); ggml keeps those codes where the stored scale is zero.
struct SearchResult {
  float scale[kSearchWidth], minimum[kSearchWidth];
  float factor[kSearchWidth], add[kSearchWidth];
  float weight[kSearchWidth];   // sum of weights
  bool is_empty[kSearchWidth];  // symmetric: no magnitude reaches 1e-15; scale is 0, all codes are 0
};

/// Codes 0..levels. Tries the scale of the range, then factors (first + step * i + levels) / range for i = 0..steps,
/// each followed by the best scale and minimum for its codes. (make_qkx2_quants; guarded: make_qkx3_quants)
struct AffineSearch {
  float levels, first, step;
  int32_t steps;
  bool absolute_error;  // weighted |error| instead of its square
  bool guarded;         // tries clamp positions beyond the range instead of wrapping
};
void search_affine(const SearchInput& in, const AffineSearch& search, SearchResult& out) noexcept;

/// Codes -levels..levels - 1. Tries factors -(levels + i / 10) / extreme for i = -9..9. (make_qx_quants, rmse_type 1)
void search_symmetric(const SearchInput& in, float levels, SearchResult& out) noexcept;

/// Codes -4..3, improved one at a time while the weighted correlation grows, at most five rounds; weights x^2,
/// sub-blocks of 16. codes: code + 4. (make_q3_quants)
void search_descent(const float* x, float* scale, uint8_t* codes) noexcept;

/// Scales for the iq4 values, sub-blocks of 32: factors (i - 127) / extreme for i = -7..7. (quantize_row_iq4_nl_impl)
void search_iq4(const SearchInput& in, float* scale) noexcept;

/// The stages as a table of functions, so that recipes run on the SIMD bodies or on the oracles.
struct Stages {
  decltype(&block_extents) extents;
  decltype(&block_codes) codes;
  decltype(&measured_codes) codes_measured;
  decltype(&run_scales) scales;
  decltype(&iq4_codes) codes_iq4;
  decltype(&fp4_codes) codes_fp4;
  decltype(&search_affine) affine;
  decltype(&search_symmetric) symmetric;
  decltype(&search_descent) descent;
  decltype(&search_iq4) iq4;
};

namespace reference {
void block_extents(const float* x, size_t runs, float* low, float* high) noexcept;
void block_codes(Coding coding, const float* x, size_t count, size_t run, const float* add, const float* factor,
                 const CodeRange& range, uint8_t* codes) noexcept;
ErrorSums measured_codes(const float* x, size_t runs, const RunCoding& coding, const RunParameters& parameters,
                         const RunBytes& to) noexcept;
bool run_scales(const float* low, const float* high, size_t runs, float levels, bool has_minimum, float* scale,
                float* factor, float* add) noexcept;
void iq4_codes(const float* x, size_t count, size_t run, const float* factor, uint8_t* codes) noexcept;
void fp4_codes(const float* x, size_t count, const float* factor, uint8_t* codes) noexcept;
void search_affine(const SearchInput& in, const AffineSearch& search, SearchResult& out) noexcept;
void search_symmetric(const SearchInput& in, float levels, SearchResult& out) noexcept;
void search_descent(const float* x, float* scale, uint8_t* codes) noexcept;
void search_iq4(const SearchInput& in, float* scale) noexcept;
}  // namespace reference

}  // namespace wasmquant::kernels
