#include "pipeline/plan/onnx_file_name.h"

namespace wasmquant {

std::span<const OnnxDtype> onnx_dtypes() noexcept {
  static constexpr OnnxDtype kRows[] = {
#define WASMQUANT_ONNX_DTYPE(dtype, suffix) {dtype, suffix},
#include "pipeline/plan/onnx_dtypes.def"
  };
  return kRows;
}

OnnxFileName read_onnx_file_name(std::string_view path) noexcept {
  constexpr std::string_view kExtension = ".onnx";
  std::string_view stem = path.substr(path.find_last_of("/\\") + 1);
  if (stem.ends_with(kExtension) && stem.size() > kExtension.size()) stem.remove_suffix(kExtension.size());
  for (const OnnxDtype& dtype : onnx_dtypes())
    if (stem.ends_with(dtype.suffix) && stem.size() > dtype.suffix.size())
      return {stem.substr(0, stem.size() - dtype.suffix.size()), dtype.name};
  return {stem, "fp32"};
}

}  // namespace wasmquant
