// The words of a config: names of enum values in Quark's spelling, in enum order, and Quark's names without effect here
// (spec: AMD Quark QTensorConfig 1.3, 1.4).
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "config/spec/spec.h"

namespace wasmquant::config {

/// How many words a list "a, b, c" has.
constexpr size_t count_words(std::string_view list) {
  return 1 + static_cast<size_t>(std::count(list.begin(), list.end(), ','));
}
/// Its words, each without a last "_".
template <size_t N>
constexpr std::array<std::string_view, N> words_in(std::string_view list) {
  std::array<std::string_view, N> words;
  for (std::string_view& word : words) {
    const size_t end = std::min(list.find(','), list.size());
    word = list.substr(0, end - (list[end - 1] == '_' ? 1 : 0));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return words;
}

#define WASMQUANT_SPEC_ENUM(type, words, ...)                                      \
  inline constexpr auto words = words_in<count_words(#__VA_ARGS__)>(#__VA_ARGS__); \
  constexpr std::span<const std::string_view> words_of(type) { return words; }
#include "config/spec/spec_fields.def"
inline constexpr std::array<std::string_view, 4> kRoundMethods = {"half_even", "round", "floor", "half_away"};
constexpr std::span<const std::string_view> words_of(RoundMethod) { return kRoundMethods; }
/// Values that are not words have none.
template <class T>
constexpr std::span<const std::string_view> words_of(const T&) {
  return {};
}

/// Words of `scale_refit`: neither, calibrated_refit, scale_refit of QuantizationSpec.
inline constexpr std::array<std::string_view, 3> kScaleRefits = {"never", "calibrated", "always"};
inline constexpr std::array<std::string_view, 3> kTargetDevices = {"cpu", "gpu", "ipu"};
inline constexpr std::array<std::string_view, 2> kQuantModes = {"eager_mode", "fx_graph_mode"};

/// Every dtype of Quark. Two are not rows of numeric/dtypes.def: mx is its element dtype with e8m0 scales, and uint16
/// has no quantized range in Quark.
inline constexpr std::array<std::string_view, 21> kDtypeWords = {
    "int8",     "uint8",    "int16",    "uint16",   "int32",    "int4", "uint4", "int3", "int2", "bfloat16", "float16",
    "fp8_e4m3", "fp8_e5m2", "fp8_e5m3", "fp6_e3m2", "fp6_e2m3", "fp4",  "mx",    "mx6",  "mx9",  "bfp16"};

/// What dtype mx may be made of.
inline constexpr std::array<std::string_view, 6> kMxElements = {"int8",     "fp8_e4m3", "fp8_e5m2",
                                                                "fp6_e3m2", "fp6_e2m3", "fp4"};

/// Layer classes that a config may name; weight files reveal the first four, ONNX all but EmbeddingBag.
inline constexpr std::array<std::string_view, 12> kLayerTypes = {
    "Linear",          "Embedding", "Conv1d", "Conv2d", "ConvTranspose2d", "EmbeddingBag", "Conv3d", "ConvTranspose1d",
    "ConvTranspose3d", "LSTM",      "GRU",    "RNN"};

/// Keras' name of Linear, which Quark's documentation has, too.
inline constexpr std::string_view kDense = "Dense";

/// Classes that `layer_types` may assign; a Norm is never quantized, LayerNorm only by aihwkit.
inline constexpr std::array<std::string_view, 14> kKnownTypes = {
    "Linear",          "Embedding", "Conv1d", "Conv2d", "ConvTranspose2d", "EmbeddingBag", "Conv3d", "ConvTranspose1d",
    "ConvTranspose3d", "LSTM",      "GRU",    "RNN",    "LayerNorm",       "Norm"};

template <class Enum, size_t N>
constexpr std::string_view word_of(Enum value, const std::array<std::string_view, N>& words) {
  return words[static_cast<size_t>(value)];
}

/// "a, b, c": a list for messages.
std::string joined(std::span<const std::string_view> names);

}  // namespace wasmquant::config
