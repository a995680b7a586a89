// Gives the tensors of one MLX family the names, shapes and values that the class of transformers has.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "families/model_family.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"
#include "runtimes/mlx/mlx_families.h"
#include "runtimes/transformers/conversions.h"

namespace wasmquant::mlx {

/// A name that ends with a stacked module and the part of an expert: "model.layers.0.mlp.switch_mlp.up_proj.weight".
struct StackName {
  std::string parent;     // "model.layers.0.mlp.experts."
  std::string_view part;  // "up_proj"
  std::string_view role;  // "weight" or "bias"
};

/// A tensor that cannot become one of the class. `what`: of the family, follows "what mlx-lm does to".
Error cannot_undo(const ModelTensor& tensor, const families::ModelFamily& family, std::string_view what);

class Restorer {
 public:
  /// All must outlive this. `decoded`: the folder's tensors, decoded, under their names.
  Restorer(const Family& row, const families::ModelFamily& family, const json::Value& config, const ModelIndex& decoded)
      : row_(row), family_(family), config_(config), decoded_(decoded), conversions_(family) {}

  /// Adds what becomes of one tensor. Errors: format-unsupported, tensor-missing, shape-mismatch.
  Status add(const ModelTensor& tensor);
  List<ModelTensor> take() { return std::move(out_); }

 private:
  bool has(uint16_t trait) const noexcept { return (row_.traits & trait) != 0; }

  std::optional<StackName> stack_name(std::string_view name, size_t axes) const;
  Status add_experts(const ModelTensor& tensor, const StackName& stack);
  Status add_gate_up(const std::string& name, const ModelTensor& gate, const ModelTensor& up);
  // DBRX: `experts.E.w1.weight` are rows of `experts.mlp.w1`; w2 transposed.
  Status add_expert_row(const ModelTensor& tensor, const std::string& name);
  // embed_q [heads, latent, keys] and unembed_out [heads, values, latent] are kv_b_proj [heads * (keys + values), latent].
  Status add_latent_heads(const ModelTensor& tensor, const std::string& name);
  // [out, ..., in] in MLX, [out, in, ...] in PyTorch.
  Status add_convolution(const ModelTensor& tensor, const std::string& name);
  Status add_divided(const ModelTensor& tensor, const std::string& name);
  Status spread_divisors(const ModelTensor& tensor, std::vector<float>& divisors) const;
  // `matrices` matrices, one after the other.
  Status add_transposed(const ModelTensor& tensor, const std::string& name, uint64_t matrices);
  // The tensor that is called `other` where this one is called `part`. Errors: tensor-missing, shape-mismatch.
  Result<const ModelTensor*> partner_of(const ModelTensor& tensor, std::string_view part, std::string_view other) const;
  Status check_partner(const ModelTensor& tensor, std::string_view part, std::string_view other) const;
  Status add_assembled(const std::string& name, std::vector<uint64_t> shape, Assembly assembly,
                       const List<const ModelTensor*>& parts);
  void add_renamed(const ModelTensor& tensor, const std::string& name);

  const Family& row_;
  const families::ModelFamily& family_;
  const json::Value& config_;
  const ModelIndex& decoded_;
  const transformers::Conversions conversions_;
  List<ModelTensor> out_;
};

}  // namespace wasmquant::mlx
