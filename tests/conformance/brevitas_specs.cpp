#include "brevitas_specs.h"

#include "golden_case.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "tools/brevitas/brevitas_grid.h"

namespace conformance {

using namespace wasmquant;

namespace {

// Settings with the dialect's defaults.
class Settings {
 public:
  explicit Settings(const json::Value& config) : config_(config) {}
  bool is(std::string_view name, std::string_view word) const {
    const json::Value* value = config_.find(name);
    return value && value->is_string() && value->as_string() == word;
  }
  bool has(std::string_view name) const {
    const json::Value* value = config_.find(name);
    return value && !value->is_null();
  }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const json::Value* value = config_.find(name);
    return value && value->is_integer() ? value->as_integer() : otherwise;
  }
  bool symmetric() const {
    const json::Value* value = config_.find("symmetric");
    return !value || !value->is_bool() || value->as_bool();
  }
  std::string text(std::string_view name) const {
    const json::Value* value = config_.find(name);
    return value && value->is_string() ? std::string(value->as_string()) : "";
  }

 private:
  const json::Value& config_;
};

Status set_float_format(const Settings& settings, QuantizationSpec& spec) {
  const int64_t e = settings.integer("exponent_bit_width", 0), m = settings.integer("mantissa_bit_width", 0);
  const bool is_e4m3 = e == 4 && m == 3, is_e5m2 = e == 5 && m == 2;
  if (settings.is("float_family", "fnuz")) {
    if (!is_e4m3 && !is_e5m2) return not_yet("this fnuz format");
    spec.dtype = is_e4m3 ? Dtype::fp8_e4m3fnuz : Dtype::fp8_e5m2fnuz;
    return {};
  }
  if ((settings.is("float_family", "ocp") || settings.is("float_family", "mx")) && (is_e4m3 || is_e5m2)) {
    spec.dtype = is_e4m3 ? Dtype::fp8_e4m3 : Dtype::fp8_e5m2;
    return {};
  }
  if (e < 1 || e > 7 || m < 0 || m > 10) return not_yet("e" + std::to_string(e) + "m" + std::to_string(m));
  spec.dtype = Dtype::minifloat;
  spec.exponent_bits = static_cast<uint8_t>(e);
  spec.mantissa_bits = static_cast<uint8_t>(m);
  return {};
}

Result<BrevitasTensor> tensor_of(const DialectCase& c, const json::Value* config, bool is_weight) {
  if (!config) return not_yet("a case without settings");
  const Settings settings(*config);
  const bool is_old = c.source().find("0.10.") != std::string::npos;
  const bool is_int = settings.is("quant_type", "int_quant"), by_mse = settings.is("param_type", "mse");
  const bool per_channel = settings.is("qscheme", "per_channel");
  // 0.10.3 has no powers of two per channel.
  const bool pof2 = settings.is("scale_type", "pof2") && !(is_old && per_channel);
  BrevitasTensor t;
  t.spec.symmetric = settings.symmetric();
  t.spec.scale_type = pof2 ? ScaleType::pof2 : ScaleType::float_;
  t.spec.grid = brevitas_grid(is_weight, pof2, is_old ? BrevitasVersion::v0_10_3 : BrevitasVersion::v0_12_1);
  t.options.search = is_old ? SearchMethod::sections : SearchMethod::grid;
  if (is_int) {
    TRY(dtype, integer_dtype(t.spec.symmetric, settings.integer("bit_width", 8)));
    t.spec.dtype = dtype;
  } else {
    TRY_VOID(set_float_format(settings, t.spec));
  }
  if (per_channel) t.spec.qscheme = QScheme::per_channel;
  if (settings.text("layer").find("channel axis 1") != std::string::npos) t.spec.ch_axis = 1;
  if (is_weight)
    t.spec.observer =
        by_mse ? (per_channel ? ObserverId::PerChannelThresholdMSEObserver : ObserverId::PerTensorThresholdMSEObserver)
               : min_max_observer_for(t.spec.qscheme);
  else
    t.spec.observer = !is_int  ? ObserverId::PerTensorMeanMaxObserver
                      : by_mse ? ObserverId::PerTensorMeanThresholdMSEObserver
                               : ObserverId::PerTensorMeanPercentileObserver;
  return t;
}

}  // namespace

Result<BrevitasTensor> brevitas_weight_of(const DialectCase& c, const json::Value* config) {
  return tensor_of(c, config, true);
}

Result<BrevitasTensor> brevitas_input_of(const DialectCase& c, const json::Value* config) {
  return tensor_of(c, config, false);
}

Result<Observation> observe_all(const BrevitasTensor& tensor, const Tensor& batches) {
  const auto observer = make_observer(tensor.spec, tensor.options);
  for (size_t i = 0; i < batches.shape[0]; ++i) {
    const Tensor batch = batch_of(batches, i);
    TRY_VOID(observe(*observer, i, batch.as_floats(), batch.shape));
  }
  return observer->finish();
}

Result<Observation> observe_one(const BrevitasTensor& tensor, const Tensor& x) {
  const auto observer = make_observer(tensor.spec, tensor.options);
  TRY_VOID(observe(*observer, 0, x.as_floats(), x.shape));
  return observer->finish();
}

}  // namespace conformance
