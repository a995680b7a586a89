#include "tools/compressed_tensors/compressed_tensors_arguments.h"

namespace wasmquant::config {
namespace {

const char* strategy_of(const QuantizationSpec& spec, bool is_activation) {
  const char* row = is_activation ? "token" : "channel";
  if (spec.qscheme == QScheme::per_block) return "block";
  if (spec.qscheme == QScheme::per_tensor) return "tensor";
  if (spec.qscheme == QScheme::per_channel || spec.group_size == -1) return row;
  return spec.scale_format == ScaleFormat::e4m3 ? "tensor_group" : "group";
}

}  // namespace

bool has_stored_zero_point(const QuantizationSpec& spec) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return dtype.is_integer && !(spec.symmetric && dtype.is_signed);
}

json::Value compressed_tensors_arguments(const QuantizationSpec& spec, bool is_activation) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  const bool has_group = spec.qscheme == QScheme::per_group && spec.group_size > 0;
  json::Value out;
  out.set("num_bits", static_cast<int64_t>(dtype.bits));
  out.set("type", dtype.is_integer ? "int" : "float");
  out.set("symmetric", !has_stored_zero_point(spec));
  out.set("strategy", strategy_of(spec, is_activation));
  out.set("group_size", has_group ? json::Value(spec.group_size) : json::Value());
  out.set("block_structure", spec.qscheme != QScheme::per_block
                                 ? json::Value()
                                 : json::Value(json::Array{json::Value(int64_t{spec.block_rows}),
                                                           json::Value(int64_t{spec.block_columns})}));
  const bool is_dynamic = is_activation && spec.is_dynamic;
  out.set("dynamic", is_dynamic);
  out.set("actorder", nullptr);
  out.set("observer", is_dynamic ? json::Value() : json::Value("minmax"));
  out.set("observer_kwargs", json::Object{});
  if (spec.scale_format != ScaleFormat::float32) {
    const char* stored = spec.scale_format == ScaleFormat::e4m3 ? "torch.float8_e4m3fn" : "torch.uint8";
    out.set("scale_dtype", stored);
    out.set("zp_dtype", stored);
  }
  return out;
}

}  // namespace wasmquant::config
