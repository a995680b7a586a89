// Names of adapters' factors and of wrappers, each from the source of the program that writes them.
#include "pipeline/model_index/source_names.h"

#include <algorithm>

#include "core/json.h"
#include "core/message.h"
#include "pipeline/model_index/model_index.h"
#include "runtimes/llama_cpp/texts.h"

namespace wasmquant {
namespace {

// Source: torch/_dynamo/eval_frame.py, torch/distributed/fsdp, torch/distributed/algorithms/_checkpoint.
constexpr std::string_view kAnywhere[] = {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."};
// torch/nn/parallel/data_parallel.py; peft/peft_model.py.
constexpr std::string_view kAtStart[] = {"module.", "base_model.model."};
// Components of names. Source: peft/tuners, kohya-ss/sd-scripts, diffusers/loaders, llama.cpp's convert_lora_to_gguf.py.
constexpr std::string_view kParts[] = {"lora_A",
                                       "lora_B",
                                       "lora_a",
                                       "lora_b",
                                       "lora_embedding_A",
                                       "lora_embedding_B",
                                       "lora_magnitude_vector",
                                       "lora_down",
                                       "lora_up",
                                       "hada_w1_a",
                                       "hada_w1_b",
                                       "hada_w2_a",
                                       "hada_w2_b",
                                       "lokr_w1",
                                       "lokr_w2",
                                       "lokr_w1_a",
                                       "lokr_w1_b",
                                       "lokr_w2_a",
                                       "lokr_w2_b",
                                       "ia3_l",
                                       "oft_r",
                                       "vera_lambda_b",
                                       "vera_lambda_d"};

// Whether the tensor is one of the factors of LoRA and its kin, in the names of PEFT, kohya, diffusers and llama.cpp.
bool is_adapter_part(std::string_view name) {
  while (!name.empty()) {
    const size_t dot = std::min(name.find('.'), name.size());
    const std::string_view component = name.substr(0, dot);
    if (std::find(std::begin(kParts), std::end(kParts), component) != std::end(kParts)) return true;
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return false;
}

// What merges it: a program of the runtime of GGUF files among them.
std::string merging() {
  return text_of(
      "merge it into its model first (peft: merge_and_unload() and save_pretrained(), or {} for GGUF), and "
      "quantize that",
      llama_cpp::kMergesAdapters);
}

// Classes that load adapters next to their weights have names for them: Phi-4-multimodal's vision_lora and speech_lora.
bool has_own_adapters(const ModelIndex& model) {
  const auto& config = model.config();
  if (!config) return false;
  for (const auto& [key, value] : config->members())
    if (key.ends_with("_lora") && value.is_object()) return true;
  return false;
}

}  // namespace

std::string unwrapped_name(std::string_view name) {
  std::string out;
  for (size_t at = 0; at < name.size();) {
    const bool is_component = at == 0 || name[at - 1] == '.';
    const auto begins = [&](std::string_view wrapper) { return name.substr(at).starts_with(wrapper); };
    const auto* const inner = std::find_if(std::begin(kAnywhere), std::end(kAnywhere), begins);
    const auto* const outer = std::find_if(std::begin(kAtStart), std::end(kAtStart), begins);
    if (is_component && inner != std::end(kAnywhere))
      at += inner->size();
    else if (out.empty() && outer != std::end(kAtStart))
      at += outer->size();
    else
      out += name[at++];
  }
  return out;
}

Status check_adapter(const ModelIndex& model) {
  const std::string& file = model.files().front().name;
  if (model.format().carries_config && model.gguf_metadata().find_text("general.type") == "adapter")
    return error_at(ErrorCode::format_unsupported, file, "is an adapter (general.type), not a model: {}", merging());
  if (model.format().has_graph) return {};
  const bool has_config = !model.sibling_file("config.json").empty();
  if (!has_config && !model.sibling_file("adapter_config.json").empty())
    return error_at(ErrorCode::format_unsupported, file, "is an adapter (adapter_config.json), not a model: {}",
                    merging());
  const ModelTensor* part = nullptr;
  bool is_all = true;
  for (const ModelTensor& tensor : model.tensors()) {
    if (!is_adapter_part(tensor.stored.name))
      is_all = false;
    else if (part == nullptr)
      part = &tensor;
  }
  if (part == nullptr || has_own_adapters(model)) return {};
  if (is_all)
    return error_at(ErrorCode::format_unsupported, part->stored.name,
                    "is part of an adapter, and so are all tensors: {}", merging());
  return error_at(ErrorCode::format_unsupported, part->stored.name,
                  "is part of an adapter that is not merged into the weights of the same model: {}", merging());
}

void warn_of_wrapped_names(const ModelIndex& model, List<Diagnostic>& diagnostics) {
  if (model.format().has_graph || model.format().carries_config) return;
  const ModelTensor* first = nullptr;
  std::string unwrapped;
  uint64_t count = 0;
  for (const ModelTensor& tensor : model.tensors()) {
    std::string name = unwrapped_name(tensor.stored.name);
    if (name == tensor.stored.name || name.empty()) continue;
    if (count++ != 0) continue;
    first = &tensor;
    unwrapped = std::move(name);
  }
  if (first == nullptr) return;
  diagnostics.push_back({Severity::warning, "wrapped-names", first->stored.name,
                         text_of("is the first of {} names that a wrapper of the model has changed: no class has them, "
                                 "and no runtime finds these weights",
                                 count),
                         text_of("--strip-prefix (stripPrefix when the model is opened) names it {}, and the others "
                                 "likewise",
                                 unwrapped)});
}

}  // namespace wasmquant
