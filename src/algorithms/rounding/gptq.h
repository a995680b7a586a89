// GPTQ: columns are quantized one after another, and later columns compensate for the error of each.
//   q_i = QDQ(w_i),  e_i = (w_i - q_i) / U_ii,  w_j -= e_i U_ij for j > i        (U: error_feedback.h)
//   and with drift P, w_j += w_i P_ij                                              (gptaq.h)
// Source: E. Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2022;
// AMD Quark's choices of scales (spec 7.4).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/rounding/error_feedback.h"
#include "config/spec/spec.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Field names and defaults are Quark's. damp_percent and desc_act are used by error_feedback_of.
struct GptqOptions {
  uint32_t block_size = 128;   // columns whose errors reach the columns after them in one product; numbers change by
                               // rounding only
  double damp_percent = 0.01;  // of the mean of the Hessian's diagonal
  bool desc_act = true;        // columns by descending H_jj
  bool static_groups = true;   // scales of all groups from the weight as it was; false: from the weight as it is when
                               // the group's first column is reached
  bool act_group_aware =
      false;  // groups by their largest H_jj, columns by H_jj inside each, and scales from the weight as
              // it is when the group is reached; desc_act and static_groups then mean nothing
              // (gptqmodel's name and order)
};

/// weight [rows, columns] becomes its quantized values; `codes` gets one code per element in the same order,
/// code_bytes() each (two-byte codes at an even address). Returns the scales in internal order (granularity.h):
/// per_tensor one · per_channel [rows] · per_group [rows, groups]. Rows are independent unless the spec is per_tensor:
/// tiles of whole rows give the same result as the whole. `spec` has scales per tensor, per row or per group of
/// columns, and the observer of its qscheme; codes are those of the fake path. With static_groups a group is a run of
/// columns in the layer's order, else a run of positions in feedback.order (GPTQ's act-order): group_index(). With
/// act_group_aware, whose order must be one of whole groups, it is both. `given`,
/// in internal order, are precomputed scales (a search; Brevitas, whose scales are those of the weight before dead
/// columns became 0); they imply static_groups. `second_scale`: of scale_format e4m3, for the scales that are not given;
/// 0: that of the weight. Does not choose signs by data.
/// Errors: shape-mismatch, group-size-invalid, value-not-finite (names the element), spec-invalid (other axes),
/// argument-invalid (block_size 0).
Result<std::vector<QParams>> gptq(const ErrorFeedback& feedback, const QuantizationSpec& spec,
                                  const GptqOptions& options, uint64_t rows, std::span<float> weight,
                                  std::span<uint8_t> codes, std::span<const QParams> given = {},
                                  float second_scale = 0);

/// The group of each column if groups of `group_size` are runs of positions in `order`; empty if those are the runs of
/// columns in the layer's order.
std::vector<uint32_t> group_index(const std::vector<uint32_t>& order, uint64_t group_size);

}  // namespace wasmquant
