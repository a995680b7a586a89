// Values of keys that are more than a number of config.json.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "core/json.h"
#include "core/result.h"
#include "families/config_reader.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/architectures/hyperparameters.h"

namespace wasmquant::conversion {

/// Of all items, or of the texts "dense" that are first.
uint32_t length_of(const json::Array& items, bool only_dense) noexcept;
gguf::ArrayBuilder whole_numbers(const json::Array& numbers);
/// Of the normal distribution.
gguf::ArrayBuilder quantiles(const json::Array& shares);
/// The numbers, or which of `layers` are among them.
gguf::ArrayBuilder list_of(const json::Array& numbers, uint32_t layers);
/// The number called `name` in each layer, `otherwise` without one. Errors: tensor-missing if that is NaN.
Result<gguf::ArrayBuilder> numbers_of_layers(std::span<const NamedNumber> numbers, std::string_view name,
                                             uint32_t layers, double otherwise);
/// Four numbers; without a list those that transformers' class of Qwen3.5 assumes.
gguf::ArrayBuilder sections_of(const json::Value* list);
/// Two thirds, because a gate is a third matrix, times a factor, up to a multiple: transformers, Lfm2MLP.
uint32_t adjusted_width(const families::ConfigReader& config, uint32_t width);

}  // namespace wasmquant::conversion
