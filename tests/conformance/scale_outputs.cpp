#include "scale_outputs.h"

namespace conformance {

using namespace wasmquant;

void add_scales(Outputs& outputs, const std::string& prefix, const Granularity& g, const QuantizationSpec& spec,
                std::span<const QParams> qparams) {
  const std::vector<uint64_t> shape = g.scale_shape.empty() ? std::vector<uint64_t>{1} : g.scale_shape;
  std::vector<float> internal(qparams.size()), ordered(qparams.size());
  const auto add = [&](const char* role, float QParams::*field) {
    for (size_t i = 0; i < qparams.size(); ++i) internal[i] = qparams[i].*field;
    to_scale_shape_order(g, internal.data(), ordered.data());
    outputs[prefix + role] = {{ordered.begin(), ordered.end()}, shape, {}};
  };
  add("scale", &QParams::scale);
  if (info_of(spec.dtype).is_integer) add("zero_point", &QParams::zero_point);
}

Produced codes_as_numbers(std::span<const uint8_t> codes, Dtype dtype, const std::vector<uint64_t>& shape) {
  const DtypeInfo& info = info_of(dtype);
  Produced produced;
  produced.shape = shape;
  if (!info.is_integer) produced.codes_of = dtype;
  for (size_t i = 0; i < codes.size(); i += info.code_bytes()) {
    int32_t code = info.code_bytes() == 1 ? codes[i] : codes[i] | codes[i + 1] << 8;
    const int32_t range = 1 << (8 * info.code_bytes());
    if (info.is_integer && info.is_signed && code >= range / 2) code -= range;
    produced.values.push_back(code);
  }
  return produced;
}

}  // namespace conformance
