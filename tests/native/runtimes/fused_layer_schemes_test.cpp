// What the parts of joined layers have to share so that vLLM loads the file.
#include "runtimes/loaders/fused_layer_schemes.h"

#include <doctest/doctest.h>

using namespace wasmquant;

namespace {

LayerPlan part_of(const char* name, Stages weight, uint64_t columns = 256) {
  LayerPlan layer{name, "Linear", std::move(weight), {}, {}};
  layer.columns = columns;
  return layer;
}

Stages groups_of(int64_t size) {
  Stages stages(1);
  stages.front().dtype = Dtype::int4;
  stages.front().qscheme = QScheme::per_group;
  stages.front().ch_axis = -1;
  stages.front().group_size = size;
  return stages;
}

}  // namespace

TEST_CASE("fused schemes: leaving one part leaves its fused parts, too, and nothing else") {
  FusedLayerSchemes joined(true);
  CHECK(joined.update({part_of("a.q_proj", groups_of(32)), part_of("a.k_proj", {}), part_of("a.o_proj", groups_of(32)),
                       part_of("b.q_proj", groups_of(32)), part_of("b.k_proj", groups_of(32))}));
  CHECK(joined.reason_to_leave("a.q_proj").find("a.k_proj") != std::string_view::npos);
  CHECK(joined.reason_to_leave("a.o_proj").empty());
  CHECK(joined.reason_to_leave("b.q_proj").empty());
  CHECK_FALSE(joined.warning());
  CHECK_FALSE(joined.update({part_of("a.q_proj", {}), part_of("a.k_proj", {})}));
}

TEST_CASE("fused schemes: a part that is only cast to 16 bits counts as left") {
  Stages cast(1);
  cast.front().dtype = Dtype::bfloat16;
  FusedLayerSchemes joined(true);
  CHECK_FALSE(joined.update({part_of("a.q_proj", cast), part_of("a.k_proj", {})}));
  CHECK(joined.update({part_of("a.q_proj", cast), part_of("a.k_proj", groups_of(32))}));
}

TEST_CASE("fused schemes: a fallback group size divides the axis of every part") {
  FusedLayerSchemes joined(true);
  const char *gate = "experts.0.gate_proj", *down = "experts.0.down_proj";
  CHECK(joined.update({part_of(gate, groups_of(128), 256), part_of(down, groups_of(64), 64)}));
  CHECK(joined.common_axis(gate, 256) == 64);
  CHECK(joined.common_axis("experts.9.up_proj", 256) == 64);
  CHECK(joined.common_axis("o_proj", 256) == 256);
  CHECK_FALSE(joined.update({part_of(gate, groups_of(64), 256), part_of(down, groups_of(64), 64)}));
  CHECK_FALSE(joined.warning());
}

TEST_CASE("fused schemes: an explicit config is followed, with one warning") {
  for (const bool may_leave : {true, false}) {
    LayerPlan kept = part_of("a.k_proj", {});
    kept.is_requested = may_leave;
    FusedLayerSchemes joined(may_leave);
    CHECK_FALSE(joined.update({part_of("a.q_proj", groups_of(32)), kept}));
    CHECK(joined.reason_to_leave("a.q_proj").empty());
    REQUIRE(joined.warning());
    CHECK(joined.warning()->code == "fused-layers");
    CHECK(joined.warning()->message.find("a.k_proj") != std::string::npos);
  }
  FusedLayerSchemes mixed(false);
  List<LayerPlan> layers = {part_of("a.q_proj", groups_of(32)), part_of("a.k_proj", groups_of(64))};
  while (mixed.update(layers)) {
  }
  REQUIRE(mixed.warning());
  CHECK(mixed.warning()->where == "a.k_proj.weight");
  layers[1].weight = groups_of(32);
  CHECK_FALSE(mixed.update(layers));
  CHECK_FALSE(mixed.warning());
}
