// A range estimator and a number of bits become a spec; each estimator has parameters of its own (spec 1.1).
#include "tools/aihwkit/aihwkit_tensor.h"

#include "config/spec/vocabulary.h"
#include "core/message.h"
#include "tools/aihwkit/aihwkit_grid.h"

namespace wasmquant::config {
namespace {

constexpr Key kPercentileKeys[] = {{"percentile", kNumber}};
constexpr Key kMomentumKeys[] = {{"momentum", kNumber, nullptr, "0.9"}};
constexpr Key kSearchKeys[] = {
    {"range_opt_method", kString, nullptr, "\"golden_section\"", kOptMethods},
    {"num_candidates", kInteger, nullptr, "100"},
    {"range_margin", kNumber, nullptr, "0.5"},
};
constexpr Keys kParameters[] = {kPercentileKeys, kSearchKeys, kMomentumKeys, kSearchKeys, kSearchKeys};

// By estimator: per tensor, per channel.
constexpr ObserverId kRowObservers[][2] = {
    {ObserverId::PerTensorCurrentMinMaxObserver, ObserverId::PerChannelCurrentMinMaxObserver},
    {ObserverId::PerTensorMinMaxObserver, ObserverId::PerChannelMinMaxObserver},
    {ObserverId::PerTensorRunningMinMaxObserver, ObserverId::PerChannelRunningMinMaxObserver},
    {ObserverId::PerTensorRangeMSEObserver, ObserverId::PerChannelRangeMSEObserver},
    {ObserverId::PerTensorRangeCrossEntropyObserver, ObserverId::PerChannelRangeCrossEntropyObserver},
};

void out_of_range(DiagnosticList& out, const std::string& where, const char* allowed) {
  out.error_in("value-invalid", where, nullptr, nullptr, "expected {}", allowed);
}

void read_parameters(const json::Value& value, const std::string& where, ObserverOptions& options,
                     DiagnosticList& out) {
  if (const json::Value* percentile = value.find("percentile")) {
    options.tail_percent = percentile->as_number();
    if (!(options.tail_percent >= 0 && options.tail_percent <= 100))
      out_of_range(out, pointer_to(where, "percentile"), "a number from 0 to 100");
  }
  if (const json::Value* momentum = value.find("momentum")) {
    options.momentum = momentum->as_number();
    if (!(options.momentum >= 0 && options.momentum <= 1))
      out_of_range(out, pointer_to(where, "momentum"), "a number from 0 to 1");
  }
  if (const json::Value* method = value.find("range_opt_method")) {
    options.search = static_cast<SearchMethod>(index_in(method->as_string(), kOptMethods));
    const int64_t candidates = value["num_candidates"].as_integer();
    options.range_margin = value["range_margin"].as_number();
    if (candidates < 1 || candidates > 100'000)
      out_of_range(out, pointer_to(where, "num_candidates"), "a number from 1 to 100000");
    else
      options.candidates = static_cast<uint32_t>(candidates);
    if (!(options.range_margin >= 0 && options.range_margin <= 1e30))
      out_of_range(out, pointer_to(where, "range_margin"), "a number that is not negative");
  }
}

// A channel of a matrix has no second axis for the softmax.
void check_channel_loss(const ObserverOptions& options, const std::string& where, bool is_convolution,
                        DiagnosticList& out) {
  const bool golden = options.search == SearchMethod::sections;
  if (golden && !is_convolution)
    out.error_in(
        "value-invalid", where, "per_channel",
        "set per_channel to false, or use MSE; an entry for Conv2d or QuantConv2d may have it",
        "cross_entropy with golden_section has a range for each channel only of a Conv2d, here and in aihwkit");
  else if (!golden)
    out.warning_in("per-channel-ignored", where, "per_channel", "all channels get one range",
                   "cross_entropy with grid has one loss for the whole tensor");
}

}  // namespace

std::span<const Keys> aihwkit_parameters() noexcept { return kParameters; }

Stages read_aihwkit_tensor(json::Value& value, const std::string& where, bool is_weight, bool is_convolution,
                           DiagnosticList& out) {
  const size_t errors_before = out.errors();
  QuantizationSpec spec;
  const auto row = static_cast<size_t>(index_in(value["range_estimator"].as_string(), kRangeEstimators));
  const auto estimator = static_cast<RangeEstimator>(row);
  json::Value& parameters = value.member("range_estimator_params");
  const std::string at = pointer_to(where, "range_estimator_params");
  if (estimator == RangeEstimator::allminmax) {
    if (!parameters.is_null())
      out.error_in("value-invalid", at, nullptr, "remove the key", "allminmax has no parameters");
  } else {
    if (parameters.is_null()) parameters = json::Object{};
    parameters = apply_defaults(parameters, at, kParameters[row], out);
    read_parameters(parameters, at, spec.observer_options, out);
  }

  const int64_t bits = value["n_bits"].as_integer();
  if (bits <= 0) return {};
  spec.symmetric = value["symmetric"].as_bool();
  const bool per_channel = is_weight && value["per_channel"].as_bool();
  if (bits == 1 && spec.symmetric) {
    out.error_in("value-invalid", where, "n_bits", "set symmetric to false, or use 2 bits",
                 "one symmetric bit has no positive code to scale to");
  } else if (const auto dtype = integer_dtype(bits, spec.symmetric, pointer_to(where, "n_bits"), out)) {
    spec.dtype = *dtype;
  }
  if (estimator == RangeEstimator::cross_entropy && per_channel)
    check_channel_loss(spec.observer_options, where, is_convolution, out);
  set_rows(spec, per_channel);
  spec.observer = kRowObservers[row][per_channel];
  spec.grid = aihwkit_grid();
  if (out.errors() != errors_before) return {};
  return Stages{spec};
}

}  // namespace wasmquant::config
