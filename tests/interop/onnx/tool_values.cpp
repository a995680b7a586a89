// The weights of an ONNX model as numbers, quantized, and as bytes again.
#include <cstring>
#include <limits>

#include "kernels/kernels.h"
#include "quantize/quantize.h"
#include "tool.h"

namespace wasmquant::onnx_tool {

using conversion::Segment;

onnx::Model read_model(const std::string& file) {
  auto skeleton = std::make_unique<onnx::Skeleton>(file.size());
  for (auto need = skeleton->need(); need.bytes > 0; need = skeleton->need())
    check(skeleton->feed({reinterpret_cast<const uint8_t*>(file.data()) + need.offset, need.bytes}));
  return take(onnx::read_model(std::move(skeleton)));
}

std::vector<float> values_of(const onnx::Tensor& tensor, const std::string& file) {
  size_t count = 1;
  for (const uint64_t dimension : tensor.shape) count *= dimension;
  const StorageDtype dtype = *onnx::weight_dtype_of(tensor.data_type);
  std::vector<float> values(count);
  std::vector<uint16_t> halves(dtype == StorageDtype::F32 ? 0 : count);
  const char* bytes = file.data() + tensor.begin;
  if (tensor.encoding == onnx::Encoding::varints)
    check(onnx::decode_varints({reinterpret_cast<const uint8_t*>(bytes), tensor.end - tensor.begin}, halves,
                               tensor.name));
  else
    std::memcpy(halves.empty() ? static_cast<void*>(values.data()) : halves.data(), bytes, tensor.end - tensor.begin);
  if (dtype == StorageDtype::F16) kernels::widen_f16(halves, values.data());
  if (dtype == StorageDtype::BF16) kernels::widen_bf16(halves, values.data());
  return values;
}

namespace {

std::vector<float> transposed(const std::vector<float>& in, size_t rows, size_t columns) {
  std::vector<float> out(in.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) out[c * rows + r] = in[r * columns + c];
  return out;
}

}  // namespace

Quantized quantize(const WeightLayout& layout, std::vector<float> x) {
  if (layout.source_transposed) x = transposed(x, layout.columns, layout.rows);
  const Granularity& g = layout.granularity;
  const size_t scales = g.scale_count();
  std::vector<float> low(scales, std::numeric_limits<float>::infinity()), high(scales, -low[0]);
  for_each_run(g, 0, x.size(), [&](const Run& run) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const uint64_t scale = run.scale + i * run.scale_stride;
      low[scale] = std::min(low[scale], x[run.begin + i]);
      high[scale] = std::max(high[scale], x[run.begin + i]);
    }
  });
  std::vector<QParams> qparams(scales), read(scales);
  qparams_of_ranges(low, high, layout.spec, qparams);
  std::vector<uint8_t> codes(x.size()), again(x.size()), scratch(x.size());
  wasmquant::quantize(g, layout.spec, qparams, kernels::Path::real, x, 0, codes.data());

  Quantized out;
  for (const Component& component : layout.components) out.components.emplace_back(component.bytes, '\0');
  const uint64_t step = 5 * layout.line_multiple();
  for (uint64_t begin = 0; begin < layout.rows; begin += step) {
    const TileRange tile{begin, std::min(begin + step, layout.rows)};
    std::vector<uint8_t*> slices;
    for (size_t c = 0; c < out.components.size(); ++c)
      slices.push_back(reinterpret_cast<uint8_t*>(out.components[c].data()) +
                       slice_of(layout, layout.components[c], tile).offset);
    const uint64_t count = tile_scale_count(layout, tile);
    const uint64_t first = layout.scales_in_tiles() ? tile_scale_count(layout, {0, begin}) : 0;
    const std::span<QParams> of_tile = std::span(qparams).subspan(first, count);
    pack_tile(layout, tile, codes.data() + begin * layout.columns, of_tile, 1.0f, scratch.data(), slices);
  }
  for (uint64_t begin = 0; begin < layout.rows; begin += step) {
    const TileRange tile{begin, std::min(begin + step, layout.rows)};
    std::vector<const uint8_t*> slices;
    for (size_t c = 0; c < out.components.size(); ++c)
      slices.push_back(reinterpret_cast<const uint8_t*>(out.components[c].data()) +
                       slice_to_read(layout, layout.components[c], tile).offset);
    const uint64_t count = tile_scale_count(layout, tile);
    const uint64_t first = layout.scales_in_tiles() ? tile_scale_count(layout, {0, begin}) : 0;
    unpack_tile(layout, tile, slices, scratch.data(), again.data() + begin * layout.columns,
                std::span(read).subspan(first, count));
  }
  for (size_t i = 0; i < scales; ++i)
    if (read[i].scale != qparams[i].scale || read[i].zero_point != qparams[i].zero_point) fail("scales differ");
  if (again != codes) fail("codes differ");
  out.values.resize(x.size());
  dequantize(g, layout.spec, read, again.data(), x.size(), 0, out.values.data());
  if (layout.source_transposed) out.values = transposed(out.values, layout.rows, layout.columns);
  return out;
}

void overwrite(const onnx::Tensor& tensor, const std::vector<float>& values, std::string& file) {
  if (tensor.encoding != onnx::Encoding::bytes) fail("no reference for weights in varints");
  char* to = file.data() + tensor.begin;
  const StorageDtype dtype = *onnx::weight_dtype_of(tensor.data_type);
  if (dtype == StorageDtype::F32) {
    std::memcpy(to, values.data(), tensor.end - tensor.begin);
    return;
  }
  std::vector<uint16_t> halves(values.size());
  (dtype == StorageDtype::F16 ? kernels::narrow_f16 : kernels::narrow_bf16)(values, halves.data());
  std::memcpy(to, halves.data(), tensor.end - tensor.begin);
}

std::string bytes_of(const conversion::OnnxFile& file, const conversion::OnnxRewrite& rewrite, const Files& files,
                     const std::vector<Quantized>& quantized) {
  std::string out;
  for (const Segment& segment : file.segments) {
    switch (segment.kind) {
      case Segment::Kind::literal:
        out.append(rewrite.literals, segment.begin, segment.bytes);
        break;
      case Segment::Kind::model:
        out.append(files.model, segment.begin, segment.bytes);
        break;
      case Segment::Kind::external:
        out.append(files.external[segment.source], segment.begin, segment.bytes);
        break;
      case Segment::Kind::component:
        out += quantized[segment.source].components[segment.component];
        break;
      case Segment::Kind::zeros:
        out.append(segment.bytes, '\0');
        break;
    }
  }
  if (out.size() != file.bytes) fail("a file has another size than was said");
  return out;
}

}  // namespace wasmquant::onnx_tool
