// Plans of any model and config: tasks and files must be consistent.
#include "cases/plan_case.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "choices.h"
#include "config/presets.h"
#include "digest.h"
#include "formats/safetensors/safetensors.h"
#include "pipeline/checkpoint_plan/file_layout.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan_output/plan_json.h"
#include "pipeline/task/packed_tasks.h"
#include "require.h"

namespace wasmquant::fuzz {
namespace {

/// One dimension: small ones, group sizes and their neighbours, and those that break arithmetic.
uint64_t dimension(Choices& choose) {
  constexpr uint64_t kSizes[] = {0, 1, 2, 8, 31, 32, 33, 63, 64, 128, 256, 384, 1000, 4096};
  const uint32_t kind = choose.below(64);
  if (kind < 48) return kSizes[kind % std::size(kSizes)];
  if (kind < 63) return choose.below(5000);
  const uint64_t power = uint64_t{1} << choose.below(44);
  return power + choose.below(3) - 1;
}

std::string name(Choices& choose) {
  constexpr const char* kLayers[] = {"self_attn.q_proj",
                                     "self_attn.k_proj",
                                     "mlp.up_proj",
                                     "mlp.experts.3.gate_proj",
                                     "input_layernorm",
                                     "conv1",
                                     "lstm",
                                     "mlp.experts.down_proj"};
  constexpr const char* kWhole[] = {"lm_head.weight", "model.embed_tokens.weight", "model.norm.weight", "", "weight",
                                    "__proto__",      "token_embd.weight",         "output.weight"};
  constexpr const char* kParts[] = {".weight", ".weight", ".weight", ".bias", ".weight_scale", ".qweight", "_proj"};
  if (choose.below(8) == 0) return kWhole[choose.below(std::size(kWhole))];
  std::string text = "model.layers." + std::to_string(choose.below(12)) + ".";
  text += kLayers[choose.below(std::size(kLayers))];
  return text += kParts[choose.below(std::size(kParts))];
}

std::vector<uint64_t> shape(Choices& choose, uint32_t most) {
  std::vector<uint64_t> dimensions(choose.below(4) == 0 ? choose.below(most + 1) : 2);
  for (uint64_t& each : dimensions) each = dimension(choose);
  return dimensions;
}

/// A header that its writer accepts, fed to the index; false when it does not.
bool open(Choices& choose, ModelIndex& index) {
  const bool is_gguf = choose.below(4) == 0;
  const uint32_t count = choose.below(9);
  if (is_gguf) {
    gguf::Metadata metadata;
    metadata.set_text("general.architecture", choose.flag() ? "llama" : "gemma2");
    metadata.set_u32("llama.block_count", choose.below(40));
    if (choose.flag()) metadata.set_u32(gguf::kAlignmentKey, 1u << choose.below(8));
    std::vector<gguf::NewTensor> tensors;
    for (uint32_t i = 0; i < count; ++i) {
      const GgmlTypeInfo& type = kGgmlTypes[choose.below(kGgmlTypes.size())];
      std::vector<uint64_t> dimensions = shape(choose, 4);
      if (!dimensions.empty() && choose.below(16) != 0) dimensions.back() -= dimensions.back() % type.block;
      std::string called = name(choose);
      if (choose.flag()) called += std::to_string(i);
      tensors.push_back({std::move(called), type.type, dimensions});
    }
    const auto header = gguf::write_header(metadata, tensors);
    if (!header) return false;
    const uint32_t file = index.add_file("model.gguf", header->file_bytes);
    return index.feed(file, {reinterpret_cast<const uint8_t*>(header->bytes.data()), header->bytes.size()}) &&
           index.finish();
  }
  List<safetensors::TensorHeader> entries;
  constexpr StorageDtype kUsual[] = {StorageDtype::F32, StorageDtype::F16, StorageDtype::BF16, StorageDtype::I32};
  for (uint32_t i = 0; i < count; ++i) {
    const StorageDtype dtype = choose.below(4) != 0 ? kUsual[choose.below(std::size(kUsual))]
                                                    : kStorageDtypes[choose.below(kStorageDtypes.size())].dtype;
    entries.push_back({name(choose), dtype, shape(choose, 5)});
  }
  const auto header = safetensors::write_header(entries, {});
  if (!header) return false;
  const uint32_t file = index.add_file("model.safetensors", header->file_bytes);
  return index.feed(file, {reinterpret_cast<const uint8_t*>(header->bytes.data()), header->bytes.size()}) &&
         index.finish();
}

std::string spec(Choices& choose) {
  static constexpr const char* kDtypes[] = {"int4", "uint4", "int8", "int3", "int2", "fp8_e4m3", "fp4", "mx6", "bfp16"};
  static constexpr const char* kSchemes[] = {"per_tensor", "per_channel", "per_group"};
  static constexpr int kAxes[] = {-1, 0, 1, 2, -2, 7};
  static constexpr int kGroups[] = {1, 2, 16, 32, 33, 64, 128, 4096, -1, 0};
  std::string text = R"({"dtype":")";
  text += kDtypes[choose.below(std::size(kDtypes))];
  text += R"(","qscheme":")";
  text += kSchemes[choose.below(3)];
  text += "\"";
  if (choose.flag()) text += ",\"ch_axis\":" + std::to_string(kAxes[choose.below(std::size(kAxes))]);
  if (choose.flag()) text += ",\"group_size\":" + std::to_string(kGroups[choose.below(std::size(kGroups))]);
  if (choose.flag()) text += choose.flag() ? ",\"symmetric\":true" : ",\"symmetric\":false";
  if (choose.below(8) == 0) text += ",\"block_size\":[" + std::to_string(choose.below(200)) + ",128]";
  return text + "}";
}

std::string config(Choices& choose) {
  const auto presets = config::presets();
  const uint32_t kind = choose.below(4);
  if (kind == 0) return std::string(presets[choose.below(static_cast<uint32_t>(presets.size()))].name);
  if (kind == 1) {
    constexpr const char* kRecipes[] = {"q4_k_m", "q2_k", "q8_0", "iq4_xs", "mxfp4", "tq1_0", "f16", "q5_1"};
    return std::string(R"({"dialect":"gguf","recipe":")") + kRecipes[choose.below(std::size(kRecipes))] + "\"}";
  }
  std::string text = R"({"global_quant_config":{"weight":)" + spec(choose) + "}";
  if (choose.flag()) text += R"(,"layer_quant_config":{"*.up_proj":{"weight":)" + spec(choose) + "}}";
  if (choose.flag()) text += R"(,"exclude":["lm_head","re:.*k_proj"])";
  if (choose.flag()) text += R"(,"indivisible_groups":"fallback")";
  return text + "}";
}

void check_task(const TensorTask& task, const Result<TensorTask>& again) {
  require(again && identity_of(*again) == identity_of(task));
  require(again->tiles == task.tiles && again->tile_lines == task.tile_lines);
  require(task.components.size() == task.layout->components.size());
  const uint64_t lines = task.is_copy ? task.layout->components.front().bytes : task.layout->lines();
  if (task.tiles == 0) return require(lines == 0 || (!task.is_copy && task.layout->line_elements() == 0));
  require(tile_range(task, 0).begin == 0 && tile_range(task, task.tiles - 1).end == lines);
  for (uint64_t tile : std::array{uint64_t{0}, task.tiles / 2, task.tiles - 1})
    require(tile_range(task, tile).begin <= tile_range(task, tile).end);
}

/// Of the packed tasks, which come back as they were; with some bytes changed they are refused, or read as others.
std::string check_tasks(const Plan& plan, Choices& choose) {
  TaskPacker packer;
  for (size_t i = 0; i < plan.task_count(); ++i) packer.add(plan.task_of(plan.work_of(i)));
  const std::string packed = packer.bytes();
  const auto tasks = PackedTasks::open(packed);
  require(tasks && tasks->size() == plan.task_count());
  for (size_t i = 0; i < plan.task_count(); ++i) check_task(plan.task_of(plan.work_of(i)), tasks->at(i));
  std::string changed = packed;
  for (uint32_t changes = 1 + choose.below(4); changes > 0; --changes) {
    char& byte = changed[choose.below(static_cast<uint32_t>(changed.size()))];
    byte = static_cast<char>(choose.byte());
  }
  if (const auto others = PackedTasks::open(std::move(changed)))
    for (size_t i = 0; i < others->size(); ++i)
      if (const auto other = others->at(i); !other) require(other.error().message.size() < 4096);
  return packed;
}

void check_files(const Plan& plan) {
  struct Part {
    uint64_t begin, end;
  };
  for (size_t f = 0; f < plan.files.size(); ++f) {
    const PlannedFile& file = plan.files[f];
    List<Part> parts;
    for (size_t piece = 0; piece < file.header.piece_count(); ++piece) {
      const uint64_t begin = file.header.marks[piece].text;
      parts.push_back({begin, begin + header_text(plan, file.header, piece).size()});
    }
    if (file.literals.empty() && parts.empty()) parts.push_back({0, file.prefix.size()});
    for (const Literal& literal : file.literals) parts.push_back({literal.offset, literal.offset + literal.bytes});
    for (size_t i = 0; i < plan.task_count(); ++i) {
      const TensorTask& task = plan.task_of(plan.work_of(i));
      for (size_t c = 0; c < task.components.size(); ++c) {
        const Component& component = task.layout->components[c];
        if (task.components[c].file != f || is_known(component.role)) continue;
        const uint64_t begin = task.components[c].offset;
        parts.push_back({begin, begin + component.bytes + task.padding});
      }
    }
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
    uint64_t end = 0;
    for (const Part& part : parts) {
      if (part.begin == part.end) continue;
      require(part.begin == end && part.end > part.begin);
      end = part.end;
    }
    require(end == file.bytes);
  }
}

}  // namespace

uint64_t run_plan_case(std::span<const uint8_t> input) {
  Choices choose(input);
  Digest digest;
  ModelIndex index;
  if (!open(choose, index)) return digest.value();
  const std::string text = config(choose);
  constexpr const char* kFormats[] = {"",     "compressed-tensors", "quark", "awq", "gptq", "gguf",
                                      "onnx", "fake-quantized"};
  PlanOptions options;
  options.format = kFormats[choose.below(std::size(kFormats))];
  options.calibrates = choose.flag();
  if (choose.flag()) options.tile_bytes = {1 + uint64_t{choose.below(100000)}, 1 + uint64_t{choose.below(100000)}};
  if (choose.flag()) options.gguf.shard_bytes = 1 + choose.below(1 << 20);

  List<Diagnostic> diagnostics;
  const auto plan = make_plan(index, text, options, diagnostics);
  for (const Diagnostic& each : diagnostics) digest.add(each.message);
  if (!plan) {
    require(plan.error().message.size() < 4096);
    digest.add(plan.error().message);
    return digest.value();
  }
  digest.add(json::write(plan_json(*plan, index, diagnostics)));
  PlanRows rows(*plan, index);
  const size_t half = plan->tensors.size() / 2;
  digest.add(rows.rows(0, half));
  digest.add(rows.rows(half, plan->tensors.size()));
  check_files(*plan);
  digest.add(check_tasks(*plan, choose));
  for (const PlannedFile& file : plan->files) digest.add(file.prefix), digest.add(file.bytes);
  return digest.value();
}

}  // namespace wasmquant::fuzz
