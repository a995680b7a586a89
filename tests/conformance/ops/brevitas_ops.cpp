// Brevitas' tensors: weights, MX blocks, activations.
#include <cmath>

#include "brevitas_specs.h"
#include "golden_case.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "tools/brevitas/brevitas_grid.h"

namespace conformance {

using namespace wasmquant;

namespace {

// One per scale, or per element where groups have them. A group of zeros has Brevitas' 1e-10 / 2^emax, which is no e8m0
// scale; nothing is computed with it.
std::vector<double> scales_of(const Observation& found) {
  std::vector<double> scales;
  if (found.spec.qscheme == QScheme::per_group) {
    const int max_exponent = info_of(found.spec.dtype).is_integer ? 0 : float_format_of(found.spec).max_exponent();
    const float of_zeros = found.spec.grid.smallest_threshold / static_cast<float>(power_of_two(max_exponent));
    for_each_run(found.granularity, 0, found.granularity.element_count(), [&](const Run& run) {
      const bool is_zero =
          found.spec.scale_format == ScaleFormat::e8m0 && found.max[run.scale] == 0 && found.min[run.scale] == 0;
      scales.insert(scales.end(), run.count, is_zero ? of_zeros : found.qparams[run.scale].scale);
    });
    return scales;
  }
  for (const QParams& q : found.qparams) scales.push_back(q.scale);
  return scales;
}

std::vector<double> zero_points_of(const Observation& found) {
  std::vector<double> zero_points;
  for (const QParams& q : found.qparams) zero_points.push_back(q.zero_point);
  return zero_points;
}

// Everything to the bit, or a search's squared error.
Result<std::string> same_result(const DialectCase& c, const Observation& found, const Tensor& tensor) {
  const std::vector<float> x = tensor.as_floats(), y = fake_quantized(found, x, tensor.shape);
  if (c.compare() == "loss") {
    TRY(wanted, c.out("sq_err"));
    const double error = squared_error_of(x, y);
    if (error > wanted.values[0] * 1.001 + 1e-12)
      return "squared error " + std::to_string(error) + ", the reference has " + std::to_string(wanted.values[0]);
    return std::string();
  }
  AGREE(c.difference("scale", scales_of(found)));
  AGREE(c.difference("y", doubles(y)));
  if (!info_of(found.spec.dtype).is_integer) return std::string();
  AGREE(c.difference("zero_point", zero_points_of(found)));
  return c.difference("q", codes_of(found, x));
}

Result<std::string> same_activation(const DialectCase& c, const Observation& found, const Tensor& applied_to) {
  AGREE(c.difference("scale", scales_of(found), 1e-6));
  if (info_of(found.spec.dtype).is_integer) AGREE(c.difference("zero_point", zero_points_of(found)));
  const std::vector<float> y = fake_quantized(found, applied_to.as_floats(), applied_to.shape);
  return c.difference("y", doubles(y), 1e-5, 1e-6);
}

}  // namespace

Result<std::string> brevitas_weight(const DialectCase& c) {
  const json::Value* config = c.find("config");
  TRY(weight, brevitas_weight_of(c, config));
  TRY(x, c.tensor("input"));
  const json::Value* scale = config->find("scale");
  if (!scale || scale->is_null()) {
    TRY(found, observe_one(weight, x));
    return same_result(c, found, x);
  }
  Observation given;
  TRY(g, granularity_of(x.shape, weight.spec));
  given.granularity = g;
  given.spec = weight.spec;
  given.qparams = {QParams{static_cast<float>(scale->as_number()), 0}};
  return same_result(c, given, x);
}

Result<std::string> brevitas_blocks(const DialectCase& c) {
  const json::Value* config = c.find("config");
  TRY(weight, brevitas_weight_of(c, config));
  TRY(x, c.tensor("input"));
  QuantizationSpec& spec = weight.spec;
  const json::Value* size = config->find("group_size");
  if (!size || !size->is_integer()) return not_yet("blocks without a group_size");
  spec.qscheme = QScheme::per_group;
  spec.group_size = size->as_integer();
  spec.ch_axis = -1;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  if (info_of(spec.dtype).is_integer) {
    spec.grid = brevitas_mx_integer_grid();
  } else {
    spec.scale_format = ScaleFormat::e8m0;
    spec.scale_calculation_mode = ScaleCalculationMode::floor;
  }
  TRY(found, observe_one(weight, x));
  return same_result(c, found, x);
}

// Calibrated on all batches, then applied to the second.
Result<std::string> brevitas_activation(const DialectCase& c) {
  TRY(input, brevitas_input_of(c, c.find("config")));
  TRY(batches, c.tensor("input"));
  TRY(found, observe_all(input, batches));
  return same_activation(c, found, batch_of(batches, 1));
}

// Batch k, element i: (((7919 i) mod 60013) / 60013 - centre) * (k + 1), in float32.
Result<std::string> brevitas_formula(const DialectCase& c) {
  constexpr uint64_t kBatches = 3, kElements = 60000;
  TRY(input, brevitas_input_of(c, c.find("config")));
  const float centre = input.spec.symmetric ? 0.5f : 0.25f;
  Tensor batches{StorageDtype::F32, {kBatches, kElements}, {}};
  for (uint64_t batch = 0; batch < kBatches; ++batch)
    for (uint64_t i = 0; i < kElements; ++i) {
      const float place = std::fmod(static_cast<float>(i) * 7919.0f, 60013.0f) / 60013.0f;
      batches.values.push_back((place - centre) * static_cast<float>(batch + 1));
    }
  TRY(found, observe_all(input, batches));
  AGREE(c.difference("scale", scales_of(found), 2e-6));
  return c.difference("zero_point", zero_points_of(found));
}

}  // namespace conformance
