// A BrevitasTensorConfig becomes a spec (spec 2.2, 2.3); its numbers follow from few choices (spec 2.4 to 2.7).
#include "config/dialects/dialects.h"
#include "core/message.h"
#include "tools/brevitas/brevitas.h"

namespace wasmquant::config {
namespace {

// Widest exponent whose largest value is finite in float32, and widest supported mantissa.
constexpr int64_t kMaxExponentBits = 7, kMaxMantissaBits = 10;

void unsupported(DiagnosticList& out, const std::string& where, const char* key, const std::string& message,
                 const char* hint) {
  out.error("combination-unsupported", pointer_to(where, key), message, hint);
}

void read_integer(const json::Value& value, const std::string& where, QuantizationSpec& spec, DiagnosticList& out) {
  for (const char* key : {"exponent_bit_width", "mantissa_bit_width"})
    if (!value[key].is_null()) out.warning_in("key-ignored", where, key, nullptr, "int_quant has no such width");
  const std::string at = pointer_to(where, "bit_width");
  const int64_t bits = value["bit_width"].as_integer();
  if (bits < 2) {
    out.error_in("value-invalid", at, nullptr, "use 2 to 16 bits", "{} bits are too few for a narrow range", bits);
  } else if (const auto dtype = integer_dtype(bits, spec.symmetric, at, out)) {
    spec.dtype = *dtype;
  }
}

void read_float(const json::Value& value, const std::string& where, BrevitasVersion version, QuantizationSpec& spec,
                DiagnosticList& out) {
  const bool is_old = version == BrevitasVersion::v0_10_3;
  const json::Value &exponent = value["exponent_bit_width"], &mantissa = value["mantissa_bit_width"];
  if (exponent.is_null() || mantissa.is_null()) {
    out.error_in("key-missing", where, nullptr, "4 and 3 for fp8 e4m3, with bit_width 8",
                 "float_quant needs exponent_bit_width and mantissa_bit_width");
    return;
  }
  const int64_t e = exponent.as_integer(), m = mantissa.as_integer(), bits = value["bit_width"].as_integer();
  if (e < 1 || e > kMaxExponentBits) {
    out.error_in("value-invalid", where, "exponent_bit_width", "1 to 7; with 8 the largest value would not fit float32",
                 "{} exponent bits", e);
  } else if (m < (is_old ? 1 : 0) || m > kMaxMantissaBits) {
    out.error_in("value-invalid", where, "mantissa_bit_width", is_old ? "1 to 10" : "0 to 10", "{} mantissa bits", m);
  } else if (bits != 1 + e + m) {
    out.error_in("value-invalid", where, "bit_width", "bit_width is 8 when it is not given",
                 "bit_width is {}, a sign, {} and {} bits are {}", bits, e, m, 1 + e + m);
  }
  spec.dtype = Dtype::minifloat;
  spec.exponent_bits = static_cast<uint8_t>(e);
  spec.mantissa_bits = static_cast<uint8_t>(m);
}

}  // namespace

Stages read_brevitas_tensor(const json::Value& value, const std::string& where, BrevitasUse use,
                            BrevitasVersion version, DiagnosticList& out) {
  if (value.is_null()) return {};
  const size_t errors_before = out.errors();
  QuantizationSpec spec;
  spec.symmetric = value["symmetric"].as_bool();
  const bool is_float = value["quant_type"].as_string() == "float_quant";
  const std::string& scale = value["scale_type"].as_string();
  const std::string& qscheme = value["qscheme"].as_string();
  BrevitasChoice choice{use == BrevitasUse::weight, scale == "pof2", value["param_type"].as_string() == "mse", version};

  if (choice.pof2 ? is_float : scale != "float")
    unsupported(out, where, "scale_type",
                text_of("{} scales are not supported by {}", scale, value["quant_type"].as_string()),
                is_float ? "float_quant has float scales" : "int_quant has float or pof2 scales");
  if (!spec.symmetric && is_float)
    unsupported(out, where, "symmetric", "float_quant is always symmetric", "leave the key out");
  if (!spec.symmetric && choice.pof2 && (choice.is_weight || choice.mse))
    unsupported(out, where, "symmetric",
                text_of("there is no asymmetric {} with pof2 scales{}", choice.is_weight ? "weights" : "activations",
                        choice.is_weight ? "" : " and param_type mse"),
                "set symmetric to true, or scale_type to float");
  bool per_channel = qscheme == "per_channel";
  if (qscheme == "per_group" || qscheme == "per_block" || (per_channel && use == BrevitasUse::output)) {
    unsupported(out, where, "qscheme", text_of("Brevitas has no {} here", qscheme),
                use == BrevitasUse::weight ? "use per_tensor or per_channel" : "use per_tensor");
  } else if (per_channel && use == BrevitasUse::input) {
    out.warning_in("key-ignored", where, "qscheme", "leave the key out", "inputs are always per_tensor");
    per_channel = false;
  }
  set_rows(spec, per_channel);
  if (is_float)
    read_float(value, where, version, spec, out);
  else
    read_integer(value, where, spec, out);
  if (choice.mse && is_float && !choice.is_weight) choice.mse = false;  // upstream: the same as stats
  set_brevitas_numbers(spec, choice);
  if (out.errors() != errors_before) return {};
  return Stages{spec};
}

void set_brevitas_numbers(QuantizationSpec& spec, const BrevitasChoice& choice) noexcept {
  const bool is_integer = info_of(spec.dtype).is_integer, per_channel = spec.qscheme == QScheme::per_channel;
  spec.grid = brevitas_grid(choice.is_weight, choice.pof2, choice.version);
  spec.scale_type = choice.pof2 ? ScaleType::pof2 : ScaleType::float_;
  spec.observer_options.search = choice.version == BrevitasVersion::v0_10_3   ? SearchMethod::sections
                                 : choice.version == BrevitasVersion::v0_12_1 ? SearchMethod::grid
                                                                              : SearchMethod::interval;
  if (!choice.is_weight)
    spec.observer = !is_integer  ? ObserverId::PerTensorMeanMaxObserver
                    : choice.mse ? ObserverId::PerTensorMeanThresholdMSEObserver
                                 : ObserverId::PerTensorMeanPercentileObserver;
  else if (choice.mse)
    spec.observer =
        per_channel ? ObserverId::PerChannelThresholdMSEObserver : ObserverId::PerTensorThresholdMSEObserver;
}

}  // namespace wasmquant::config
