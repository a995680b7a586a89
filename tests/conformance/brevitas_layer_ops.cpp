#include "dialect_case.h"
#include "golden_case.h"
namespace conformance {
#define S(n) \
  Result<std::string> n(const DialectCase&) { return not_yet("x"); }
S(brevitas_layer)
S(brevitas_gptq) S(brevitas_gpfq) S(brevitas_equalization) S(brevitas_smooth_quant) S(brevitas_bias_correction)
}  // namespace conformance
