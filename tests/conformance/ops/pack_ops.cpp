// Packed codes, and a whole weight as AMD Quark's export stores it.
#include <cstring>

#include "checkpoint/checkpoint_format.h"
#include "observers/registry.h"
#include "ops/ops.h"
#include "packing/packing.h"
#include "quantize/quantize.h"
#include "scale_outputs.h"

namespace conformance {

using namespace wasmquant;

namespace {

// A tensor of codes as rows along its last dimension.
struct CodeRows {
  size_t rows = 1, columns = 1;
  std::vector<uint8_t> codes;
  std::vector<uint64_t> outer;  // all dimensions but the last

  explicit CodeRows(const Tensor& tensor) {
    for (const double code : tensor.values) codes.push_back(static_cast<uint8_t>(static_cast<int32_t>(code)));
    outer = tensor.shape;
    if (outer.empty()) return;
    columns = static_cast<size_t>(outer.back());
    outer.pop_back();
    for (const uint64_t length : outer) rows *= static_cast<size_t>(length);
  }
  std::vector<uint64_t> shape_with(uint64_t last) const {
    std::vector<uint64_t> shape = outer;
    shape.push_back(last);
    return shape;
  }
};

Result<PackMethod> pack_method(const GoldenCase& c) {
  TRY(name, c.word("pack_method"));
  if (name == "reorder") return PackMethod::reorder;
  if (name == "order") return PackMethod::order;
  return not_yet("pack_method " + name);
}

Produced component_values(const Component& component, const std::vector<uint8_t>& bytes) {
  Produced produced;
  produced.shape = component.shape.empty() ? std::vector<uint64_t>{1} : component.shape;
  const auto add = [&]<class Stored>(Stored value) {
    for (size_t i = 0; i < bytes.size(); i += sizeof value) {
      std::memcpy(&value, bytes.data() + i, sizeof value);
      produced.values.push_back(static_cast<double>(value));
    }
  };
  switch (component.dtype) {
    case StorageDtype::F32:
      add(float{});
      break;
    case StorageDtype::I32:
      add(int32_t{});
      break;
    case StorageDtype::I8:
      add(int8_t{});
      break;
    default:  // bytes: U8, fp8 codes
      add(uint8_t{});
  }
  return produced;
}

}  // namespace

Result<Outputs> pack_words_of_nibbles(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype", "pack_method"}));
  TRY(dtype, c.dtype());
  if (info_of(dtype).bits != 4) return not_yet("nibbles of " + std::string(info_of(dtype).name));
  TRY(method, pack_method(c));
  TRY(q, c.input("q"));
  const CodeRows in(q);
  const auto width = static_cast<size_t>(packing::words_per_row(in.columns, 4));
  std::vector<uint32_t> words(in.rows * width);
  const auto order = method == PackMethod::reorder ? packing::WordOrder::reorder : packing::WordOrder::order;
  packing::pack_nibble_words(in.codes.data(), in.rows, in.columns, order, words.data());
  Produced packed{{}, in.shape_with(width), {}};
  for (const uint32_t word : words) packed.values.push_back(static_cast<int32_t>(word));
  return Outputs{{"packed", packed}};
}

Result<Outputs> pack_int3(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype"}));
  TRY(q, c.input("q"));
  const CodeRows in(q);
  const auto width = static_cast<size_t>(packing::bit_stream_bytes(in.columns, 3));
  std::vector<uint8_t> bytes(in.rows * width);
  for (size_t row = 0; row < in.rows; ++row)
    packing::pack_bits({in.codes.data() + row * in.columns, in.columns}, 3, bytes.data() + row * width);
  return Outputs{{"packed", Produced{{bytes.begin(), bytes.end()}, in.shape_with(width), {}}}};
}

// fp4: the first of two codes in the low nibble; fp6: a little-endian bit stream. Both along the last axis.
Result<Outputs> pack_float(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype"}));
  TRY(dtype, c.dtype());
  const DtypeInfo& info = info_of(dtype);
  if (info.is_integer || info.bits == 0 || info.bits >= 8) return not_yet("packing of " + std::string(info.name));
  TRY(codes, c.input("codes"));
  const CodeRows in(codes);
  const auto width = static_cast<size_t>(packing::bit_stream_bytes(in.columns, info.bits));
  std::vector<uint8_t> bytes(in.rows * width);
  for (size_t row = 0; row < in.rows; ++row) {
    const std::span<const uint8_t> line(in.codes.data() + row * in.columns, in.columns);
    if (info.bits == 4)
      packing::pack_nibbles(line, bytes.data() + row * width);
    else
      packing::pack_bits(line, info.bits, bytes.data() + row * width);
  }
  return Outputs{{"packed", Produced{{bytes.begin(), bytes.end()}, in.shape_with(width), {}}}};
}

// Through the library's own writer of that format: the weight as one tile.
Result<Outputs> export_weight(const GoldenCase& c) {
  TRY_VOID(c.allow_params(
      {"dtype", "symmetric", "round_method", "qscheme", "ch_axis", "group_size", "scale_type", "pack_method"}));
  TRY(spec, c.spec());
  TRY(weight, c.input("weight"));
  WeightDescription description;
  description.layer = "layer";
  description.layer_type = "Linear";
  description.shape = weight.shape;
  if (c.param("pack_method")) {
    TRY(method, pack_method(c));
    description.pack_method = method;
  }
  const CheckpointFormat* format = checkpoint_format_named("quark");
  if (!format) return not_yet("checkpoint format quark");
  Result<WeightLayout> layout = format->layout(description, {spec});
  if (!layout && layout.error().code == ErrorCode::format_unsupported) return not_yet(layout.error().message);
  if (!layout) return layout.error();

  const std::vector<float> x = weight.as_floats();
  TRY(observation, observe_tensor(spec, x, weight.shape));
  const std::vector<QParams>& qparams = observation.qparams;
  std::vector<uint8_t> codes(x.size() * info_of(spec.dtype).code_bytes());
  quantize(layout->granularity, spec, qparams, kernels::Path::real, x, 0, codes.data());

  std::vector<std::vector<uint8_t>> stored;
  std::vector<uint8_t*> pieces;
  for (const Component& component : layout->components)
    pieces.push_back(stored.emplace_back(static_cast<size_t>(component.bytes)).data());
  std::vector<uint8_t> scratch(x.size());
  pack_tile(*layout, TileRange{0, layout->lines()}, codes.data(), qparams, 1.0f, scratch.data(), pieces);

  Outputs outputs{{"codes", codes_as_numbers(codes, spec.dtype, weight.shape)}};
  for (size_t i = 0; i < stored.size(); ++i) {
    const Component& component = layout->components[i];
    outputs[component.name_in(description.layer).substr(description.layer.size() + 1)] =
        component_values(component, stored[i]);
  }
  return outputs;
}

}  // namespace conformance
