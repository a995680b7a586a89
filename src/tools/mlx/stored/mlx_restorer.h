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
#include "runtimes/transformers/conversions.h"

namespace wasmquant::mlx {

// Traits of families.
inline constexpr uint16_t kNorms = 1;          // 1 is added to norms
inline constexpr uint16_t kTransposes = 2;     // matrices of Conv1D layers are transposed
inline constexpr uint16_t kLatentHeads = 4;    // kv_b_proj is cut into embed_q and unembed_out
inline constexpr uint16_t kInputMajor = 8;     // the class has fused experts as [inputs, outputs]
inline constexpr uint16_t kAlternates = 16;    // rows of gate and up take turns in the class
inline constexpr uint16_t kScalars = 32;       // vectors of one element have no axis
inline constexpr uint16_t kExpertRows = 64;    // matrices of single experts are the rows of one in the class
inline constexpr uint16_t kMultipliers = 128;  // multipliers of config.json are multiplied into the weights
inline constexpr uint16_t kMultimodal = 256;   // the class has towers, which mlx-lm leaves out
inline constexpr uint16_t kTowers = 512;       // ... and mlx-vlm arranges only in their convolutions

/// A row of families/table/rearranged.def.
struct Family {
  std::string_view types;
  uint16_t traits;
  std::string_view experts, fused, names;
};

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
  // The name of a matrix of single experts: that of the family's conversion to one parameter.
  std::string_view single_name(std::string_view part) const;
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
