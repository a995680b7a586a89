// File names of transformers.js: the model's part, such as decoder_model_merged, and its dtype (pipeline/plan/onnx_dtypes.def).
#pragma once
#include <span>
#include <string_view>

namespace wasmquant {

struct OnnxDtype {
  std::string_view name, suffix;
};
std::span<const OnnxDtype> onnx_dtypes() noexcept;

struct OnnxFileName {
  std::string_view stem;   // without folder, dtype and extension
  std::string_view dtype;  // "fp32" without a suffix
};
OnnxFileName read_onnx_file_name(std::string_view path) noexcept;

}  // namespace wasmquant
