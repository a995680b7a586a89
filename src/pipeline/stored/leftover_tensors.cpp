// The tensors of a model against the roles that its reader gives them.
#include "pipeline/stored/leftover_tensors.h"

#include <algorithm>

#include "families/module_path.h"
#include "pipeline/model_index/storage_facts.h"

namespace wasmquant {
namespace {

// What only quantized weights have, in any model.
constexpr std::string_view kOnlyOfCodes[] = {"qweight",
                                             "qzeros",
                                             "g_idx",
                                             "weight_packed",
                                             "weight_scale",
                                             "weight_scale_inv",
                                             "weight_zero_point",
                                             "weight_g_idx",
                                             "weight_scale_2",
                                             "weight_shape",
                                             "weight_global_scale",
                                             "scale_weight",
                                             "qscale_weight",
                                             "pre_quant_scale",
                                             "comfy_quant",
                                             "absmax",
                                             "quant_map",
                                             "nested_absmax",
                                             "nested_quant_map",
                                             "SCB"};
constexpr std::string_view kCodeNames[] = {"", ".weight", ".qweight", ".weight_packed"};

class Leftovers {
 public:
  Leftovers(const ModelIndex& model, const List<StoredRole>& roles, bool is_declared)
      : model_(model), roles_(roles), is_declared_(is_declared), is_quantized_(is_declared) {
    for (size_t i = 0; i < roles.size(); ++i) {
      const StoredTensor& stored = model.tensors()[i].stored;
      is_quantized_ |= roles[i] != StoredRole::plain;
      if (roles[i] == StoredRole::codes && small_float_of(stored.dtype)) float_axes_ |= axes_bit(stored);
      if (roles[i] == StoredRole::part && !is_like_parts(stored)) parts_.push_back(&stored);
    }
  }

  Status check() const {
    for (size_t i = 0; i < roles_.size(); ++i) {
      const ModelTensor& tensor = model_.tensors()[i];
      if (roles_[i] == StoredRole::part || families::is_cache_scale(tensor.stored.name)) continue;
      TRY_VOID(roles_[i] == StoredRole::codes ? check_codes(tensor) : check_plain(tensor));
    }
    return {};
  }

 private:
  static uint32_t axes_bit(const StoredTensor& stored) noexcept {
    return uint32_t{1} << std::min<size_t>(stored.shape.size(), 31);
  }
  StoredRole role_of(const ModelTensor& tensor) const noexcept {
    return roles_[static_cast<size_t>(&tensor - model_.tensors().begin())];
  }

  // Whether parts of codes elsewhere in the model are called so, and are of its dtype and rank.
  bool is_like_parts(const StoredTensor& stored) const noexcept {
    const std::string_view name = split_name(stored.name).part;
    return std::any_of(parts_.begin(), parts_.end(), [&](const StoredTensor* part) {
      return split_name(part->name).part == name && part->dtype == stored.dtype &&
             part->shape.size() == stored.shape.size();
    });
  }

  const ModelTensor* unread_fact_beside(const ModelTensor& tensor) const {
    for (const ModelTensor* fact : storage_facts_beside(model_, tensor))
      if (role_of(*fact) == StoredRole::plain && !families::is_cache_scale(fact->stored.name)) return fact;
    return nullptr;
  }

  Status check_codes(const ModelTensor& codes) const {
    const ModelTensor* const fact = unread_fact_beside(codes);
    if (fact == nullptr) return {};
    return error_at(ErrorCode::dtype_unsupported, fact->stored.name,
                    "({}) is next to the codes of {q}, and no layout that is decoded has such a part; start from the "
                    "checkpoint that this one was made from",
                    describe(fact->stored.dtype, fact->stored.shape), codes.stored.name);
  }

  Status check_plain(const ModelTensor& tensor) const {
    const StoredTensor& stored = tensor.stored;
    const bool is_float = small_float_of(stored.dtype).has_value();
    if (is_only_of_codes(stored)) TRY_VOID(check_part(stored));
    if (stored.shape.size() < 2 || !(is_float || (is_declared_ && is_integer_of_codes(stored.dtype))))
      return check_part(stored);
    if (const ModelTensor* const fact = unread_fact_beside(tensor))
      return error_at(ErrorCode::dtype_unsupported, stored.name,
                      "holds {}, and {q} ({}) next to it says how, in a way that is not decoded; start from the "
                      "checkpoint that this one was made from",
                      describe(stored.dtype, stored.shape), fact->stored.name,
                      describe(fact->stored.dtype, fact->stored.shape));
    if (is_float ? needs_scale(stored) : split_name(stored.name).part == "weight")
      return error_at(ErrorCode::tensor_missing, stored.name,
                      "holds {} without a scale, in a model whose quantized weights have one; add the file that has "
                      "it, or start from the checkpoint that this one was made from",
                      describe(stored.dtype, stored.shape));
    return check_part(stored);
  }

  // Floats of 8 and 4 bits are values where no matrix has a scale, as in ComfyUI's files.
  bool needs_scale(const StoredTensor& stored) const noexcept {
    return is_quantized_ && (stored.shape.size() <= 3 || (float_axes_ & axes_bit(stored)) != 0);
  }

  // Parts of codes that are there are the business of the layout that lacks them.
  Status check_part(const StoredTensor& stored) const {
    const auto [layer, part] = split_name(stored.name);
    if (is_quantized_ && part == "input_rotation")
      return error_at(ErrorCode::dtype_unsupported, stored.name,
                      "rotates the inputs of {q} while the model runs, for which its weight was made; such weights are "
                      "not decoded; start from the checkpoint that this one was made from",
                      layer);
    if (!is_quantized_ || is_of_activations(part) || has_codes(layer)) return {};
    const bool is_of_codes = is_only_of_codes(stored) || stored.dtype == StorageDtype::F8_E8M0 ||
                             part.ends_with("_scale_inv") || stored.name.find(".quant_state.") != std::string::npos ||
                             (is_declared_ && (part == "scales" || part.ends_with("_scales"))) || is_like_parts(stored);
    if (!is_of_codes) return {};
    return error_at(ErrorCode::tensor_missing, stored.name,
                    "({}) says how codes are stored, and the model has none next to it; add the file that has them, or "
                    "start from the checkpoint that this one was made from",
                    describe(stored.dtype, stored.shape));
  }

  static bool is_only_of_codes(const StoredTensor& stored) noexcept {
    const std::string_view part = split_name(stored.name).part;
    return std::find(std::begin(kOnlyOfCodes), std::end(kOnlyOfCodes), part) != std::end(kOnlyOfCodes);
  }

  bool has_codes(std::string_view layer) const {
    return std::any_of(std::begin(kCodeNames), std::end(kCodeNames), [&](std::string_view ending) {
      const ModelTensor* const tensor = model_.find(text_of("{}{}", layer, ending));
      return tensor != nullptr && role_of(*tensor) == StoredRole::codes;
    });
  }

  const ModelIndex& model_;
  const List<StoredRole>& roles_;
  const bool is_declared_;
  bool is_quantized_;
  uint32_t float_axes_ = 0;          // bit n: codes in floats have n axes
  List<const StoredTensor*> parts_;  // one of each name, dtype and rank
};

}  // namespace

Status check_leftovers(const ModelIndex& model, const List<StoredRole>& roles, bool is_declared) {
  return Leftovers(model, roles, is_declared).check();
}

}  // namespace wasmquant
