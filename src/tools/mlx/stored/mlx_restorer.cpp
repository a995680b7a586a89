// Each way in which mlx-lm changes tensors, undone: by the place of a tensor in its family, its name and its axes.
#include "tools/mlx/stored/mlx_restorer.h"

#include <algorithm>

#include "config/match/layer_type.h"
#include "families/module_path.h"
#include "families/word_list.h"
#include "pipeline/model_index/assembled_tensor.h"
#include "pipeline/model_index/expert_tensors.h"
#include "runtimes/transformers/loader_names.h"

namespace wasmquant::mlx {
namespace {

constexpr std::string_view kNormEnds =
    "input_layernorm.weight post_attention_layernorm.weight model.norm.weight language_model.norm.weight q_norm.weight "
    "k_norm.weight";
constexpr std::string_view kTransposedEnds = "attn.c_attn.weight attn.c_proj.weight mlp.c_fc.weight mlp.c_proj.weight";

// Falcon-H1: the multiplier of a weight, a key of config.json and for lists the place in it; the first row that fits.
struct Multiplied {
  std::string_view ends;
  const char* key;
  int place;
};
constexpr Multiplied kMultiplied[] = {
    {"embed_tokens.weight", "embedding_multiplier", -1},
    {"lm_head.weight", "lm_head_multiplier", -1},
    {"q_proj.weight k_proj.weight", "attention_in_multiplier", -1},
    {"o_proj.weight", "attention_out_multiplier", -1},
    {"out_proj.weight", "ssm_out_multiplier", -1},
    {"gate_proj.weight", "mlp_multipliers", 0},
    {"down_proj.weight", "mlp_multipliers", 1},
    {"in_proj.weight", "ssm_in_multiplier", -1},
};

bool ends_with_any(std::string_view name, std::string_view ends) {
  return families::any_word(ends, [&](std::string_view end) { return families::ends_with_components(name, end); });
}

}  // namespace

Error cannot_undo(const ModelTensor& tensor, const families::ModelFamily& family, std::string_view what) {
  return error_at(ErrorCode::format_unsupported, tensor.stored.name,
                  "is in an MLX folder of the family {}: this version cannot undo what mlx-lm does to {}. Use the "
                  "checkpoint that the folder was made from",
                  family.model_type, what);
}

Status Restorer::add(const ModelTensor& tensor) {
  const std::string name = transformers::renamed(row_.names, tensor.stored.name);
  const size_t axes = tensor.stored.shape.size();
  if (const auto stack = stack_name(name, axes)) return add_experts(tensor, *stack);
  if (has(kExpertRows) && name.find(".experts.") != std::string::npos) return add_expert_row(tensor, name);
  if (has(kLatentHeads) && ends_with_any(name, "embed_q.weight unembed_out.weight"))
    return add_latent_heads(tensor, name);
  if (name.ends_with(".weight") && (axes > 3 || (axes == 3 && name.find("conv") != std::string::npos)))
    return add_convolution(tensor, name);
  if (has(kMultipliers) && axes == 2) return add_divided(tensor, name);
  if (has(kNorms) && axes == 1 && ends_with_any(name, kNormEnds)) {
    Assembly less_one;
    less_one.columns = 1;
    less_one.addend = -1;
    return add_assembled(name, tensor.stored.shape, std::move(less_one), {&tensor});
  }
  if (has(kTransposes) && axes == 2 && ends_with_any(name, kTransposedEnds)) {
    TRY_VOID(add_transposed(tensor, name, 1));
    out_.back().layer_type = kConv1D;
    return {};
  }
  add_renamed(tensor, name);
  if (has(kScalars) && axes == 0) out_.back().stored.shape = {1};
  return {};
}

std::optional<StackName> Restorer::stack_name(std::string_view name, size_t axes) const {
  if (row_.experts.empty()) return std::nullopt;
  const size_t equals = row_.experts.find('=');
  const LayerName split = layer_name_of(name);
  if (split.role == TensorRole::other || axes != (split.role == TensorRole::weight ? 3u : 2u)) return std::nullopt;
  const std::string_view part = families::last_component(split.layer), from = row_.experts.substr(0, equals);
  if (part.size() == split.layer.size()) return std::nullopt;
  std::string_view module = split.layer.substr(0, split.layer.size() - part.size() - 1);
  if (!families::ends_with_components(module, from)) return std::nullopt;
  module.remove_suffix(from.size());
  return StackName{text_of("{}{}.", module, row_.experts.substr(equals + 1)), part,
                   name.substr(split.layer.size() + 1)};
}

Status Restorer::add_experts(const ModelTensor& tensor, const StackName& stack) {
  const std::vector<uint64_t>& shape = tensor.stored.shape;
  if (row_.fused.empty()) {
    families::ExpertTensor experts;
    experts.experts = shape[0];
    experts.rows = shape[1];
    experts.columns = shape.size() == 3 ? shape[2] : 1;
    experts.parent = stack.parent.substr(0, stack.parent.size() - 1);
    experts.gate = conversions_.expert_matrix(stack.part);
    if (shape[0] > families::kMaxExperts || !add_expert_matrices(experts, tensor, stack.role, out_))
      return cannot_undo(tensor, family_, "experts");
    return {};
  }
  if (stack.part == "up_proj") return check_partner(tensor, "up_proj", "gate_proj");
  std::string_view down = row_.fused;
  const std::string_view gate_up = families::next_word(down);
  const bool is_down = stack.part == "down_proj";
  std::string name = stack.parent + std::string(is_down ? down : gate_up);
  if (stack.role == "bias") name += "_bias";
  if (!is_down) {
    TRY(up, partner_of(tensor, "gate_proj", "up_proj"));
    return add_gate_up(name, tensor, *up);
  }
  if (stack.role == "weight" && has(kInputMajor)) return add_transposed(tensor, name, shape[0]);
  add_renamed(tensor, name);
  return {};
}

Status Restorer::add_gate_up(const std::string& name, const ModelTensor& gate, const ModelTensor& up) {
  std::vector<uint64_t> shape = gate.stored.shape;
  Assembly halves;
  halves.rounds = shape[0];
  halves.columns = shape.size() == 3 ? shape[2] : 1;
  if (has(kAlternates)) halves.interleaved = halves.columns;
  shape[1] *= 2;
  if (shape.size() == 3 && has(kInputMajor)) {
    halves.is_transposed = true;
    std::swap(shape[1], shape[2]);
  }
  return add_assembled(name, std::move(shape), std::move(halves), {&gate, &up});
}

Status Restorer::add_expert_row(const ModelTensor& tensor, const std::string& name) {
  constexpr std::string_view kFirst = ".experts.0.";
  const size_t at = name.find(kFirst);
  if (at == std::string::npos) return {};  // added with the first one
  const std::string parent = name.substr(0, at) + ".experts.";
  const std::string_view part = std::string_view(name).substr(at + kFirst.size());  // "w1.weight"
  Assembly stacked;
  List<const ModelTensor*> parts;
  while (const ModelTensor* next = decoded_.find(text_of("{}{}.{}", parent, parts.size(), part))) {
    if (next->stored.shape != tensor.stored.shape || parts.size() == families::kMaxExperts)
      return cannot_undo(*next, family_, "experts of several shapes");
    parts.push_back(next);
  }
  std::vector<uint64_t> shape = tensor.stored.shape;
  stacked.rounds = parts.size();
  stacked.takes_turns = true;
  stacked.columns = shape[1];
  stacked.is_transposed = part == "w2.weight";
  if (stacked.is_transposed) std::swap(shape[0], shape[1]);
  shape[0] *= parts.size();
  return add_assembled(text_of("{}mlp.{}", parent, layer_name_of(part).layer), std::move(shape), std::move(stacked),
                       parts);
}

Status Restorer::add_latent_heads(const ModelTensor& tensor, const std::string& name) {
  if (families::ends_with_components(name, "unembed_out.weight"))
    return check_partner(tensor, "unembed_out", "embed_q");
  TRY(values, partner_of(tensor, "embed_q", "unembed_out"));
  const std::vector<uint64_t>&q = tensor.stored.shape, &v = values->stored.shape;
  if (q.size() != 3 || v.size() != 3 || q[0] != v[0] || q[1] != v[2])
    return error_at(ErrorCode::shape_mismatch, tensor.stored.name,
                    "holds {} and {} {}; MLX stores [heads, latent, keys] and [heads, values, latent]",
                    describe(tensor.stored.dtype, q), values->stored.name, describe(values->stored.dtype, v));
  Assembly joined;
  joined.rounds = q[0];
  joined.columns = q[1];
  joined.is_first_transposed = true;
  std::string whole = name;
  whole.replace(whole.rfind("embed_q"), std::string_view("embed_q").size(), "kv_b_proj");
  return add_assembled(whole, {q[0] * (q[2] + v[1]), q[1]}, std::move(joined), {&tensor, values});
}

Status Restorer::add_convolution(const ModelTensor& tensor, const std::string& name) {
  std::vector<uint64_t> shape = tensor.stored.shape;
  const uint64_t inputs = shape.back();
  std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  if (inputs != 1) {
    Assembly moved;
    moved.rounds = shape[0];
    moved.columns = inputs;
    moved.is_transposed = true;
    return add_assembled(name, std::move(shape), std::move(moved), {&tensor});
  }
  add_renamed(tensor, name);
  out_.back().stored.shape = std::move(shape);
  return {};
}

Status Restorer::add_divided(const ModelTensor& tensor, const std::string& name) {
  const auto* const row = std::find_if(std::begin(kMultiplied), std::end(kMultiplied),
                                       [&](const Multiplied& each) { return ends_with_any(name, each.ends); });
  if (row == std::end(kMultiplied)) return add_renamed(tensor, name), Status();
  const json::Value& given = config_[row->key];
  const json::Value* const value = row->place < 0 ? &given
                                   : given.items().size() > static_cast<size_t>(row->place)
                                       ? &given.items()[static_cast<size_t>(row->place)]
                                       : nullptr;
  if (value == nullptr || !(value->as_number() > 0))
    return error_at(ErrorCode::config_invalid, text_of("config.json/{}", std::string_view(row->key)),
                    "is not given: mlx-lm multiplied {} by it", tensor.stored.name);
  Assembly divided;
  divided.rounds = tensor.stored.shape[0];
  divided.columns = tensor.stored.shape[1];
  RowScales& scales = divided.scales.emplace_back();
  scales.divides = true;
  scales.values = {static_cast<float>(value->as_number())};
  if (row == std::end(kMultiplied) - 1) TRY_VOID(spread_divisors(tensor, scales.values));
  return add_assembled(name, tensor.stored.shape, std::move(divided), {&tensor});
}

// The rows of in_proj are z, x, B, C and dt, each with a multiplier of its own.
Status Restorer::spread_divisors(const ModelTensor& tensor, std::vector<float>& divisors) const {
  const auto count = [&](const char* key) {
    return static_cast<uint64_t>(std::max<int64_t>(config_[key].as_integer(), 0));
  };
  const uint64_t inner = count("mamba_d_ssm"), heads = count("mamba_n_heads"), rows = tensor.stored.shape[0];
  if (inner > rows || heads > rows || 2 * inner + heads > rows) return cannot_undo(tensor, family_, "sizes like these");
  const uint64_t states = (rows - 2 * inner - heads) / 2;
  const uint64_t sizes[] = {inner, inner, states, states, heads};
  const json::Array& given = config_["ssm_multipliers"].items();
  const float all = divisors.front();
  divisors.clear();
  for (size_t part = 0; part < std::size(sizes); ++part) {
    const double multiplier = part < given.size() ? given[part].as_number() : 0;
    if (!(multiplier > 0))
      return error_at(ErrorCode::config_invalid, "config.json/ssm_multipliers",
                      "is not a list of five numbers: mlx-lm multiplied {} by them", tensor.stored.name);
    divisors.insert(divisors.end(), sizes[part], all * static_cast<float>(multiplier));
  }
  if (divisors.size() != rows) return cannot_undo(tensor, family_, "sizes like these");
  return {};
}

Status Restorer::add_transposed(const ModelTensor& tensor, const std::string& name, uint64_t matrices) {
  std::vector<uint64_t> shape = tensor.stored.shape;
  Assembly turned;
  turned.rounds = matrices;
  turned.columns = shape.back();
  turned.is_transposed = true;
  std::swap(shape.back(), shape[shape.size() - 2]);
  return add_assembled(name, std::move(shape), std::move(turned), {&tensor});
}

Result<const ModelTensor*> Restorer::partner_of(const ModelTensor& tensor, std::string_view part,
                                                std::string_view other) const {
  std::string name = tensor.stored.name;
  name.replace(name.rfind(part), part.size(), other);
  const ModelTensor* const found = decoded_.find(name);
  if (found == nullptr)
    return error_at(ErrorCode::tensor_missing, name, "is not in the model, and {} is", tensor.stored.name);
  if (part == "gate_proj" && found->stored.shape != tensor.stored.shape)
    return error_at(ErrorCode::shape_mismatch, name, "holds {}, and {} {}",
                    describe(found->stored.dtype, found->stored.shape), tensor.stored.name,
                    describe(tensor.stored.dtype, tensor.stored.shape));
  return found;
}

Status Restorer::check_partner(const ModelTensor& tensor, std::string_view part, std::string_view other) const {
  TRY_VOID(partner_of(tensor, part, other));
  return {};
}

Status Restorer::add_assembled(const std::string& name, std::vector<uint64_t> shape, Assembly assembly,
                               const List<const ModelTensor*>& parts) {
  TRY(made, assembled_tensor(name, std::move(shape), std::move(assembly), parts));
  out_.push_back(std::move(made));
  return {};
}

void Restorer::add_renamed(const ModelTensor& tensor, const std::string& name) {
  ModelTensor& renamed = out_.emplace_back(tensor);
  renamed.stored.name = name;
  renamed.layer = layer_name_of(name).layer;
  renamed.layer_type = layer_type_of(name, tensor.stored.shape);
}

}  // namespace wasmquant::mlx
