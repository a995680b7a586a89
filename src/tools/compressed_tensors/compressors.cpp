#include "tools/compressed_tensors/compressors.h"

namespace wasmquant {
namespace {

constexpr std::string_view kCompressors[] = {"pack-quantized",       "int-quantized",        "float-quantized",
                                             "mxfp4-pack-quantized", "nvfp4-pack-quantized", "mxfp8-quantized"};

}  // namespace

// vLLM reads weight-only integers only from words, and those of 8 bits with quantized inputs only from bytes; it
// reads no weight-only integers per tensor.
// Source: vLLM's quantization/compressed_tensors/compressed_tensors.py, _get_scheme_from_parts.
Compressor compressor_of(const QuantizationSpec& spec, bool is_unpacked) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (spec.scale_format == ScaleFormat::e4m3) return Compressor::nvfp4_pack_quantized;
  if (spec.scale_format == ScaleFormat::e8m0)
    return dtype.bits == 8 ? Compressor::mxfp8_quantized : Compressor::mxfp4_pack_quantized;
  if (!dtype.is_integer) return Compressor::float_quantized;
  if (dtype.bits == 8 && (spec.qscheme == QScheme::per_tensor || (is_unpacked && spec.qscheme == QScheme::per_channel)))
    return Compressor::int_quantized;
  return Compressor::pack_quantized;
}

std::string_view name_of(Compressor compressor) noexcept { return kCompressors[static_cast<size_t>(compressor)]; }

}  // namespace wasmquant
