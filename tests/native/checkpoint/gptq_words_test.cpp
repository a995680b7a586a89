// Words of GPTQ checkpoints by hand: version 1 of 4 and 8 bits, version 2.
#include <doctest/doctest.h>

#include <cstring>

#include "checkpoint/transposed_words.h"

using namespace wasmquant;

namespace {

WeightLayout layout_of(Dtype dtype, bool symmetric) {
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

TEST_CASE("gptq: version 1 has codes from the middle and zero points less 1") {
  const WeightLayout four = layout_of(Dtype::int4, true), eight = layout_of(Dtype::int8, true);
  CHECK(four.components[0].shape == std::vector<uint64_t>{1, 8});
  CHECK(four.components[2].shape == std::vector<uint64_t>{1, 1});
  CHECK(first_words(four, -8, 0) == std::pair<uint32_t, uint32_t>(0x76543210, 0x77777777));
  CHECK(eight.components[0].shape == std::vector<uint64_t>{2, 8});
  CHECK(eight.components[2].shape == std::vector<uint64_t>{1, 2});
  CHECK(first_words(eight, -128, 0) == std::pair<uint32_t, uint32_t>(0x03020100, 0x7F7F7F7F));
}

TEST_CASE("gptq: version 2 has codes and zero points as they are") {
  CHECK(first_words(layout_of(Dtype::uint4, false), 1, 0) == std::pair<uint32_t, uint32_t>(0x87654321, 0));
  CHECK(first_words(layout_of(Dtype::uint4, false), 1, 9) == std::pair<uint32_t, uint32_t>(0x87654321, 0x99999999));
  CHECK(first_words(layout_of(Dtype::uint8, false), 200, 255) == std::pair<uint32_t, uint32_t>(0xCBCAC9C8, 0xFFFFFFFF));
}

TEST_CASE("gptq: one version in a model") {
  LayerOutcome a{"a", "Linear", {layout_of(Dtype::int4, true).spec}, {}, {}};
  LayerOutcome b{"b", "Linear", {layout_of(Dtype::uint4, false).spec}, {}, {}};
  LayerOutcome c{"c", "Linear", {layout_of(Dtype::int8, true).spec}, {}, {}};
  CHECK(bool(Gptq().check({a, c})));
  const Status mixed = Gptq().check({a, b});
  REQUIRE_FALSE(bool(mixed));
  CHECK(mixed.error().where == "b");
  const json::Value block = Gptq().quantization_config({}, {a, c});
  CHECK(block["bits"].as_integer() == 4);
  CHECK(block["dynamic"]["+:^c$"]["bits"].as_integer() == 8);
  CHECK(Gptq().quantization_config({}, {b})["checkpoint_format"].as_string() == "gptq_v2");
}
