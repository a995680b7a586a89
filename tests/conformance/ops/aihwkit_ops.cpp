// aihwkit's estimators over one tensor (weight) or several batches (sequence).
#include <cmath>

#include "dialect_case.h"
#include "golden_case.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "tools/aihwkit/aihwkit_grid.h"

namespace conformance {

using namespace wasmquant;

namespace {

struct Estimator {
  QuantizationSpec spec;
  ObserverOptions options;
};

bool flag(const json::Value& object, std::string_view name) {
  const json::Value* value = object.find(name);
  return value && value->is_bool() && value->as_bool();
}

double number(const json::Value* object, std::string_view name, double otherwise) {
  const json::Value* value = object ? object->find(name) : nullptr;
  return value && value->is_number() ? value->as_number() : otherwise;
}

Result<Estimator> estimator_of(const DialectCase& c) {
  const json::Value* config = c.find("config");
  const json::Value* bits = config ? config->find("n_bits") : nullptr;
  const json::Value* name = config ? config->find("range_estimator") : nullptr;
  if (!bits || !name || !name->is_string()) return not_yet("a config without n_bits or range_estimator");
  Estimator e;
  e.spec.symmetric = flag(*config, "symmetric");
  TRY(dtype, integer_dtype(e.spec.symmetric, bits->as_integer()));
  e.spec.dtype = dtype;
  e.spec.grid = aihwkit_grid();
  const bool per_channel = flag(*config, "per_channel");
  e.spec.qscheme = per_channel ? QScheme::per_channel : QScheme::per_tensor;

  const json::Value* params = config->find("range_estimator_params");
  e.options.tail_percent = number(params, "percentile", 0);
  e.options.momentum = number(params, "momentum", 0.9);
  e.options.candidates = static_cast<uint32_t>(number(params, "num_candidates", 100));
  e.options.range_margin = number(params, "range_margin", 0.5);
  const json::Value* method = params ? params->find("range_opt_method") : nullptr;
  if (method && method->as_string() == "grid") e.options.search = SearchMethod::grid;
  constexpr std::pair<std::string_view, ObserverId> kObservers[][2] = {
      {{"current_minmax", ObserverId::PerTensorCurrentMinMaxObserver},
       {"", ObserverId::PerChannelCurrentMinMaxObserver}},
      {{"allminmax", ObserverId::PerTensorMinMaxObserver}, {"", ObserverId::PerChannelMinMaxObserver}},
      {{"running_minmax", ObserverId::PerTensorRunningMinMaxObserver},
       {"", ObserverId::PerChannelRunningMinMaxObserver}},
      {{"MSE", ObserverId::PerTensorRangeMSEObserver}, {"", ObserverId::PerChannelRangeMSEObserver}},
      {{"cross_entropy", ObserverId::PerTensorRangeCrossEntropyObserver},
       {"", ObserverId::PerChannelRangeCrossEntropyObserver}},
  };
  for (const auto& row : kObservers) {
    if (row[0].first != name->as_string()) continue;
    e.spec.observer = row[per_channel].second;
    return e;
  }
  return not_yet("range_estimator " + std::string(name->as_string()));
}

Result<std::string> same_signs(const DialectCase& c, const QuantizationSpec& spec) {
  const json::Value* is_signed = c.expected("signed");
  if (is_signed && is_signed->as_bool() != info_of(spec.dtype).is_signed) return std::string("signed differs");
  AGREE(c.difference("int_min", {static_cast<double>(quant_min_of(spec))}));
  return c.difference("int_max", {static_cast<double>(quant_max_of(spec))});
}

// Kullback-Leibler divergence of softmax(y) from softmax(x) over the second dimension, in float64: what of the cross
// entropy a range can change.
double divergence(const Tensor& x, const std::vector<float>& y) {
  const size_t classes = x.shape[1], outer = x.shape[0], inner = x.values.size() / (outer * classes);
  double sum = 0;
  for (size_t line = 0; line < outer * inner; ++line) {
    const size_t at = line / inner * classes * inner + line % inner;
    double total_x = 0, total_y = 0;
    for (size_t i = 0; i < classes; ++i) {
      total_x += std::exp(x.values[at + i * inner]);
      total_y += std::exp(double{y[at + i * inner]});
    }
    for (size_t i = 0; i < classes; ++i) {
      const double log_p = x.values[at + i * inner] - std::log(total_x);
      sum += std::exp(log_p) * (log_p - (y[at + i * inner] - std::log(total_y)));
    }
  }
  return sum;
}

// The result of a search: the loss is no greater than that of the reference's result, and symmetric ranges of the least
// squared error agree. Cross entropy is flat where it is least, so its ranges say little.
Result<std::string> as_good(const DialectCase& c, const Observation& found, const Tensor& x,
                            const std::vector<float>& y) {
  constexpr double kSlack = 1.002;
  if (c.find("config")->find("range_estimator")->as_string() == "cross_entropy") {
    TRY(wanted, c.out("y"));
    const double mine = divergence(x, y), theirs = divergence(x, wanted.as_floats());
    if (mine > theirs * kSlack + 1e-12)
      return "divergence " + std::to_string(mine) + ", the reference has " + std::to_string(theirs);
    return std::string();
  }
  TRY(wanted, c.out("sq_err"));
  const double error = squared_error_of(x.as_floats(), y);
  if (error > wanted.values[0] * kSlack + 1e-12)
    return "squared error " + std::to_string(error) + ", the reference has " + std::to_string(wanted.values[0]);
  if (!found.spec.symmetric) return std::string();
  double max = 0;
  for (const double v : x.values) max = std::max(max, std::fabs(v));
  AGREE(c.difference("range_min", doubles(found.min), 0, 1e-3 * max));
  return c.difference("range_max", doubles(found.max), 0, 1e-3 * max);
}

Result<std::string> same_result(const DialectCase& c, const Observation& found, const Tensor& tensor) {
  const std::vector<float> x = tensor.as_floats();
  AGREE(same_signs(c, found.spec));
  const std::vector<float> y = fake_quantized(found, x, tensor.shape);
  if (c.compare() == "loss") return as_good(c, found, tensor, y);
  AGREE(c.difference("range_min", doubles(found.min)));
  AGREE(c.difference("range_max", doubles(found.max)));
  std::vector<double> scales, zero_points;
  for (const QParams& q : found.qparams) {
    scales.push_back(q.scale);
    zero_points.push_back(q.zero_point);
  }
  AGREE(c.difference("scale", scales));
  AGREE(c.difference("zero_point", zero_points));
  AGREE(c.difference("q", codes_of(found, x)));
  return c.difference("y", doubles(y));
}

}  // namespace

Result<std::string> aihwkit_weight(const DialectCase& c) {
  TRY(e, estimator_of(c));
  if (code_bytes_of(e.spec) > 2) return not_yet("codes of more than 16 bits");
  TRY(x, c.tensor("input"));
  const auto observer = make_observer(e.spec, e.options);
  TRY_VOID(observe(*observer, 0, x.as_floats(), x.shape));
  TRY(found, observer->finish());
  return same_result(c, found, x);
}

// The ranges after each batch, the result after the last, and that stored ranges do not move.
Result<std::string> aihwkit_sequence(const DialectCase& c) {
  TRY(e, estimator_of(c));
  if (code_bytes_of(e.spec) > 2) return not_yet("codes of more than 16 bits");
  TRY(batches, c.tensor("input"));
  TRY(trace_min, c.tensor("trace_min"));
  TRY(trace_max, c.tensor("trace_max"));
  const auto observer = make_observer(e.spec, e.options);
  const auto count = static_cast<size_t>(batches.shape[0]);
  for (size_t i = 0; i < count; ++i) {
    const Tensor batch = batch_of(batches, i);
    TRY_VOID(observe(*observer, i, batch.as_floats(), batch.shape));
    TRY(found, observer->finish());
    if (c.compare() == "exact" &&
        (doubles(found.min) != batch_of(trace_min, i).values || doubles(found.max) != batch_of(trace_max, i).values))
      return "the range after batch " + std::to_string(i) + " differs";
    if (i + 1 < count) continue;
    AGREE(same_result(c, found, batch));
    if (c.compare() != "exact") break;
    std::vector<float> probe = batch_of(batches, 0).as_floats();
    for (float& v : probe) v *= 10;
    TRY(wanted, c.read(c.find("eval_probe")->find("y"), "eval_probe"));
    if (doubles(fake_quantized(found, probe, batch.shape)) != wanted.values)
      return std::string("the stored range has moved");
  }
  return std::string();
}

}  // namespace conformance
