// Expert weights that a checkpoint stores in one tensor: how the matrices are arranged, and their names if stored
// separately.
//   [E, out, in]   rows are outputs, as in nn.Linear: transformers' fused classes (Qwen3.5-MoE, Gemma 4, ...)
//   [E, in, out]   rows are inputs: Llama 4, gpt-oss, Aria (fc1, fc2)
// A fused gate_up tensor has the gate's outputs in its first half and those of up in its second. In gpt-oss they
// alternate, and every reader keeps them so: there it is one matrix.
// The names of single matrices are those of the family's row in runtimes/transformers/conversions.def, else those of most models.
// Source: transformers' modeling files and conversion_mapping.py; vLLM's make_expert_params_mapping for the names.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "families/model_family.h"

namespace wasmquant::families {

/// One matrix of an expert tensor.
struct ExpertMatrix {
  std::string layer;               // "model.layers.0.mlp.experts.3.gate_proj"
  uint64_t rows = 0, columns = 0;  // [out, in]
  uint64_t first = 0;              // index of its first element in the tensor
  uint64_t pitch = 0;              // elements from one stored row to the next
};

/// The arrangement of an expert tensor.
struct ExpertTensor {
  uint64_t experts = 0, rows = 0, columns = 0;  // of an expert: [out, in]
  bool is_input_major = false;                  // stored as [in, out]
  bool is_gate_up = false;                      // the outputs are two matrices, gate before up
  std::string parent;                           // module of the experts: "model.layers.0.mlp.experts"
  std::string_view gate, up;                    // names of the matrices; only `gate` unless is_gate_up

  /// Expert by expert, gate before up.
  List<ExpertMatrix> matrices() const;
};

/// Most experts of one tensor: twice those of Switch-C, the published model with the most. A header can claim 2^40 of
/// them in a file without data, and each becomes a planned tensor.
inline constexpr uint64_t kMaxExperts = 4096;

/// Whether a tensor with that name and shape contains the weights of several experts: three axes, the first at most
/// kMaxExperts, below a component `experts` (Granite: input_linear, output_linear).
bool is_expert_tensor(std::string_view name, const std::vector<uint64_t>& shape) noexcept;

/// Whether a tensor has the weights of all experts in the rows of one matrix: DBRX's experts.mlp.w1, v1 and w2. No reader
/// of quantized weights splits one.
bool are_experts_in_rows(std::string_view name, size_t axes) noexcept;

/// How its matrices are arranged. `gate_up` and `down`: shapes of the module's two tensors, empty if missing; they tell
/// which axis is which: out of gate_up = 2 * in of down. `names`: those of an expert's matrices in the tensor, where they
/// are not the usual ones. Nullopt if the axes are ambiguous.
std::optional<ExpertTensor> expert_tensor(std::string_view name, const std::vector<uint64_t>& shape,
                                          const std::vector<uint64_t>& gate_up, const std::vector<uint64_t>& down,
                                          const ModelFamily& family, std::string_view names = {});

/// The module whose experts `layer` chooses among ("model.layers.0.mlp" of "model.layers.0.mlp.gate"); empty if its name
/// is not a router's. It is one if the module has experts.
std::string_view routed_module(std::string_view layer) noexcept;

/// Names of the gate_up and down tensors next to an expert tensor.
struct ExpertSiblings {
  std::string gate_up, down;
};
/// The names of an expert tensor's siblings.
ExpertSiblings expert_siblings(std::string_view name);

}  // namespace wasmquant::families
