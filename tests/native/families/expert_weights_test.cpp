// Where the matrices of experts lie in one tensor.
#include "families/expert_weights.h"

#include <doctest/doctest.h>

using namespace wasmquant::families;

TEST_CASE("tensors of experts by name and shape") {
  CHECK(is_expert_tensor("model.layers.0.mlp.experts.gate_up_proj", {4, 8, 6}));
  CHECK(is_expert_tensor("model.layers.0.mlp.experts.down_proj.weight", {4, 8, 6}));
  CHECK(is_expert_tensor("model.layers.0.block_sparse_moe.input_linear.weight", {4, 8, 6}));
  CHECK_FALSE(is_expert_tensor("model.layers.0.shared_mlp.input_linear.weight", {8, 6}));
  CHECK_FALSE(is_expert_tensor("model.layers.0.mlp.experts.gate_up_proj_bias", {4, 8, 6}));
  CHECK_FALSE(is_expert_tensor("model.layers.0.conv1d.weight", {4, 1, 6}));
  CHECK_FALSE(is_expert_tensor("model.layers.0.mlp.gate_up_proj", {4, 8, 6}));
  CHECK(is_expert_tensor("model.layers.0.mlp.experts.gate_up_proj", {kMaxExperts, 8, 6}));
  CHECK_FALSE(is_expert_tensor("model.layers.0.mlp.experts.gate_up_proj", {uint64_t{1} << 43, 0, 6}));
  CHECK_FALSE(is_expert_tensor("model.layers.0.mlp.switch_mlp.up_proj.weight", {4, 8, 6}));
  CHECK(are_experts_in_rows("transformer.blocks.0.ffn.experts.mlp.w1", 2));
  CHECK(are_experts_in_rows("transformer.blocks.0.ffn.experts.mlp.v1", 2));
  CHECK_FALSE(are_experts_in_rows("model.layers.0.mlp.experts.0.w1.weight", 2));
  CHECK_FALSE(are_experts_in_rows("transformer.blocks.0.ffn.experts.mlp.w1", 3));
}

TEST_CASE("the order of axes follows from the two tensors of a module") {
  const std::string name = "m.experts.gate_up_proj";
  ModelFamily family;
  // inputs 6, inner 4
  const auto rows_out = expert_tensor(name, {3, 8, 6}, {3, 8, 6}, {3, 6, 4}, family);
  REQUIRE(rows_out.has_value());
  CHECK_FALSE(rows_out->is_input_major);
  const auto matrices = rows_out->matrices();
  REQUIRE(matrices.size() == 6);
  CHECK(matrices[3].layer == "m.experts.1.up_proj");
  CHECK(matrices[3].rows == 4);
  CHECK(matrices[3].columns == 6);
  CHECK(matrices[3].first == 48 + 24);
  CHECK(matrices[3].pitch == 6);

  const auto rows_in = expert_tensor(name, {3, 6, 8}, {3, 6, 8}, {3, 4, 6}, family);
  REQUIRE(rows_in.has_value());
  CHECK(rows_in->is_input_major);
  const auto transposed = rows_in->matrices();
  CHECK(transposed[3].rows == 4);
  CHECK(transposed[3].columns == 6);
  CHECK(transposed[3].first == 48 + 4);
  CHECK(transposed[3].pitch == 8);

  // A square: inputs 8 = 2 * inner.
  CHECK_FALSE(expert_tensor(name, {3, 8, 8}, {3, 8, 8}, {3, 8, 4}, family)->is_input_major);
  CHECK(expert_tensor(name, {3, 8, 8}, {3, 8, 8}, {3, 4, 8}, family)->is_input_major);
  CHECK_FALSE(expert_tensor(name, {3, 8, 6}, {3, 8, 6}, {3, 5, 5}, family).has_value());
}

TEST_CASE("gate and up of gpt-oss alternate and stay one matrix; Granite uses its own names") {
  ModelFamily family;
  family.model_type = "gpt_oss";
  const auto joint = expert_tensor("m.experts.gate_up_proj", {2, 6, 8}, {2, 6, 8}, {2, 4, 6}, family);
  REQUIRE(joint.has_value());
  const auto matrices = joint->matrices();
  REQUIRE(matrices.size() == 2);
  CHECK(matrices[1].layer == "m.experts.1.gate_up_proj");
  CHECK(matrices[1].rows == 8);

  const auto granite = expert_tensor("m.input_linear.weight", {2, 8, 6}, {2, 8, 6}, {2, 6, 4}, ModelFamily());
  REQUIRE(granite.has_value());
  CHECK(granite->matrices()[1].layer == "m.experts.0.w3");
  const auto aria = expert_tensor("m.experts.fc1.weight", {2, 6, 8}, {2, 6, 8}, {2, 4, 6}, ModelFamily());
  REQUIRE(aria.has_value());
  CHECK(aria->is_input_major);
  CHECK(aria->is_gate_up);
  CHECK(expert_siblings("m.experts.fc2.weight").gate_up == "m.experts.fc1.weight");
  const ExpertSiblings siblings = expert_siblings("m.input_linear.weight");
  CHECK(siblings.gate_up == "m.input_linear.weight");
  CHECK(siblings.down == "m.output_linear.weight");
  CHECK(expert_siblings("m.experts.down_proj").gate_up == "m.experts.gate_up_proj");
}
