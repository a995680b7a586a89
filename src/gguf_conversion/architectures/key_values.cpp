#include "gguf_conversion/architectures/key_values.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/message.h"
#include "families/module_path.h"
#include "numeric/normal_quantile.h"

namespace wasmquant::conversion {

uint32_t length_of(const json::Array& items, bool only_dense) noexcept {
  const auto end = std::ranges::find_if(
      items, [only_dense](const json::Value& item) { return only_dense && item.as_string() != "dense"; });
  return static_cast<uint32_t>(end - items.begin());
}

gguf::ArrayBuilder whole_numbers(const json::Array& numbers) {
  gguf::ArrayBuilder list(gguf::ValueType::i32);
  for (const json::Value& number : numbers) list.add_i32(static_cast<int32_t>(number.as_integer()));
  return list;
}

gguf::ArrayBuilder quantiles(const json::Array& shares) {
  gguf::ArrayBuilder list(gguf::ValueType::f32);
  for (const json::Value& share : shares) list.add_f32(normal_quantile(static_cast<float>(share.as_number())));
  return list;
}

gguf::ArrayBuilder list_of(const json::Array& numbers, uint32_t layers) {
  gguf::ArrayBuilder list(layers == 0 ? gguf::ValueType::f32 : gguf::ValueType::boolean);
  for (const json::Value& number : numbers)
    if (layers == 0) list.add_f32(static_cast<float>(number.as_number()));
  for (uint32_t layer = 0; layer < layers; ++layer)
    list.add_u8(std::ranges::any_of(numbers, [&](const json::Value& number) { return number.as_integer() == layer; }));
  return list;
}

Result<gguf::ArrayBuilder> numbers_of_layers(std::span<const NamedNumber> numbers, std::string_view name,
                                             uint32_t layers, double otherwise) {
  std::vector<float> found(layers, static_cast<float>(otherwise));
  for (const NamedNumber& number : numbers) {
    const int64_t layer = families::layer_index_of(number.name);
    if (layer >= 0 && layer < layers && families::ends_with_components(number.name, name))
      found[static_cast<size_t>(layer)] = number.value;
  }
  gguf::ArrayBuilder list(gguf::ValueType::f32);
  for (const float value : found) {
    if (std::isnan(value))
      return error_at(ErrorCode::tensor_missing, name, "a layer has no such number in 16 or 32 bits");
    list.add_f32(value);
  }
  return list;
}

gguf::ArrayBuilder sections_of(const json::Value* list) {
  constexpr int kSections = 4;
  constexpr int32_t kDefault[kSections] = {11, 11, 10, 0};
  gguf::ArrayBuilder sections(gguf::ValueType::i32);
  for (size_t i = 0; i < kSections; ++i)
    sections.add_i32(list == nullptr            ? kDefault[i]
                     : i < list->items().size() ? static_cast<int32_t>(list->items()[i].as_integer())
                                                : 0);
  return sections;
}

uint32_t adjusted_width(const families::ConfigReader& config, uint32_t width) {
  const json::Value* const adjusts = config.find("block_auto_adjust_ff_dim");
  if (adjusts == nullptr || !adjusts->as_bool()) return width;
  const double factor = config.number("block_ffn_dim_multiplier").value_or(1);
  const uint64_t multiple = config.count("block_multiple_of").value_or(256);
  const auto adjusted = static_cast<uint64_t>(factor * static_cast<double>(uint64_t{2} * width / 3));
  return static_cast<uint32_t>((adjusted + multiple - 1) / multiple * multiple);
}

}  // namespace wasmquant::conversion
