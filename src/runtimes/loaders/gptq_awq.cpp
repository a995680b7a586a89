// Limits of gptqmodel's kernels, and of transformers, which replaces layers by them: both know only what the config block says.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "families/module_path.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/transformers/conversions.h"
#include "tools/gptq_awq/quantized_modules.h"

namespace wasmquant::runtimes {
namespace {

// Of gptqmodel's kernels for any device.
constexpr int64_t kGroupSizes[] = {16, 32, 64, 128, 256, 512, 1024};
constexpr int64_t kAwqGroupSizes[] = {16, 32, 64, 128};

std::optional<LoaderLimit> group_limit(const LayerPlan& layer, std::span<const int64_t> sizes) {
  const int64_t size = layer.weight->front().group_size;
  const bool is_whole_row = size == -1 || size == static_cast<int64_t>(layer.columns);
  if (is_whole_row || std::find(sizes.begin(), sizes.end(), size) != sizes.end()) return std::nullopt;
  return LoaderLimit{layer.layer, text_of("gptqmodel's kernels have no groups of {}", size),
                     "use groups of 16, 32, 64 or 128, or write compressed-tensors", false, false};
}

// gptqmodel chooses a kernel for all layers before it has seen one. On a CPU with AVX512 that is, for 4 bits, PyTorch's
// _weight_int4pack_mm_cpu, whose blocks are of 32 outputs, which does not pad, and which has these groups; the kernels for GPUs do.
constexpr uint64_t kOutputsOfCpuKernel = 32;
constexpr uint64_t kRowsOfCpuKernel[] = {32, 64, 128, 256};

// transformers makes quantized layers inside blocks only; the head's words stay unread, without an error.
std::optional<LoaderLimit> block_limit(const LayerPlan& layer) {
  if (!is_plain_linear(layer) || !name_in_block(layer).empty()) return std::nullopt;
  return LoaderLimit{layer.layer,
                     "transformers reads no quantized layer outside the blocks of gptq and awq files: it would compute "
                     "with random weights in its place",
                     "exclude the layer, or write compressed-tensors", false, false};
}

std::optional<LoaderLimit> kernel_limit(const LayerPlan& layer) {
  const QuantizationSpec& spec = layer.weight->front();
  if (info_of(spec.dtype).bits != 4) return std::nullopt;
  const auto limit = [&](std::string text) {
    return LoaderLimit{
        layer.layer, text_of("gptqmodel's kernel for CPUs with AVX512 {}", text),
        "load the file on a GPU or with vLLM, give the layer another spec or none, or write compressed-tensors", false,
        false};
  };
  if (layer.rows % kOutputsOfCpuKernel != 0)
    return limit(text_of("needs outputs in multiples of {}; this layer has {}", kOutputsOfCpuKernel, layer.rows));
  const bool is_whole_row = spec.group_size == -1 || static_cast<uint64_t>(spec.group_size) == layer.columns;
  if (is_whole_row &&
      std::find(std::begin(kRowsOfCpuKernel), std::end(kRowsOfCpuKernel), layer.columns) == std::end(kRowsOfCpuKernel))
    return limit(text_of("has no groups of {}, the whole row of this layer", layer.columns));
  return std::nullopt;
}

// transformers looks for the float names of what it joins, splits or rearranges: packed words stay unread, without an error.
std::optional<LoaderLimit> packed_conversion_limit(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  const transformers::Conversions conversions(family);
  const bool merges_experts = conversions.has(transformers::Conversion::Kind::experts);
  for (const LayerPlan& layer : layers) {
    if (keeps_weight(layer)) continue;
    const bool is_expert = families::is_single_expert(layer.layer);
    if (is_expert ? !merges_experts : conversions.find(layer.layer) == nullptr) continue;
    return LoaderLimit{
        layer.layer,
        text_of("transformers joins, splits or rearranges {} of this family while it loads, which it cannot do with "
                "packed ones: it would compute with random weights in their place",
                is_expert ? "the experts" : "such weights"),
        is_expert ? "load the file with vLLM, which reads quantized experts (--include-experts), or write "
                    "compressed-tensors, whose experts transformers reads"
                  : "load the file with vLLM, or write compressed-tensors",
        is_expert, false};
  }
  return std::nullopt;
}

std::optional<LoaderLimit> awq_limit(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  if (auto limit = packed_conversion_limit(layers, family)) return limit;
  for (const LayerPlan& layer : layers) {
    if (keeps_weight(layer)) continue;
    if (auto limit = block_limit(layer)) return limit;
    if (auto limit = group_limit(layer, kAwqGroupSizes)) return limit;
    if (auto limit = kernel_limit(layer)) return limit;
  }
  return std::nullopt;
}

std::optional<LoaderLimit> gptq_limit(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  if (auto limit = packed_conversion_limit(layers, family)) return limit;
  const LayerPlan* first = nullptr;
  for (const LayerPlan& layer : layers) {
    if (keeps_weight(layer)) continue;
    const QuantizationSpec& spec = layer.weight->front();
    if (auto limit = block_limit(layer)) return limit;
    if (auto limit = group_limit(layer, kGroupSizes)) return limit;
    if (first == nullptr) first = &layer;
    const QuantizationSpec& other = first->weight->front();
    if (spec.group_size != other.group_size || info_of(spec.dtype).bits != info_of(other.dtype).bits)
      return LoaderLimit{
          layer.layer,
          text_of("transformers reads one number of bits and one group size for all layers, and {} has another",
                  first->layer),
          "load the file with vLLM or GPTQModel.load, give all layers one spec, or write compressed-tensors", false,
          false};
    if (auto limit = kernel_limit(layer)) return limit;
  }
  return std::nullopt;
}

bool any_spec(const QuantizationSpec&) { return true; }

}  // namespace

extern const Loader kAwq, kGptq;
const Loader kAwq{.format = "awq",
                  .reads_classes = true,
                  .stacked_experts_limit = transformers::stacked_experts_limit,
                  .limit = awq_limit,
                  .needs_one_group_size = any_spec};
const Loader kGptq{.format = "gptq",
                   .reads_classes = true,
                   .stacked_experts_limit = transformers::stacked_experts_limit,
                   .limit = gptq_limit,
                   .needs_one_group_size = any_spec};

}  // namespace wasmquant::runtimes
