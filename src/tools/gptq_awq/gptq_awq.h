// The writers of GPTQ's and AWQ's quantization_config.
#pragma once
#include "config/dialects/convert.h"

namespace wasmquant::config {

json::Value write_gptq(DialectConversion& conversion);
json::Value write_awq(DialectConversion& conversion);

}  // namespace wasmquant::config
