// Words of GPTQ checkpoints by hand: version 1 of 4 and 8 bits, version 2.
#include <doctest/doctest.h>

#include <cstring>

#include "tools/gptq_awq/transposed_words.h"

using namespace wasmquant;

namespace {

WeightLayout gptq_words_layout_of(Dtype dtype, bool symmetric) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  spec.qscheme = QScheme::per_group;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  spec.ch_axis = -1;
  spec.group_size = 8;
  auto layout = Gptq().layout({"a", "Linear", {8, 8}, StorageDtype::F32}, {spec});
  REQUIRE(bool(layout));
  return *layout;
}

// Row r holds the codes first + r + column; every zero point is `zero`. Answers the first word of codes and of zeros.
std::pair<uint32_t, uint32_t> first_words(const WeightLayout& layout, int first, float zero) {
  std::vector<uint8_t> codes(64), scratch(64);
  for (int i = 0; i < 64; ++i) codes[i] = static_cast<uint8_t>(first + i / 8 + i % 8);
  const std::vector<QParams> qparams(8, QParams{1.0f, zero});
  List<std::vector<uint8_t>> slices;
  List<uint8_t*> out;
  for (const Component& component : layout.components) slices.emplace_back(component.bytes);
  for (std::vector<uint8_t>& slice : slices) out.push_back(slice.data());
  pack_tile(layout, {0, 8}, codes.data(), qparams, 1, scratch.data(), {out.data(), out.size()});
  std::vector<uint8_t> again(64);
  std::vector<QParams> zeros(8);
  List<const uint8_t*> in;
  for (const std::vector<uint8_t>& slice : slices) in.push_back(slice.data());
  unpack_tile(layout, {0, 8}, {in.data(), in.size()}, scratch.data(), again.data(), zeros);
  CHECK(again == codes);
  for (const QParams& q : zeros) CHECK(q.zero_point == zero);
  std::pair<uint32_t, uint32_t> words;
  std::memcpy(&words.first, slices[0].data(), 4);
  std::memcpy(&words.second, slices[2].data(), 4);
  return words;
}

}  // namespace

TEST_CASE("gptq: version 1 stores unsigned codes and zero points minus 1") {
  const WeightLayout four = gptq_words_layout_of(Dtype::int4, true), eight = gptq_words_layout_of(Dtype::int8, true);
  CHECK(four.components[0].shape == std::vector<uint64_t>{1, 8});
  CHECK(four.components[2].shape == std::vector<uint64_t>{1, 1});
  CHECK(first_words(four, -8, 0) == std::pair<uint32_t, uint32_t>(0x76543210, 0x77777777));
  CHECK(eight.components[0].shape == std::vector<uint64_t>{2, 8});
  CHECK(eight.components[2].shape == std::vector<uint64_t>{1, 2});
  CHECK(first_words(eight, -128, 0) == std::pair<uint32_t, uint32_t>(0x03020100, 0x7F7F7F7F));
}

TEST_CASE("gptq: a symmetric zero point stored without the minus 1 means the middle; none wraps") {
  for (const Dtype dtype : {Dtype::int4, Dtype::int8}) {
    const WeightLayout layout = gptq_words_layout_of(dtype, true);
    const uint32_t bits = layout.bits, middle = 1u << (bits - 1);
    for (uint32_t stored = 0; stored < 2 * middle; ++stored) {
      List<std::vector<uint8_t>> slices;
      List<const uint8_t*> in;
      for (const Component& component : layout.components) slices.emplace_back(component.bytes);
      for (uint8_t& byte : slices[2]) byte = static_cast<uint8_t>(bits == 4 ? stored * 17 : stored);
      for (const std::vector<uint8_t>& slice : slices) in.push_back(slice.data());
      std::vector<uint8_t> codes(64), scratch(64);
      std::vector<QParams> zeros(8);
      unpack_tile(layout, {0, 8}, {in.data(), in.size()}, scratch.data(), codes.data(), zeros);
      const auto code = static_cast<float>(stored == middle ? stored : stored + 1);
      for (const QParams& q : zeros) CHECK(q.zero_point == code - static_cast<float>(middle));
    }
  }
}

TEST_CASE("gptq: version 2 stores codes and zero points unchanged") {
  CHECK(first_words(gptq_words_layout_of(Dtype::uint4, false), 1, 0) == std::pair<uint32_t, uint32_t>(0x87654321, 0));
  CHECK(first_words(gptq_words_layout_of(Dtype::uint4, false), 1, 9) ==
        std::pair<uint32_t, uint32_t>(0x87654321, 0x99999999));
  CHECK(first_words(gptq_words_layout_of(Dtype::uint8, false), 200, 255) ==
        std::pair<uint32_t, uint32_t>(0xCBCAC9C8, 0xFFFFFFFF));
}

TEST_CASE("gptq: a model has one version") {
  LayerPlan a{"a", "Linear", Stages{gptq_words_layout_of(Dtype::int4, true).spec}, {}, {}};
  LayerPlan b{"b", "Linear", Stages{gptq_words_layout_of(Dtype::uint4, false).spec}, {}, {}};
  LayerPlan c{"c", "Linear", Stages{gptq_words_layout_of(Dtype::int8, true).spec}, {}, {}};
  CHECK(bool(Gptq().check({a, c})));
  const Status mixed = Gptq().check({a, b});
  REQUIRE_FALSE(bool(mixed));
  CHECK(mixed.error().where == "b");
  const json::Value block = Gptq().quantization_config({}, {a, c}, {});
  CHECK(block["bits"].as_integer() == 4);
  CHECK(block["dynamic"]["+:^c$"]["bits"].as_integer() == 8);
  CHECK(Gptq().quantization_config({}, {b}, {})["checkpoint_format"].as_string() == "gptq_v2");
}

namespace {

// The words of one row, code `column % levels`, of GPTQ's own loop for 3 bits: ten codes, one across, ten, one across.
std::vector<uint32_t> words_of_three_bits(size_t columns) {
  std::vector<uint32_t> words;
  const auto code = [](size_t i) { return static_cast<uint32_t>(i * 5 % 8); };
  for (size_t i = 0; i < columns; i += 32) {
    uint32_t word = 0;
    for (size_t j = 0; j < 10; ++j) word |= code(i + j) << (3 * j);
    words.push_back(word | code(i + 10) << 30);
    word = code(i + 10) >> 2 & 1;
    for (size_t j = 0; j < 10; ++j) word |= code(i + 11 + j) << (3 * j + 1);
    words.push_back(word | code(i + 21) << 31);
    word = code(i + 21) >> 1 & 3;
    for (size_t j = 0; j < 10; ++j) word |= code(i + 22 + j) << (3 * j + 2);
    words.push_back(word);
  }
  return words;
}

WeightLayout wide_layout(Dtype dtype, bool symmetric, int64_t group, uint64_t rows, uint64_t columns) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  spec.qscheme = QScheme::per_group;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  spec.ch_axis = -1;
  spec.group_size = group;
  auto layout = Gptq().layout({"a", "Linear", {rows, columns}, StorageDtype::F32}, {spec});
  REQUIRE(bool(layout));
  return *layout;
}

}  // namespace

TEST_CASE("gptq: 3 bits are 32 codes in three words, zero points likewise") {
  const WeightLayout layout = wide_layout(Dtype::uint3, false, 32, 32, 64);
  CHECK(layout.components[0].shape == std::vector<uint64_t>{6, 32});
  CHECK(layout.components[2].shape == std::vector<uint64_t>{2, 3});
  std::vector<uint8_t> codes(32 * 64), scratch(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i % 64 * 5 % 8);
  std::vector<QParams> qparams(64);  // [rows, groups]
  for (size_t i = 0; i < 64; ++i) qparams[i] = {1.0f, static_cast<float>(i / 2 * 5 % 8)};
  const std::vector<uint32_t> expected = words_of_three_bits(64);
  std::vector<uint32_t> words(6 * 32), zeros(6);
  std::vector<uint16_t> scales(64);
  for (const uint64_t begin : {0, 32}) {  // tile by tile
    const TileRange tile{begin, begin + 32};
    std::vector<uint8_t> tile_codes;
    std::vector<QParams> tile_scales;
    for (size_t row = 0; row < 32; ++row) {
      tile_codes.insert(tile_codes.end(), codes.begin() + static_cast<std::ptrdiff_t>(row * 64 + begin),
                        codes.begin() + static_cast<std::ptrdiff_t>(row * 64 + begin + 32));
      tile_scales.push_back(qparams[2 * row + begin / 32]);
    }
    List<uint8_t*> out;
    for (size_t c = 0; c < 4; ++c) {
      uint8_t* const whole[] = {reinterpret_cast<uint8_t*>(words.data()), reinterpret_cast<uint8_t*>(scales.data()),
                                reinterpret_cast<uint8_t*>(zeros.data()), nullptr};
      out.push_back(whole[c] == nullptr ? nullptr : whole[c] + slice_of(layout, layout.components[c], tile).offset);
    }
    std::vector<uint8_t> index(layout.components[3].bytes);
    out[3] = index.data();
    pack_tile(layout, tile, tile_codes.data(), tile_scales, 1, scratch.data(), {out.data(), out.size()});
    std::vector<uint8_t> again(tile_codes.size());
    std::vector<QParams> found(32);
    List<const uint8_t*> in;
    for (uint8_t* slice : out) in.push_back(slice);
    unpack_tile(layout, tile, {in.data(), in.size()}, scratch.data(), again.data(), found);
    CHECK(again == tile_codes);
    for (size_t row = 0; row < 32; ++row) CHECK(found[row].zero_point == tile_scales[row].zero_point);
  }
  for (size_t row = 0; row < 32; ++row)
    for (size_t word = 0; word < 6; ++word) CHECK(words[word * 32 + row] == expected[word]);
  const std::vector<uint32_t> zero_words = words_of_three_bits(32);
  for (size_t i = 0; i < 6; ++i) CHECK(zeros[i] == zero_words[i % 3]);
}

TEST_CASE("gptq: 2 bits are sixteen codes in a word; rows and groups make whole words") {
  const WeightLayout two = wide_layout(Dtype::int2, true, 16, 16, 32);
  CHECK(two.components[0].shape == std::vector<uint64_t>{2, 16});
  CHECK(two.components[2].shape == std::vector<uint64_t>{2, 1});
  CHECK(two.zero_offset == -1);
  QuantizationSpec spec = two.spec;
  spec.group_size = 8;
  CHECK_FALSE(bool(Gptq().layout({"a", "Linear", {16, 32}, StorageDtype::F32}, {spec})));
  spec.group_size = 16;
  CHECK_FALSE(bool(Gptq().layout({"a", "Linear", {8, 32}, StorageDtype::F32}, {spec})));
  spec.dtype = Dtype::int3;
  CHECK_FALSE(bool(Gptq().layout({"a", "Linear", {32, 32}, StorageDtype::F32}, {spec})));
}
