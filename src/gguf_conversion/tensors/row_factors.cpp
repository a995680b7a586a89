#include "gguf_conversion/tensors/row_factors.h"

#include "core/message.h"
#include "gguf_conversion/architectures/config_values.h"

namespace wasmquant::conversion {

Result<List<std::vector<float>>> row_factors(std::string_view keys, const std::vector<uint64_t>& rows_of_parts,
                                             const json::Value& config) {
  const families::ConfigReader reader(config);
  const ConfigValues values(reader);
  List<std::vector<float>> out;
  while (!keys.empty()) {
    keys.remove_prefix(1);
    const std::string_view key = keys.substr(0, keys.find('*'));
    keys.remove_prefix(key.size());
    const json::Value* const found = values.find(key);
    if (found == nullptr) continue;
    const bool is_list = found->is_array();
    std::vector<float>& factors = out.emplace_back();
    for (size_t part = 0; part < (is_list ? rows_of_parts.size() : 1); ++part) {
      const json::Value* factor = is_list ? nullptr : found;
      if (is_list && part < found->items().size()) factor = &found->items()[part];
      if (factor == nullptr || !factor->is_finite())
        return error_at(ErrorCode::argument_invalid, text_of("config.json: /{}", key),
                        "has to be a number, or {} of them", static_cast<uint64_t>(rows_of_parts.size()));
      factors.insert(factors.end(), is_list ? rows_of_parts[part] : 1, static_cast<float>(factor->as_number()));
    }
  }
  return out;
}

}  // namespace wasmquant::conversion
