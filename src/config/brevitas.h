// Words and numbers that the parser and the writer of the Brevitas dialect share (spec 2.1, 2.4 to 2.7).
#pragma once
#include "config/spec.h"

namespace wasmquant::config {

inline constexpr char kScaleTypeWords[] = "float|pof2|float32|float16|bfloat16";
inline constexpr char kQuantTypes[] = "int_quant|float_quant";
inline constexpr char kParamTypes[] = "stats|mse";

struct BrevitasChoice {
  bool is_weight = true;
  bool pof2 = false;
  bool mse = false;
  bool fibonacci = false;  // how 0.10.3 searches; 0.12.1 tries a grid
};

/// The choices that Brevitas makes for a spec whose dtype and symmetry are set.
DialectNumbers brevitas_numbers(const QuantizationSpec& spec, const BrevitasChoice& choice) noexcept;

}  // namespace wasmquant::config
