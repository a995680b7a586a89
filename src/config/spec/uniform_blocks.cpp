#include "config/spec/uniform_blocks.h"

#include <utility>

namespace wasmquant::config {

UniformScheme uniform_scheme(const QuantizationSpec& spec) noexcept {
  return {info_of(spec.dtype).bits, spec.qscheme == QScheme::per_group ? spec.group_size : -1, spec.symmetric};
}

json::Value gptq_scheme(const UniformScheme& scheme) {
  json::Value out;
  out.set("bits", static_cast<int64_t>(scheme.bits));
  out.set("group_size", scheme.group_size);
  out.set("sym", scheme.symmetric);
  return out;
}

json::Value gptq_block(const UniformScheme& scheme, bool orders_columns, bool quantizes_head, json::Value dynamic) {
  json::Value out;
  out.set("quant_method", "gptq");
  const json::Value members = gptq_scheme(scheme);
  for (const auto& [key, value] : members.members()) out.set(std::string(key), json::Value(value));
  out.set("desc_act", orders_columns);
  out.set("lm_head", quantizes_head);
  out.set("checkpoint_format", scheme.symmetric ? "gptq" : "gptq_v2");
  out.set("pack_dtype", "int32");
  if (!dynamic.members().empty()) out.set("dynamic", std::move(dynamic));
  return out;
}

json::Value awq_block(const UniformScheme& scheme, bool quantizes_head, json::Array kept) {
  json::Value out;
  out.set("quant_method", "awq");
  out.set("bits", static_cast<int64_t>(scheme.bits));
  out.set("group_size", scheme.group_size);
  out.set("zero_point", !scheme.symmetric);
  out.set("version", "gemm");
  out.set("modules_to_not_convert", json::Value(std::move(kept)));
  if (quantizes_head) out.set("lm_head", true);  // else loaders keep it
  return out;
}

}  // namespace wasmquant::config
