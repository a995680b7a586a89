// Numbers of config.json by which a tensor's rows are multiplied.
#pragma once
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"

namespace wasmquant::conversion {

/// `keys`: of config.json, each behind '*'. One that is missing is 1; an array has a number for the rows of each part. One list
/// for each key, of all rows, repeated. Errors: argument-invalid naming the key.
Result<List<std::vector<float>>> row_factors(std::string_view keys, const std::vector<uint64_t>& rows_of_parts,
                                             const json::Value& config);

}  // namespace wasmquant::conversion
