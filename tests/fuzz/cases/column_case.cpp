#include "cases/column_case.h"

#include <cmath>
#include <vector>

#include "algorithms/column_run.h"
#include "choices.h"
#include "digest.h"
#include "require.h"

namespace wasmquant::fuzz {
namespace {

QuantizationSpec column_spec(Choices& choose) {
  constexpr Dtype kDtypes[] = {Dtype::int2, Dtype::int4,     Dtype::uint4,    Dtype::int8,    Dtype::int16,
                               Dtype::fp4,  Dtype::fp8_e4m3, Dtype::fp6_e3m2, Dtype::bfloat16};
  constexpr ScaleFormat kFormats[] = {ScaleFormat::float32, ScaleFormat::float32, ScaleFormat::e8m0, ScaleFormat::e4m3,
                                      ScaleFormat::e5m3};
  constexpr QScheme kSchemes[] = {QScheme::per_group, QScheme::per_group, QScheme::per_channel, QScheme::per_tensor};
  constexpr int64_t kGroups[] = {-1, 1, 2, 3, 5, 8, 16, 17, 32, 33, 64, 1000};
  QuantizationSpec spec;
  spec.dtype = kDtypes[choose.below(std::size(kDtypes))];
  const bool is_integer = info_of(spec.dtype).is_integer;
  spec.symmetric = !is_integer || info_of(spec.dtype).is_signed;
  spec.qscheme = kSchemes[choose.below(std::size(kSchemes))];
  spec.ch_axis = choose.below(8) == 0 ? 1 - (spec.qscheme == QScheme::per_group) : spec.qscheme == QScheme::per_group;
  spec.group_size = kGroups[choose.below(std::size(kGroups))];
  spec.observer = min_max_observer_for(spec.qscheme);
  spec.grid.pads_groups = choose.below(4) != 0;
  if (!is_integer && spec.qscheme == QScheme::per_group)
    spec.scale_format = kFormats[choose.below(std::size(kFormats))];
  return spec;
}

ColumnLayer column_layer(Choices& choose) {
  ColumnLayer layer{1 + choose.below(choose.below(8) == 0 ? 70 : 4), 1 + choose.below(48), {}, {}, {}};
  const size_t tokens = 1 + choose.below(6);
  for (size_t i = 0; i < layer.rows * layer.columns; ++i)
    layer.weight.push_back(std::fmod(choose.number(false), 64.0f));
  for (size_t i = 0; i < tokens * layer.columns; ++i) {
    layer.x.push_back(std::fmod(choose.number(false), 16.0f));
    layer.changed.push_back(layer.x.back() + static_cast<float>(choose.byte()) / 512);
  }
  return layer;
}

}  // namespace

uint64_t run_column_case(std::span<const uint8_t> input) {
  Choices choose(input);
  Digest digest;
  const auto method = static_cast<ColumnMethod>(choose.below(kColumnMethods));
  const QuantizationSpec spec = column_spec(choose);
  GptqOptions options;
  options.desc_act = choose.flag();
  options.static_groups = choose.flag();
  options.block_size = 1 + choose.below(40);
  const ColumnLayer layer = column_layer(choose);
  const Result<ColumnResult> found = run_columns(method, layer, spec, options);
  if (!found) {
    digest.add(found.error().message);
    return digest.value();
  }
  if (!found->codes.empty()) {
    const auto g = granularity_of({layer.rows, layer.columns}, spec);
    require(g && found->qparams.size() == g->scale_count());
    // Act-order: groups are not runs of columns.
    const bool is_reordered = options.desc_act && !options.static_groups && spec.qscheme == QScheme::per_group;
    std::vector<float> values(found->values.size());
    dequantize(*g, spec, found->qparams, found->codes.data(), values.size(), 0, values.data());
    for (size_t i = 0; i < values.size(); ++i)
      require(is_reordered || values[i] == found->values[i] || (std::isnan(values[i]) && std::isnan(found->values[i])));
  }
  digest.add(found->values);
  for (const QParams& q : found->qparams) digest.add(q.scale), digest.add(q.zero_point);
  return digest.value();
}

}  // namespace wasmquant::fuzz
