// One tensor spec (Quark's QTensorConfig). Every rule reports independently; none stops the others.
#include "tools/quark/spec_parser.h"

namespace wasmquant::config {

std::optional<QuantizationSpec> SpecParser::parse() {
  const size_t errors_before = in_.out().errors();
  dtype_known_ = read_dtype();
  if (dtype_known_ && info_of(spec_.dtype).is_plain_cast()) {
    read_plain_cast();
  } else {
    read_minifloat();
    read_qscheme();
    read_axis_and_group();
    if (dtype_known_) read_symmetry();
    read_numbers();
    read_scale();
    read_scale_sign();
    read_scale_refit();
    read_dynamic();
    read_without_effect();
  }
  if (in_.out().errors() != errors_before || !holds_) return std::nullopt;
  return spec_;
}

void SpecParser::ignored(const char* key, const std::string& message) {
  in_.warning("key-ignored", key, message, "leave the key out");
}

void SpecParser::unsupported(DiagnosticCode code, const char* key, const std::string& message,
                             const std::string& hint) {
  holds_ = false;
  if (!dtype_unsupported_) in_.error(code, key, message, hint);
}

std::optional<QuantizationSpec> parse_spec(const json::Value& value, const std::string& where, TensorSlot use,
                                           DiagnosticList& out) {
  const size_t errors_before = out.errors();
  const ObjectReader in(value, where, kSpecKeys, out);
  auto spec = SpecParser(in, use).parse();
  if (out.errors() != errors_before) return std::nullopt;
  return spec;
}

}  // namespace wasmquant::config
