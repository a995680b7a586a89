// Scales of keys and values: what is kept, what is requested, and the remark about it.
#include "pipeline/checkpoint_plan/cache_plan.h"

#include "core/message.h"
#include "families/module_path.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/plan/output_planner.h"
#include "runtimes/transformers/default_exclusions.h"
#include "runtimes/vllm/texts.h"

namespace wasmquant {
namespace {

// One spec for keys and values, from the entries of Quark's config; empty if they differ.
Stages common_outputs(const Config& config) {
  Stages common;
  for (const auto& [name, layer] : config.kv_cache) {
    if (layer.output_tensors.empty()) continue;
    if (!common.empty() && !(common == layer.output_tensors)) return {};
    common = layer.output_tensors;
  }
  return common;
}

// The formats whose files hold scales of the cache, by name: of keys and values, or also of what computes them.
std::string formats_with_cache(bool also_of_outputs) {
  std::string names;
  for (const CheckpointFormat* const format : checkpoint_formats()) {
    const CacheStorage storage = format->traits().cache;
    if (storage == CacheStorage::none || (storage == CacheStorage::outputs && !also_of_outputs)) continue;
    if (!names.empty()) names += " and ";
    names += format->name();
  }
  return names;
}

}  // namespace

CachePlan::CachePlan(const ModelIndex& model, const Config& config, const CheckpointFormat& format,
                     const PlanOptions& options)
    : config_(config),
      format_(format),
      options_(options),
      source_(source_cache(model)),
      where_(source_.scales == 0 && format.traits().needs_config_block ? cache_request_of(config) : std::string()),
      requested_(config.cache.empty() ? common_outputs(config) : config.cache) {}

bool CachePlan::is_of_outputs() const noexcept { return format_.traits().cache == CacheStorage::outputs; }

bool CachePlan::shares_scales() const noexcept {
  return is_requested() && is_of_outputs() && !config_.kv_cache_group.empty() && requested_.size() == 1 &&
         requested_.front().symmetric && requested_.front().qscheme == QScheme::per_tensor;
}

Status CachePlan::check() const {
  if (!is_requested()) return {};
  const auto refuse = [&](std::string_view why) {
    return error_at(
        ErrorCode::format_unsupported, where_,
        "asks for a quantized key-value cache, {}. Remove the key ({}), or start from a checkpoint with k_scale "
        "and v_scale",
        why, vllm::kCacheByOne);
  };
  if (format_.traits().cache == CacheStorage::none)
    return refuse(text_of("and {} has no place for its scales; {} do", format_.name(), formats_with_cache(true)));
  if (is_of_outputs()) {
    if (config_.kv_cache.empty())
      return refuse(
          text_of("and files of {} hold scales of the outputs of k_proj and v_proj: name them in a "
                  "kv_cache_quant_config",
                  format_.name()));
    if (config_.source["kv_cache_post_rope"].as_bool())
      return error_at(
          ErrorCode::format_unsupported, text_of("{}/kv_cache_post_rope", config_.where),
          "files of {} hold scales of the outputs of k_proj, which are keys before RoPE; set it to false, or write {}",
          format_.name(), formats_with_cache(false));
    if (requested_.empty() || !are_static(requested_))
      return refuse(text_of("and files of {} hold one static spec for the outputs of all its layers", format_.name()));
  } else if (format_.cache_scheme(requested_).is_null()) {
    return refuse(
        text_of("and {} stores one static scale of fp8_e4m3 per tensor for keys, and one for values", format_.name()));
  }
  if (!options_.calibrates) return refuse("and there is no calibration to find its scales: give --calibration");
  return {};
}

void CachePlan::add(PlannedTensor& planned, LayerPlan& outcome, bool is_cached, List<ActivationRequest>& requests) {
  const WeightDescription& weight = planned.weight;
  if (is_of_outputs()) {
    if (!is_cached) return;
    ++found_;
    outcome.caches_outputs = true;
    if (outcome.outputs.empty() && left_.empty()) left_ = weight.layer;
    return;
  }
  const std::string_view name = families::last_component(weight.layer);
  const bool is_key = name == "k_proj";
  if ((!is_key && name != "v_proj") || weight.shape.size() != 2 ||
      transformers::tower_end(weight.layer) != std::string_view::npos)
    return;
  ActivationRequest request;
  request.layer = weight.layer.substr(0, weight.layer.size() - name.size() - 1);
  request.role = is_key ? ActivationRole::key : ActivationRole::value;
  request.features = weight.shape[weight.is_input_major ? 1 : 0];
  auto storage = activation_storage(requested_, request.features);
  if (!storage || !format_.choose_activation_storage(weight, *storage)) return;
  ++found_;
  request.spec = storage->spec;
  request.scales = 1;
  if (const json::Value& found = found_for(request, options_.activations); !found.is_null())
    for (ConstantTensor& tensor : activation_tensors(request.layer, request.role, found, *storage))
      planned.activations.push_back(std::move(tensor));
  requests.push_back(std::move(request));
}

Status CachePlan::check_found() const {
  if (!is_requested()) return {};
  if (!left_.empty())
    return error_at(
        ErrorCode::format_unsupported, where_,
        "asks for a quantized key-value cache, and {} keeps its weight: {} holds scales of outputs only next "
        "to quantized weights. Give the layer a weight spec, or write {}",
        left_, format_.name(), formats_with_cache(false));
  if (found_ != 0) return {};
  return error_at(ErrorCode::format_unsupported, where_,
                  "asks for a quantized key-value cache, but this model has no layers named k_proj or v_proj. Remove "
                  "the key");
}

bool CachePlan::keeps_scheme() const noexcept {
  return source_.method == format_.name() && format_.traits().cache != CacheStorage::none;
}

std::optional<Diagnostic> CachePlan::remark() const {
  if (is_requested())
    return Diagnostic(Severity::note, "cache-scales", where_,
                      is_of_outputs() ? vllm::kCacheOfOutputs : vllm::kCacheOfAttention, "");
  if (source_.scales == 0 && source_.scheme.is_null()) return std::nullopt;
  const std::string kept =
      source_.scales == 0 ? std::string("config.json describes a quantized key-value cache without scales")
                          : text_of("is the first of {} scales of the key-value cache, which are kept", source_.scales);
  std::string where = source_.scales == 0 ? std::string("config.json") : source_.first;
  if (keeps_scheme() && !source_.scheme.is_null())
    return Diagnostic(Severity::note, "cache-scales", std::move(where),
                      text_of("{}; the scheme of the source is kept, too", kept), "");
  return Diagnostic(
      Severity::warning, "cache-scales", std::move(where),
      text_of("{}; quantization_config of {} does not say how the cache is quantized", kept, format_.name()),
      vllm::kCacheDtypeHint);
}

void CachePlan::describe(json::Value& block) const {
  if (block.is_null()) return;
  if (keeps_scheme() && !is_requested())
    for (const auto& [key, value] : source_.scheme.members()) block.set(std::string(key), json::Value(value));
  if (!is_requested()) return;
  if (!is_of_outputs()) {
    block.set("kv_cache_scheme", format_.cache_scheme(requested_));
    return;
  }
  json::Array group;
  for (const auto& [name, layer] : config_.kv_cache)
    if (!layer.output_tensors.empty()) group.emplace_back(name);
  json::Value exported = block["export"];
  exported.set("kv_cache_group", std::move(group));
  block.set("export", std::move(exported));
}

}  // namespace wasmquant
