// Layouts of weights in ONNX models, packed in tiles and unpacked again.
#include "checkpoint/onnx_layout.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "quantize/quantize.h"

using namespace wasmquant;

namespace {

QuantizationSpec spec_of(Dtype dtype, QScheme qscheme, bool symmetric, int64_t group_size = 32) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.qscheme = qscheme;
  spec.symmetric = symmetric;
  spec.group_size = group_size;
  if (qscheme == QScheme::per_group) spec.ch_axis = 1;
  return spec;
}

std::vector<float> values(size_t count) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>((i * 7919 + 13) % 1000) / 400.0f - 0.9f;
  return x;
}

struct Packed {
  std::vector<uint8_t> codes;  // unpacked
  std::vector<QParams> qparams;
  std::vector<std::vector<uint8_t>> components;
};

// In tiles of `tile_rows` times line_multiple(), and back; what comes back must be what went in.
Packed pack(const WeightLayout& layout, const std::vector<float>& x, uint64_t tile_rows) {
  const Granularity& g = layout.granularity;
  Packed out;
  std::vector<float> low(g.scale_count(), std::numeric_limits<float>::infinity()), high(low.size(), -low[0]);
  for_each_run(g, 0, x.size(), [&](const Run& run) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const uint64_t scale = run.scale + i * run.scale_stride;
      low[scale] = std::min(low[scale], x[run.begin + i]);
      high[scale] = std::max(high[scale], x[run.begin + i]);
    }
  });
  out.qparams.resize(low.size());
  qparams_of_ranges(low, high, layout.spec, out.qparams);
  out.codes.resize(x.size());
  quantize(g, layout.spec, out.qparams, kernels::Path::real, x, 0, out.codes.data());

  for (const Component& component : layout.components) out.components.emplace_back(component.bytes, uint8_t{0xAA});
  std::vector<uint8_t> again(x.size()), scratch(x.size());
  std::vector<QParams> read(out.qparams.size());
  for (const bool reads : {false, true})
    for (uint64_t begin = 0; begin < layout.rows; begin += tile_rows * layout.line_multiple()) {
      const TileRange tile{begin, std::min(begin + tile_rows * layout.line_multiple(), layout.rows)};
      std::vector<std::vector<uint8_t>> slices;  // each by itself, for the sanitizer
      std::vector<uint8_t*> pointers;
      for (size_t c = 0; c < out.components.size(); ++c) {
        const Component& component = layout.components[c];
        const Slice slice = reads ? slice_to_read(layout, component, tile) : slice_of(layout, component, tile);
        REQUIRE(slice.offset + slice.bytes <= component.bytes);
        const auto first = out.components[c].begin() + static_cast<std::ptrdiff_t>(slice.offset);
        slices.emplace_back(first, first + static_cast<std::ptrdiff_t>(slice.bytes));
      }
      for (auto& slice : slices) pointers.push_back(slice.data());
      const bool in_tiles = layout.scales_in_tiles();
      const uint64_t first = in_tiles ? tile_scale_count(layout, {0, begin}) : 0,
                     count = tile_scale_count(layout, tile);
      if (reads) {
        const std::vector<const uint8_t*> in(pointers.begin(), pointers.end());
        unpack_tile(layout, tile, in, scratch.data(), again.data() + begin * layout.columns,
                    std::span(read).subspan(first, count));
        continue;
      }
      pack_tile(layout, tile, out.codes.data() + begin * layout.columns, std::span(out.qparams).subspan(first, count),
                1.0f, scratch.data(), pointers);
      for (size_t c = 0; c < slices.size(); ++c)
        std::copy(slices[c].begin(), slices[c].end(),
                  out.components[c].begin() +
                      static_cast<std::ptrdiff_t>(slice_of(layout, layout.components[c], tile).offset));
    }
  CHECK(again == out.codes);
  for (size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].scale == out.qparams[i].scale);
    CHECK(read[i].zero_point == out.qparams[i].zero_point);
  }
  return out;
}

// Element i of a little-endian bit stream.
uint32_t bits_at(const uint8_t* bytes, uint64_t i, uint32_t bits) {
  return bytes[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
}

}  // namespace

TEST_CASE(
    "MatMulNBits: blocks along the inputs of each output, whole bytes of zero points, padded with the zero point") {
  for (const Dtype dtype : {Dtype::int4, Dtype::uint4, Dtype::int8, Dtype::uint8, Dtype::int2, Dtype::uint2})
    for (const bool symmetric : {true, false})
      for (const auto& [n, k, group] : {std::tuple<uint64_t, uint64_t, int64_t>{8, 64, 32},
                                        {5, 96, 32},
                                        {7, 80, 32},
                                        {3, 75, 16},
                                        {3, 72, 64},
                                        {4, 512, 256}})
        for (const uint64_t tile : {1, 3, 100}) {
          const OnnxWeight weight{"w", {k, n}, StorageDtype::F32, StorageDtype::F32, true};
          const auto layout =
              onnx_layout(OnnxForm::mat_mul_n_bits, weight, spec_of(dtype, QScheme::per_group, symmetric, group));
          REQUIRE_MESSAGE(layout, layout.error().message);
          CHECK(layout->source_transposed);
          const auto size = static_cast<uint64_t>(group), groups = (k + size - 1) / size;
          const uint32_t bits = layout->bits;
          CHECK(layout->components[0].shape == std::vector<uint64_t>{n, groups, size * bits / 8});
          CHECK(layout->components[1].shape == std::vector<uint64_t>{n, groups});
          const bool has_zero_points = !symmetric || !info_of(dtype).is_signed;
          REQUIRE(layout->components.size() == (has_zero_points ? 3 : 2));
          const Packed packed = pack(*layout, values(n * k), tile);

          const uint8_t mask = static_cast<uint8_t>((1u << bits) - 1);
          const int offset = info_of(dtype).is_signed ? 1 << (bits - 1) : 0;
          for (uint64_t row = 0; row < n; ++row)
            for (uint64_t g = 0; g < groups; ++g) {
              const QParams q = packed.qparams[row * groups + g];
              const auto zero = static_cast<uint32_t>(static_cast<int>(q.zero_point) + offset) & mask;
              if (has_zero_points)
                CHECK(bits_at(packed.components[2].data() + row * ((groups * bits + 7) / 8), g, bits) == zero);
              else
                CHECK(zero == 1u << (bits - 1));
              for (uint64_t i = 0; i < size; ++i) {
                const uint64_t column = g * size + i;
                const uint32_t stored = bits_at(packed.components[0].data(), (row * groups + g) * size + i, bits);
                const uint32_t expected =
                    column < k ? (packed.codes[row * k + column] + static_cast<uint32_t>(offset)) & mask : zero;
                CHECK(stored == expected);
              }
            }
        }
}

TEST_CASE("MatMulNBits: a weight that lies as [out, in] is read as it is; scales are in its dtype") {
  const OnnxWeight weight{"w", {6, 64}, StorageDtype::F16, StorageDtype::F16, false};
  const auto layout = onnx_layout(OnnxForm::mat_mul_n_bits, weight, spec_of(Dtype::int4, QScheme::per_group, true));
  REQUIRE(layout);
  CHECK_FALSE(layout->source_transposed);
  CHECK(layout->components[0].name_part == "w_Q4");
  CHECK(layout->components[1].name_part == "w_scales");
  CHECK(layout->components[1].dtype == StorageDtype::F16);
  CHECK(layout->components[1].bytes == 6 * 2 * 2);
  const Packed packed = pack(*layout, values(6 * 64), 2);
  for (const QParams& q : packed.qparams) {
    uint16_t half = 0;
    float wide = 0;
    kernels::narrow_f16({&q.scale, 1}, &half);
    kernels::widen_f16({&half, 1}, &wide);
    CHECK(wide == q.scale);
  }
}

TEST_CASE("DequantizeLinear: any axis, groups along both, four bits a nibble") {
  struct Case {
    Dtype dtype;
    QScheme qscheme;
    int64_t axis;
    std::vector<uint64_t> shape, scale_shape;
    bool is_input_major = false;
    int64_t stored_axis = 0;
  };
  const Case cases[] = {
      {Dtype::int8, QScheme::per_tensor, 0, {4, 6}, {}},
      {Dtype::uint8, QScheme::per_channel, 0, {4, 6}, {4}},
      {Dtype::int8, QScheme::per_channel, 0, {4, 6}, {6}, true, 1},
      {Dtype::int8, QScheme::per_channel, 0, {5, 3, 2, 2}, {5}},
      {Dtype::int4, QScheme::per_channel, 0, {5, 6}, {5}},
      {Dtype::uint4, QScheme::per_tensor, 0, {5, 6}, {}},
      {Dtype::int4, QScheme::per_tensor, 0, {3, 3}, {}},  // rows begin within a byte
      {Dtype::uint4, QScheme::per_channel, 0, {7, 5}, {7}},
      {Dtype::int4, QScheme::per_channel, 0, {4, 7}, {7}, true, 1},
      {Dtype::int2, QScheme::per_channel, 0, {7, 5}, {7}},
      {Dtype::uint2, QScheme::per_tensor, 0, {9, 3}, {}},
      {Dtype::uint4, QScheme::per_group, 1, {64, 5}, {2, 5}, true, 0},
      {Dtype::int4, QScheme::per_channel, 0, {4, 6}, {6}, true, 1},
      {Dtype::int4, QScheme::per_group, 1, {5, 64}, {5, 2}, false, 1},
      {Dtype::uint4, QScheme::per_group, 1, {64, 6}, {2, 6}, true, 0},
      {Dtype::int8, QScheme::per_group, 1, {3, 96}, {3, 3}, false, 1},
      {Dtype::uint2, QScheme::per_group, 1, {3, 96}, {3, 3}, false, 1},
  };
  for (const Case& c : cases)
    for (const bool symmetric : {true, false})
      for (const uint64_t tile : {1, 2, 50}) {
        QuantizationSpec spec = spec_of(c.dtype, c.qscheme, symmetric);
        spec.ch_axis = c.axis;
        const auto layout = onnx_layout(OnnxForm::dequantize_linear,
                                        {"w", c.shape, StorageDtype::F32, StorageDtype::F32, c.is_input_major}, spec);
        REQUIRE_MESSAGE(layout, layout.error().message);
        CHECK(layout->components[0].shape == c.shape);
        CHECK(layout->components[1].shape == c.scale_shape);
        CHECK(layout->spec.ch_axis == c.stored_axis);
        REQUIRE(layout->components.size() == (symmetric ? 2 : 3));
        uint64_t count = 1;
        for (const uint64_t dimension : c.shape) count *= dimension;
        const Packed packed = pack(*layout, values(count), tile);
        const uint32_t bits = layout->bits, mask = (1u << bits) - 1;
        for (uint64_t i = 0; i < count; ++i)
          CHECK(bits_at(packed.components[0].data(), i, bits) == (packed.codes[i] & mask));
        if (symmetric) continue;
        for (uint64_t i = 0; i < packed.qparams.size(); ++i)
          CHECK(bits_at(packed.components[2].data(), i, bits) ==
                (static_cast<uint32_t>(static_cast<int>(packed.qparams[i].zero_point)) & mask));
      }
}

TEST_CASE("batches of matrices: channels are the last dimension, except for transposed ones") {
  const auto batch_of = [](bool is_input_major) {
    return OnnxWeight{"w", {2, 4, 6}, StorageDtype::F32, StorageDtype::F32, is_input_major, true};
  };
  for (const OnnxForm form : {OnnxForm::dequantize_linear, OnnxForm::integer_operator}) {
    const auto layout = onnx_layout(form, batch_of(true), spec_of(Dtype::int8, QScheme::per_channel, true));
    REQUIRE_MESSAGE(layout, layout.error().message);
    CHECK(layout->components[0].shape == std::vector<uint64_t>{2, 4, 6});
    CHECK(layout->components[1].shape == std::vector<uint64_t>{6});
    CHECK(layout->spec.ch_axis == 2);
    pack(*layout, values(48), 1);
  }
  const auto rows =
      onnx_layout(OnnxForm::dequantize_linear, batch_of(false), spec_of(Dtype::int8, QScheme::per_channel, true));
  REQUIRE(rows);
  CHECK(rows->spec.ch_axis == 1);
  CHECK_FALSE(onnx_layout(OnnxForm::integer_operator, batch_of(false), QuantizationSpec()));
  const OnnxWeight deep{"w", {2, 64, 6}, StorageDtype::F32, StorageDtype::F32, true, true};
  const auto groups = onnx_layout(OnnxForm::dequantize_linear, deep, spec_of(Dtype::int4, QScheme::per_group, true));
  REQUIRE_MESSAGE(groups, groups.error().message);
  CHECK(groups->components[1].shape == std::vector<uint64_t>{2, 2, 6});
  CHECK(groups->spec.ch_axis == 1);
  pack(*groups, values(2 * 64 * 6), 1);
  CHECK_FALSE(onnx_layout(OnnxForm::mat_mul_n_bits, batch_of(true), spec_of(Dtype::int4, QScheme::per_group, true)));
}

TEST_CASE("scales have the type of the values, not of the stored weight") {
  const OnnxWeight cast{"w", {6, 64}, StorageDtype::F16, StorageDtype::F32, false};
  const auto layout = onnx_layout(OnnxForm::mat_mul_n_bits, cast, spec_of(Dtype::int4, QScheme::per_group, true));
  REQUIRE(layout);
  CHECK(layout->components[1].dtype == StorageDtype::F32);
  CHECK(layout->source == StorageDtype::F16);
  CHECK(onnx_layout(OnnxForm::integer_operator, cast, spec_of(Dtype::int8, QScheme::per_channel, true)));
}

TEST_CASE("integer operators and embeddings") {
  const auto conv =
      onnx_layout(OnnxForm::integer_operator, {"w", {8, 3, 3, 3}, StorageDtype::F32, StorageDtype::F32, false},
                  spec_of(Dtype::int8, QScheme::per_channel, true));
  REQUIRE(conv);
  CHECK(conv->components[1].shape == std::vector<uint64_t>{8, 1, 1});
  // Bytes of both signs are convolved several times slower.
  CHECK(conv->components[0].dtype == StorageDtype::U8);
  const Packed convolved = pack(*conv, values(216), 1);
  for (size_t i = 0; i < convolved.codes.size(); ++i)
    CHECK(convolved.components[0][i] == static_cast<uint8_t>(convolved.codes[i] + 128));
  const OnnxWeight table{"w", {10, 64}, StorageDtype::F32, StorageDtype::F32, false};
  const auto gather = onnx_layout(OnnxForm::gather_rows, table, spec_of(Dtype::uint4, QScheme::per_group, false));
  REQUIRE(gather);
  CHECK(gather->components[0].shape == std::vector<uint64_t>{10, 2, 16});
  CHECK(gather->components[2].shape == std::vector<uint64_t>{10, 2, 1});
  pack(*gather, values(640), 3);
  for (const QScheme qscheme : {QScheme::per_channel, QScheme::per_tensor}) {
    const auto rows = onnx_layout(OnnxForm::gather_rows, table, spec_of(Dtype::int8, qscheme, false));
    REQUIRE(rows);
    CHECK(rows->components[0].shape == std::vector<uint64_t>{10, 1, 64});
    CHECK(rows->components[1].shape == std::vector<uint64_t>{10, 1, 1});
    pack(*rows, values(640), 3);
  }
}

TEST_CASE("MatMulNBits: a scale of a channel, a tensor or a long group is repeated for each block of it") {
  struct Case {
    QScheme qscheme;
    int64_t group;
    uint64_t columns, block;
  };
  const Case cases[] = {
      {QScheme::per_channel, 0, 384, 128}, {QScheme::per_channel, 0, 576, 64},  {QScheme::per_channel, 0, 4096, 256},
      {QScheme::per_channel, 0, 40, 16},   {QScheme::per_tensor, 0, 96, 32},    {QScheme::per_group, 48, 96, 16},
      {QScheme::per_group, 96, 96, 32},    {QScheme::per_group, 512, 640, 128}, {QScheme::per_group, 1024, 1024, 256},
  };
  for (const Case& c : cases)
    for (const Dtype dtype : {Dtype::int8, Dtype::uint8, Dtype::int4})
      for (const uint64_t tile : {1, 2, 50}) {
        const OnnxWeight weight{"w", {3, c.columns}, StorageDtype::F32, StorageDtype::F32, false};
        const bool symmetric = dtype != Dtype::uint8;
        const auto layout =
            onnx_layout(OnnxForm::mat_mul_n_bits, weight, spec_of(dtype, c.qscheme, symmetric, c.group));
        REQUIRE_MESSAGE(layout, layout.error().message);
        const uint64_t blocks = (c.columns + c.block - 1) / c.block, bits = layout->bits;
        CHECK(layout->components[0].shape == std::vector<uint64_t>{3, blocks, c.block * bits / 8});
        CHECK(layout->components[1].shape == std::vector<uint64_t>{3, blocks});
        const Packed packed = pack(*layout, values(3 * c.columns), tile);
        const uint64_t groups = packed.qparams.size() / 3;  // of a row; 0: one scale for all
        for (uint64_t row = 0; row < 3; ++row)
          for (uint64_t block = 0; block < blocks; ++block) {
            const uint64_t in_row = groups > 1 ? block * c.block / static_cast<uint64_t>(c.group) : 0;
            const QParams& q = packed.qparams[row * groups + in_row];
            float scale = 0;
            std::memcpy(&scale, packed.components[1].data() + 4 * (row * blocks + block), 4);
            CHECK(scale == q.scale);
            if (!symmetric) CHECK(packed.components[2][row * blocks + block] == static_cast<uint8_t>(q.zero_point));
          }
      }
}

TEST_CASE("a form refuses what it cannot hold") {
  const OnnxWeight matrix{"w", {64, 64}, StorageDtype::F32, StorageDtype::F32, true},
      conv{"w", {8, 3, 3, 3}, StorageDtype::F32, StorageDtype::F32, false};
  const auto problem = [](OnnxForm form, const OnnxWeight& weight, const QuantizationSpec& spec) {
    const auto layout = onnx_layout(form, weight, spec);
    CHECK_FALSE(layout);
    if (layout) return std::string();
    CHECK(layout.error().where == "w");
    return layout.error().message;
  };
  const auto group = [](Dtype dtype, int64_t size) { return spec_of(dtype, QScheme::per_group, true, size); };
  for (const int64_t size : {8, 40, -1})
    CHECK(problem(OnnxForm::mat_mul_n_bits, matrix, group(Dtype::int4, size)).find("multiple of 16") !=
          std::string::npos);
  problem(OnnxForm::mat_mul_n_bits, matrix, group(Dtype::int3, 32));
  problem(OnnxForm::mat_mul_n_bits, matrix, group(Dtype::fp4, 32));
  QuantizationSpec inputs = spec_of(Dtype::int8, QScheme::per_channel, true);
  inputs.ch_axis = 1;
  problem(OnnxForm::mat_mul_n_bits, matrix, inputs);
  problem(OnnxForm::mat_mul_n_bits, conv, group(Dtype::int4, 32));
  problem(OnnxForm::dequantize_linear, conv, group(Dtype::int4, 32));
  problem(OnnxForm::dequantize_linear, matrix, spec_of(Dtype::int16, QScheme::per_tensor, true));
  problem(OnnxForm::integer_operator, matrix, spec_of(Dtype::int4, QScheme::per_tensor, true));
  problem(OnnxForm::integer_operator, matrix, group(Dtype::int8, 32));
  problem(OnnxForm::integer_operator, conv, spec_of(Dtype::uint8, QScheme::per_channel, false));
  problem(OnnxForm::gather_rows, {"w", {64, 63}, StorageDtype::F32, StorageDtype::F32, false}, group(Dtype::int4, 7));
  problem(OnnxForm::gather_rows, {"w", {64, 72}, StorageDtype::F32, StorageDtype::F32, false}, group(Dtype::int4, 32));
}
