// How codes and scales are computed: symmetry, zero point, rounding, scale type; and Quark's keys without effect.
#include "config/spec/vocabulary.h"
#include "core/message.h"
#include "tools/quark/spec_numbers.h"
#include "tools/quark/spec_parser.h"

namespace wasmquant::config {

void SpecParser::read_symmetry() {
  const DtypeInfo& dtype = info_of(spec_.dtype);
  const std::string_view name = dtype.name;
  const json::Value* symmetric = in_.find("symmetric");
  ZeroPointType zero_point = ZeroPointType::int32;
  const bool zero_point_given = in_.find("zero_point_type") != nullptr;
  in_.read_word("zero_point_type", kZeroPointTypes, zero_point);

  if (!dtype.is_integer) {
    spec_.symmetric = true;
    if (symmetric != nullptr && !symmetric->as_bool())
      ignored("symmetric", text_of("{} has no zero point and is always symmetric", name));
    if (zero_point_given) ignored("zero_point_type", text_of("{} has no zero point", name));
    return;
  }
  spec_.symmetric = symmetric != nullptr ? symmetric->as_bool() : dtype.is_signed;
  if (is_mx_ && !spec_.symmetric) {
    ignored("symmetric", "MX integers have no zero point and are always symmetric");
    spec_.symmetric = true;
  }
  if (spec_.symmetric && !dtype.is_signed && !info_of(spec_.observer).gives_powers_of_two())
    in_.warning("symmetric-unsigned", "symmetric",
                text_of("symmetric {} has zero point 0: every negative value becomes 0", name),
                "set symmetric to false, or use a signed dtype");
  if (zero_point != ZeroPointType::float32) return;
  if (spec_.symmetric) {
    ignored("zero_point_type", "a symmetric spec has zero point 0");
    return;
  }
  spec_.zero_point_type = zero_point;
  if (dtype.is_signed)
    in_.warning("zero-point-range", "zero_point_type",
                text_of("float zero points start at 0, so half of the codes of {} stay unused", name),
                "use an unsigned dtype, or int32 zero points");
}

void SpecParser::read_scale() {
  in_.read_word("round_method", kRoundMethods, spec_.round_method);
  in_.read_word("scale_type", kScaleTypes, spec_.scale_type);
  if (spec_.scale_type == ScaleType::pof2 && spec_.grid.threshold_rounding == ThresholdRounding::none) {
    if (!info_of(spec_.observer).gives_powers_of_two())
      ignored("scale_type", "pof2 has no effect; the PowOf2 observers give power-of-two scales");
    spec_.scale_type = ScaleType::float_;
  }
  if (dtype_known_ && !info_of(spec_.dtype).is_integer && spec_.round_method != RoundMethod::half_even) {
    ignored("round_method", text_of("{} always rounds half to even", info_of(spec_.dtype).name));
    spec_.round_method = RoundMethod::half_even;
  }
  read_scale_format();
}

// Signs come from each scale's own extreme, so that only observers that look at one scale at a time give them.
void SpecParser::read_scale_sign() {
  in_.read_word("scale_sign", kScaleSigns, spec_.scale_sign);
  if (spec_.scale_sign == ScaleSign::positive || !holds_) return;
  const DtypeInfo& dtype = info_of(spec_.dtype);
  const ObserverInfo& observer = info_of(spec_.observer);
  const RoundingGrid& grid = spec_.grid;
  constexpr int kMostBits = 8;
  if (use_ != TensorSlot::weight)
    in_.error("value-invalid", "scale_sign", "only weights have signed scales", "set scale_sign to positive");
  else if (!dtype.is_integer || dtype.is_signed != spec_.symmetric || dtype.bits > kMostBits || is_mx_)
    in_.error(
        "value-invalid", "scale_sign",
        "signed scales are for symmetric signed integers, and for unsigned ones that are not symmetric, of 2 to 8 bits",
        "set scale_sign to positive, or use int2 to int8 with symmetric true or uint2 to uint8 with false");
  else if (spec_.scale_format != ScaleFormat::float32 || spec_.scale_type == ScaleType::float8_e5m3 ||
           spec_.scale_type == ScaleType::float8_e8m0fnu || spec_.scale_type == ScaleType::pof2)
    in_.error("value-invalid", "scale_sign", "scales of this type have no sign",
              "use scale_type float, float32, float16 or bfloat16");
  else if (!observer.is_per_scale())
    in_.error("value-invalid", "scale_sign", text_of("{} gives positive scales only", observer.name),
              "use a min-max, MSE or HQQ observer");
  else if (grid.narrow || grid.sign_by_data || grid.divisor != ScaleDivisor::half_range ||
           grid.threshold_rounding != ThresholdRounding::none)
    in_.error("value-invalid", "scale_sign", "signed scales have their own divisor, the lowest code",
              "leave narrow, sign_by_data, divisor and threshold_rounding out of grid");
}

// The refit starts from each scale's own elements, and needs codes that are whole numbers of steps, or few scales to choose
// from.
void SpecParser::read_scale_refit() {
  constexpr const char* key = "scale_refit";
  const int when = in_.word(key, kScaleRefits);
  spec_.calibrated_refit = when == 1;
  spec_.scale_refit = when == 2;
  if (!refits_calibrated(spec_) || !holds_) return;
  const DtypeInfo& dtype = info_of(spec_.dtype);
  const ObserverInfo& observer = info_of(spec_.observer);
  constexpr int kMostBits = 8;
  const bool is_power = spec_.scale_format == ScaleFormat::e8m0 && !dtype.is_integer;
  if (use_ != TensorSlot::weight)
    in_.error("value-invalid", key, "only scales of weights are refit", "leave it out");
  else if (!is_power &&
           (!dtype.is_integer || dtype.bits > kMostBits || is_mx_ || spec_.zero_point_type == ZeroPointType::float32))
    in_.error("value-invalid", key,
              "scales are refit for integers of 2 to 8 bits with whole zero points, and for floats with e8m0 scales",
              "leave it out, or use int2 to int8, uint2 to uint8 with zero_point_type int32, or scale_format e8m0");
  else if (!is_power && (spec_.scale_format != ScaleFormat::float32 || spec_.scale_type == ScaleType::float8_e5m3 ||
                         spec_.scale_type == ScaleType::float8_e8m0fnu || spec_.scale_type == ScaleType::pof2 ||
                         spec_.grid.threshold_rounding != ThresholdRounding::none))
    in_.error("value-invalid", key, "scales of this type are too coarse to be refit",
              "use scale_type float, float32, float16 or bfloat16, and no threshold_rounding");
  else if (spec_.qscheme != QScheme::per_channel && spec_.qscheme != QScheme::per_group)
    in_.error("value-invalid", key, "scales are refit per channel or per group",
              "use qscheme per_channel or per_group");
  else if (!observer.finds_range() && observer.method != ObserverMethod::per_scale_mse)
    in_.error("value-invalid", key, text_of("the scales of {} do not minimize the squared error", observer.name),
              "use a min-max or MSE observer of one channel or group");
  else if (spec_.round_method != RoundMethod::half_even || spec_.grid.divides)
    in_.error("value-invalid", key, "scales are refit for codes round_half_even(x * (1 / scale))",
              "leave round_method and grid.divides out");
}

void SpecParser::read_numbers() {
  if (const json::Value* grid = in_.find("grid")) spec_.grid = read_grid(*grid, in_.at("grid"), in_.out());
  if (const json::Value* options = in_.find("observer_options"))
    spec_.observer_options = read_observer_options(*options, in_.at("observer_options"), in_.out());
  const ObserverMethod method = info_of(spec_.observer).method;
  const json::Value* refit = in_.find("scale_refit");
  if (spec_.observer_options.weighted && method != ObserverMethod::per_scale_mse &&
      method != ObserverMethod::half_quadratic && !(refit != nullptr && refit->as_string() == kScaleRefits[2]))
    in_.error("value-invalid", "observer_options", text_of("{} does not weight errors", info_of(spec_.observer).name),
              "use PerGroupMSEObserver, PerChannelMSEObserver, HQQObserver or PerChannelHQQObserver");
}

void SpecParser::read_dynamic() {
  const json::Value* dynamic = in_.find("is_dynamic");
  const bool is_dynamic = dynamic != nullptr && dynamic->as_bool();
  if (is_dynamic && use_ == TensorSlot::weight) {
    ignored("is_dynamic", "weights are quantized once, with scales that are stored");
    return;
  }
  spec_.is_dynamic = is_dynamic;
  const bool activation = use_ == TensorSlot::input || use_ == TensorSlot::output;
  const bool has_scales = !is_mx_ && !info_of(spec_.dtype).is_block();  // blocks find their exponents at run time
  if (activation && !is_dynamic && has_scales && known_scheme_ && spec_.qscheme == QScheme::per_group)
    in_.error("value-invalid", "is_dynamic", "per_group activations must be dynamic", "set is_dynamic to true");
}

// Of Quark's training options only the start of the TQT observer's threshold matters without training. Quark's
// documents also call _KL_J _LL_J.
void SpecParser::read_training() {
  const json::Value* training = in_.find("qat_spec");
  if (training == nullptr) return;
  const bool is_tqt = spec_.observer == ObserverId::TQTObserver || spec_.observer == ObserverId::TQTKLJObserver;
  const json::Value& method = (*training)["threshold_init_meth"];
  if (!is_tqt || method.is_null())
    return in_.error("not-implemented", "qat_spec",
                     "nothing is trained here: of a qat_spec only threshold_init_meth is read, with observer_cls "
                     "TQTObserver",
                     "remove the key");
  switch (index_in(python_name(method.as_string()), "_3sd|_3SD|_kl_j|_KL_J|_LL_J")) {
    case -1:
      return in_.error("value-unknown", "qat_spec", "threshold_init_meth is neither _3sd nor _kl_j");
    case 0:
    case 1:
      spec_.observer = ObserverId::TQTObserver;
      return;
    default:
      spec_.observer = ObserverId::TQTKLJObserver;
  }
}

void SpecParser::read_without_effect() {
  if (const json::Value* block = in_.find("block_size")) {
    const bool pair = block->is_array() && block->items().size() == 2 && block->items()[0].is_integer() &&
                      block->items()[1].is_integer();
    if (!pair && !block->is_integer())
      in_.error("type-invalid", "block_size", "expected two integers");
    else if (known_scheme_ && spec_.qscheme != QScheme::per_block)
      ignored("block_size", "block_size only applies to qscheme per_block");
    else if (!pair && known_scheme_)
      in_.error("type-invalid", "block_size", "expected two integers");
  }
  if (const json::Value* element = in_.find("mx_element_dtype"); element != nullptr && !is_mx_) {
    if (in_.word("mx_element_dtype", kDtypeWords) >= 0 && holds_)
      ignored("mx_element_dtype", text_of("mx_element_dtype ({}) only applies to dtype mx", element->as_string()));
  }
  read_training();
  const json::Value* scale = in_.find("is_scale_quant");
  spec_.is_scale_quant = scale != nullptr && scale->as_bool();
  if (const json::Value* limit = in_.find("max_input_numel"); limit != nullptr && limit->as_integer() <= 0)
    in_.error("value-invalid", "max_input_numel", "expected a positive number of elements");
}

}  // namespace wasmquant::config
