// Min-max observers over several batches. A role's prefix names the qscheme: per_tensor_scale, per_channel_zero_point,
// ...
#include <algorithm>
#include <string>

#include "observers/batch_observer.h"
#include "ops.h"
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

Status observe(const GoldenCase& c, const QuantizationSpec& spec, const std::string& prefix, Outputs& outputs) {
  TRY(batches, batches_of(c));
  BatchObserver observer(spec);
  for (const Tensor& batch : batches) TRY_VOID(observer.observe(batch.as_floats(), batch.shape));
  if (!observer.granularity()) return not_yet("no batches");
  add_scales(outputs, prefix, *observer.granularity(), spec, observer.finish());
  return {};
}

}  // namespace

Result<Outputs> observe_batches(const GoldenCase& c) {
  if (const json::Value* name = c.param("observer"); name && !observer_named(name->as_string()))
    return not_yet("observer " + name->as_string());
  TRY_VOID(c.allow_params({"dtype", "symmetric", "is_dynamic", "observer", "qscheme", "ch_axis",
                           "ch_axis_for_per_channel", "group_size", "scale_type", "zero_point_type"}));
  TRY(spec, c.spec());
  Outputs outputs;
  if (c.expects("scale")) TRY_VOID(observe(c, spec, "", outputs));
  for (const auto& [prefix, qscheme] : {std::pair{"per_tensor_", QScheme::per_tensor},
                                        {"per_channel_", QScheme::per_channel},
                                        {"per_group_", QScheme::per_group}}) {
    if (!c.expects(std::string(prefix) + "scale")) continue;
    QuantizationSpec part = spec;
    part.qscheme = qscheme;
    part.observer = *min_max_observer_for(qscheme);
    if (const json::Value* axis = c.param("ch_axis_for_per_channel"); axis && qscheme == QScheme::per_channel)
      part.ch_axis = axis->as_integer();
    TRY_VOID(observe(c, part, prefix, outputs));
  }
  return outputs;
}

}  // namespace conformance
