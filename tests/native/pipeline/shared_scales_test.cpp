// Weights that vLLM joins into one matrix, or that the config names, share the scale of the whole tensor.
#include "pipeline/task/shared_scales.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "pipeline/memory_model.h"
#include "random_values.h"

namespace wasmquant::testing {
namespace {

constexpr const char* kNvfp4 =
    R"({"dtype":"fp4","qscheme":"per_group","group_size":16,"ch_axis":-1,"scale_format":"e4m3"%})";
constexpr const char* kQuarkNvfp4 = R"([{"dtype":"fp4","qscheme":"per_group","group_size":16,"ch_axis":-1},
    {"dtype":"fp8_e4m3","qscheme":"per_tensor","is_scale_quant":true}])";

std::string with(std::string text, const std::string& more) {
  if (const size_t at = text.find('%'); at != std::string::npos) text.replace(at, 1, more);
  return text;
}
std::string config_of(const std::string& weight, const std::string& more = "") {
  return R"({"global_quant_config":{"weight":)" + weight + "}" + more + "}";
}

Tensor weight_of(const std::string& name, uint64_t rows, float magnitude, StorageDtype dtype = StorageDtype::F32) {
  Tensor tensor{name + ".weight", dtype, {rows, 64}, RandomValues(static_cast<uint32_t>(rows)).vector(rows * 64)};
  float largest = 0;
  for (const float v : tensor.values) largest = std::max(largest, std::abs(v));
  for (float& v : tensor.values) v *= magnitude / largest;
  return tensor;
}

// The parts of each joined layer are in different files, and of one dtype but for a gate_proj of another.
MemoryModel split_model(StorageDtype gate = StorageDtype::BF16) {
  MemoryModel model;
  model.add_file(
      "model-00001-of-00002.safetensors",
      {weight_of("l.0.attn.q_proj", 48, 1.0f), weight_of("l.0.mlp.gate_proj", 80, 0.5f, gate),
       weight_of("l.0.mlp.experts.0.w1", 32, 0.25f), weight_of("l.0.attn.q_a_proj", 32, 3.0f, StorageDtype::F16)});
  model.add_file("model-00002-of-00002.safetensors",
                 {weight_of("l.0.attn.k_proj", 16, 8.0f), weight_of("l.0.attn.v_proj", 24, 0.125f),
                  weight_of("l.0.attn.o_proj", 24, 2.0f), weight_of("l.0.mlp.up_proj", 80, 64.0f, StorageDtype::BF16),
                  weight_of("l.0.mlp.experts.0.w3", 32, 1.0f), weight_of("l.0.mlp.experts.1.w1", 32, 16.0f),
                  weight_of("l.0.attn.kv_a_proj_with_mqa", 32, 5.0f, StorageDtype::F16)});
  return model;
}

// A stored scale: quark's have the dtype of the weight.
float scale_at(const uint8_t* bytes, StorageDtype dtype) {
  float value = 0;
  uint16_t half = 0;
  switch (dtype) {
    case StorageDtype::F32:
      std::memcpy(&value, bytes, sizeof(value));
      return value;
    case StorageDtype::BF16:
      std::memcpy(&half, bytes, sizeof(half));
      kernels::widen_bf16({&half, 1}, &value);
      return value;
    case StorageDtype::F16:
      std::memcpy(&half, bytes, sizeof(half));
      kernels::widen_f16({&half, 1}, &value);
      return value;
    default:
      FAIL("a scale of another dtype");
      return value;
  }
}

struct Made {
  std::map<std::string, float> scales;  // of whole tensors, by layer
  List<Diagnostic> diagnostics;

  float operator[](const std::string& layer) const { return scales.at(layer); }
  bool says(std::string_view code) const {
    for (const Diagnostic& each : diagnostics)
      if (each.code == code) return true;
    return false;
  }
};

Made scales_of(const MemoryModel& source, const std::string& config, const char* format, const char* component,
               bool reverse = false) {
  PlanOptions options;
  options.format = format;
  options.experts = ExpertChoice::include;
  options.tile_bytes = {2048, 2048};
  Made made;
  const ModelIndex index = source.index();
  auto plan = make_plan(index, config, options, made.diagnostics);
  REQUIRE_MESSAGE(bool(plan), plan.error().message);
  auto run = run_plan(source, *plan, reverse);
  REQUIRE_MESSAGE(bool(run), run.error().message);
  for (const PlannedTensor& planned : plan->tensors)
    for (size_t c = 0; c < planned.outputs().size(); ++c) {
      if (!planned.outputs()[c].name_part.ends_with(component)) continue;
      const Location& at = planned.task.components[c];
      made.scales[planned.weight.layer] =
          scale_at(run->model.files[at.file].data() + at.offset, planned.outputs()[c].dtype);
    }
  return made;
}

}  // namespace

TEST_CASE("shared scales: the parts of a joined layer get the second scale of all their values, across files") {
  const MemoryModel model = split_model();
  const struct {
    std::string weight;
    const char *format, *component;
  } cases[] = {
      {with(kNvfp4, ""), "compressed-tensors", "weight_global_scale"},
      {with(kNvfp4, ""), "quark", "weight_scale_2"},
      {kQuarkNvfp4, "quark", "weight_scale_2"},
      {with(kNvfp4, R"(,"observer_cls":"PerGroupMSEObserver")"), "compressed-tensors", "weight_global_scale"},
  };
  for (const auto& [weight, format, component] : cases) {
    CAPTURE(weight);
    CAPTURE(format);
    for (const bool reverse : {false, true}) {
      const Made made = scales_of(model, config_of(weight), format, component, reverse);
      // o_proj has the largest magnitude 2 and shares nothing. compressed-tensors stores divisors.
      const auto scale = [&](const char* layer) {
        const float one = made["l.0.attn.o_proj"], other = made[std::string("l.0.") + layer];
        return std::string_view(format) == "quark" ? one / other : other / one;
      };
      CHECK(scale("attn.q_proj") == doctest::Approx(2.0f / 8));
      CHECK(made["l.0.attn.k_proj"] == made["l.0.attn.q_proj"]);
      CHECK(made["l.0.attn.v_proj"] == made["l.0.attn.q_proj"]);
      // Quark's scales of 16-bit weights have 8 or 11 bits.
      CHECK(scale("mlp.up_proj") == doctest::Approx(2.0f / 64).epsilon(4e-3));
      CHECK(made["l.0.mlp.gate_proj"] == made["l.0.mlp.up_proj"]);
      CHECK(scale("attn.q_a_proj") == doctest::Approx(2.0f / 5).epsilon(1e-3));
      CHECK(made["l.0.attn.kv_a_proj_with_mqa"] == made["l.0.attn.q_a_proj"]);
      CHECK(scale("mlp.experts.0.w1") == doctest::Approx(2.0f / 1));
      CHECK(made["l.0.mlp.experts.0.w3"] == made["l.0.mlp.experts.0.w1"]);
      CHECK(scale("mlp.experts.1.w1") == doctest::Approx(2.0f / 16));
      CHECK_FALSE(made.says("fused-layers"));
    }
  }
}

TEST_CASE(
    "shared scales: parts of two dtypes whose scales Quark rounds differently keep separate scales, with a warning") {
  const MemoryModel model = split_model(StorageDtype::F32);
  const Made made = scales_of(model, config_of(kQuarkNvfp4), "quark", "weight_scale_2");
  CHECK(made["l.0.mlp.gate_proj"] != made["l.0.mlp.up_proj"]);
  CHECK(made.says("fused-layers"));
  CHECK(made["l.0.attn.k_proj"] == made["l.0.attn.q_proj"]);
}

TEST_CASE("shared scales: an empty list turns them off, with a warning; other groups are those of the config") {
  const MemoryModel model = split_model();
  const std::string nvfp4 = with(kNvfp4, "");
  const Made own =
      scales_of(model, config_of(nvfp4, R"(,"shared_scale_groups":[])"), "compressed-tensors", "weight_global_scale");
  CHECK(own["l.0.attn.k_proj"] != own["l.0.attn.q_proj"]);
  CHECK(own["l.0.mlp.gate_proj"] != own["l.0.mlp.up_proj"]);
  CHECK(own.says("fused-layers"));
  const Made some = scales_of(model, config_of(nvfp4, R"(,"shared_scale_groups":[["q_proj","o_proj"]])"),
                              "compressed-tensors", "weight_global_scale");
  CHECK(some["l.0.attn.q_proj"] == some["l.0.attn.o_proj"]);
  CHECK(some["l.0.attn.k_proj"] != some["l.0.attn.q_proj"]);
  CHECK(some.says("fused-layers"));
  const Made null =
      scales_of(model, config_of(nvfp4, R"(,"shared_scale_groups":null)"), "compressed-tensors", "weight_global_scale");
  CHECK(null["l.0.attn.k_proj"] == null["l.0.attn.q_proj"]);
}

TEST_CASE("shared scales: groups of the config share scales per tensor too, as in AMD Quark; joined layers do not") {
  const MemoryModel model = split_model();
  const std::string groups = R"(,"shared_scale_groups":[["q_proj","k_proj","v_proj"],["gate_proj","up_proj"]])";
  for (const char* weight : {R"({"dtype":"fp8_e4m3","qscheme":"per_tensor"})",
                             R"({"dtype":"int8","qscheme":"per_tensor","symmetric":true})"}) {
    CAPTURE(weight);
    const Made own = scales_of(model, config_of(weight), "quark", "weight_scale");
    CHECK(own["l.0.attn.k_proj"] != own["l.0.attn.q_proj"]);
    CHECK_FALSE(own.says("fused-layers"));
    const Made shared = scales_of(model, config_of(weight, groups), "quark", "weight_scale");
    CHECK(shared["l.0.attn.q_proj"] == own["l.0.attn.k_proj"]);
    CHECK(shared["l.0.attn.v_proj"] == own["l.0.attn.k_proj"]);
    CHECK(shared["l.0.mlp.gate_proj"] == own["l.0.mlp.up_proj"]);
    CHECK(shared["l.0.attn.o_proj"] == own["l.0.attn.o_proj"]);
  }
  const Made none = scales_of(model, config_of(R"({"dtype":"int8","qscheme":"per_channel","ch_axis":0})", groups),
                              "quark", "weight_scale");
  CHECK(none.says("no-effect"));
  PlanOptions options;
  options.format = "quark";
  List<Diagnostic> diagnostics;
  const ModelIndex index = model.index();
  const auto refused =
      make_plan(index, config_of(R"({"dtype":"int8","observer_cls":"PerTensorPercentileObserver"})", groups), options,
                diagnostics);
  REQUIRE_FALSE(bool(refused));
  CHECK(refused.error().message.find("shared_scale_groups") != std::string::npos);
}

}  // namespace wasmquant::testing
