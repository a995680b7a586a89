// The rules of one tensor spec, by subject. Internal to the parser: spec_scheme.cpp has dtype, observer, qscheme, axis
// and group; spec_blocks.cpp has MX elements, minifloats, blocks and their scales; spec_values.cpp has symmetry, zero
// point, scale, and the keys without effect.
#pragma once
#include <optional>
#include <string_view>

#include "config/reading/key_row.h"
#include "tools/quark/quark_config.h"
#include "tools/quark/spec_numbers.h"

namespace wasmquant::config {

/// The keys of a tensor spec.
inline constexpr Key kSpecKeys[] = {
#define WASMQUANT_SPEC_KEY WASMQUANT_KEY_ROW
#include "tools/quark/keys.def"
};

/// Parses one tensor spec.
class SpecParser {
 public:
  SpecParser(const ObjectReader& in, TensorSlot use) : in_(in), use_(use) {}

  std::optional<QuantizationSpec> parse();

 private:
  void ignored(const char* key, const std::string& message);
  // Unsupported Quark features: an error for weights; otherwise the spec is unused anyway. The observer and scale
  // format of an unsupported dtype are not reported in addition.
  void unsupported(DiagnosticCode code, const char* key, const std::string& message, const std::string& hint);
  bool read_dtype();
  // dtype mx: the element dtype, and that scales are powers of two.
  bool read_mx_element();
  void read_minifloat();
  // bfloat16 and float16 are casts: all other keys are ignored and dropped.
  void read_plain_cast();
  void read_qscheme();
  // The named observer, if this library has it.
  const ObserverInfo* read_observer();
  void choose_observer(const ObserverInfo* named);
  void read_axis_and_group();
  void read_group_size(const json::Value* group);
  void read_block_size();
  void read_symmetry();
  void read_scale();
  void read_scale_format();
  void read_scale_sign();
  void read_scale_refit();
  // The keys that this library writes where a spec differs from Quark's numbers.
  void read_numbers();
  void read_dynamic();
  void read_training();
  void read_without_effect();

  const ObjectReader& in_;
  TensorSlot use_;
  QuantizationSpec spec_;
  bool dtype_known_ = false;
  bool is_mx_ = false;              // dtype mx: spec_.dtype is its element
  bool known_scheme_ = true;        // spec_.qscheme is supported
  bool dtype_unsupported_ = false;  // a dtype of Quark that this version lacks
  bool holds_ = true;               // whether QuantizationSpec can represent it
};

}  // namespace wasmquant::config
