// Observers over several batches. Without `observer`, min-max of every qscheme that a role's prefix names:
// per_tensor_scale, per_channel_zero_point, ...
#include <memory>
#include <string>

#include "observers/registry.h"
#include "ops/ops.h"
#include "scale_outputs.h"

namespace conformance {

using namespace wasmquant;

namespace {

// Inputs batch0, batch1, ... in the order of their numbers.
Result<std::vector<Tensor>> batches_of(const GoldenCase& c) {
  std::vector<Tensor> batches;
  for (size_t i = 0; i < c.inputs().size(); ++i) {
    TRY(batch, c.input("batch" + std::to_string(i)));
    batches.push_back(std::move(batch));
  }
  return batches;
}

Status see_all(Observer& observer, const std::vector<Tensor>& batches) {
  uint64_t number = 0;
  for (const Tensor& batch : batches) TRY_VOID(wasmquant::observe(observer, number++, batch.as_floats(), batch.shape));
  return {};
}

Produced values_of(const std::vector<float>& values) { return {{values.begin(), values.end()}, {}, {}}; }

Status observe(const GoldenCase& c, const QuantizationSpec& spec, const ObserverOptions& options,
               const std::string& prefix, Outputs& outputs) {
  TRY(batches, batches_of(c));
  if (batches.empty()) return not_yet("no batches");
  const std::unique_ptr<Observer> observer = make_observer(spec, options);
  TRY_VOID(see_all(*observer, batches));
  if (observer->passes() == 2) {
    TRY_VOID(observer->next_pass());
    TRY_VOID(see_all(*observer, batches));
  }
  TRY(found, observer->finish());
  add_scales(outputs, prefix, found.granularity, spec, found.qparams);
  outputs[prefix + "min"] = values_of(found.min);
  outputs[prefix + "max"] = values_of(found.max);
  outputs[prefix + "candidates"] = values_of(found.candidates);
  outputs[prefix + "errors"] = values_of(found.errors);
  return {};
}

Result<ObserverOptions> options_of(const GoldenCase& c) {
  ObserverOptions options;
  if (c.param("bins")) {
    TRY(bins, c.number("bins"));
    options.bins = static_cast<uint32_t>(bins);
  }
  if (c.param("percentile")) {
    TRY(percentile, c.number("percentile"));
    options.percentile = percentile;
  }
  if (c.param("first_candidate")) {
    TRY(first, c.number("first_candidate"));
    options.first_candidate = static_cast<int64_t>(first);
  }
  if (c.param("qparams_called")) {
    TRY(called, c.word("qparams_called"));
    if (called == "once, after the last batch")
      options.votes = Votes::last_batch;
    else if (called != "after every batch")
      return not_yet("qparams_called \"" + called + "\"");
  }
  return options;
}

// A first candidate is the sign of the form that Quark has, which the library has under a name of its own.
Result<ObserverId> observer_of(const GoldenCase& c) {
  TRY(name, c.word("observer"));
  const std::optional<ObserverId> observer = observer_named(name);
  if (!observer) return not_yet("observer " + name);
  if (info_of(*observer).method == ObserverMethod::mse && c.param("first_candidate"))
    return ObserverId::PerTensorMSELastBinsObserver;
  return *observer;
}

}  // namespace

Result<Outputs> observe_batches(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype", "symmetric", "is_dynamic", "observer", "qscheme", "ch_axis",
                           "ch_axis_for_per_channel", "group_size", "scale_type", "zero_point_type", "bins",
                           "percentile", "extension", "first_candidate", "qparams_called"}));
  TRY(spec, c.spec());
  TRY(options, options_of(c));
  Outputs outputs;
  if (c.param("observer")) {
    TRY(observer, observer_of(c));
    spec.observer = observer;
    spec.qscheme = info_of(observer).qscheme;
    TRY_VOID(observe(c, spec, options, "", outputs));
    return outputs;
  }
  if (c.expects("scale")) TRY_VOID(observe(c, spec, options, "", outputs));
  for (const auto& [prefix, qscheme] : {std::pair{"per_tensor_", QScheme::per_tensor},
                                        {"per_channel_", QScheme::per_channel},
                                        {"per_group_", QScheme::per_group}}) {
    if (!c.expects(std::string(prefix) + "scale")) continue;
    QuantizationSpec part = spec;
    part.qscheme = qscheme;
    part.observer = min_max_observer_for(qscheme);
    if (const json::Value* axis = c.param("ch_axis_for_per_channel"); axis && qscheme == QScheme::per_channel)
      part.ch_axis = axis->as_integer();
    TRY_VOID(observe(c, part, options, prefix, outputs));
  }
  return outputs;
}

}  // namespace conformance
