// The history of operators as rows, and one function for each that needs more than a new version number.
#include "onnx_graph/onnx_opset.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/message.h"
#include "formats/onnx/onnx_views.h"

namespace wasmquant::conversion {
namespace {

// Older versions differ too much.
constexpr uint64_t kOldest = 9;

// An operator whose nodes change meaning or become invalid in a version: those with the attribute, or all.
// From the operators' history in Changelog.md of onnx, versions 10 to 25.
enum class Becomes : uint8_t { nothing, integers, real };
struct Change {
  std::string_view op_type;
  uint8_t version;
  std::string_view attribute;
  Becomes becomes = Becomes::nothing;  // an input
  uint8_t input = 1;
};
constexpr std::string_view kAny = "*";
constexpr uint32_t kPerChannel = 13;  // of DequantizeLinear
constexpr auto kIntegers = Becomes::integers, kReal = Becomes::real;
constexpr Change kChanges[] = {
    {"Slice", 10, "starts", kIntegers},
    {"Slice", 10, "ends", kIntegers, 2},
    {"Slice", 10, "axes", kIntegers, 3},
    {"TopK", 10, "k", kIntegers},
    {"Upsample", 10, kAny},
    {"Clip", 11, "min", kReal},
    {"Clip", 11, "max", kReal, 2},
    {"Pad", 11, "pads", kIntegers},
    {"Pad", 11, "value", kReal, 2},
    {"Resize", 11, kAny},
    {"Scatter", 11, kAny},
    {"Dropout", 12, "ratio", kReal},
    {"Hardmax", 13, kAny},
    {"LogSoftmax", 13, kAny},
    {"ReduceSum", 13, "axes", kIntegers},
    {"Softmax", 13, kAny},
    {"Split", 13, "split", kIntegers},
    {"Squeeze", 13, "axes", kIntegers},
    {"Unsqueeze", 13, "axes", kIntegers},
    {"BatchNormalization", 14, "training_mode"},
    {"RoiAlign", 16, kAny},
    {"ReduceL1", 18, "axes", kIntegers},
    {"ReduceL2", 18, "axes", kIntegers},
    {"ReduceLogSum", 18, "axes", kIntegers},
    {"ReduceLogSumExp", 18, "axes", kIntegers},
    {"ReduceMax", 18, "axes", kIntegers},
    {"ReduceMean", 18, "axes", kIntegers},
    {"ReduceMin", 18, "axes", kIntegers},
    {"ReduceProd", 18, "axes", kIntegers},
    {"ReduceSumSquare", 18, "axes", kIntegers},
    {"Split", 18, kAny},  // except nodes that list the sizes, see below
    {"DFT", 20, "axis"},
    {"GridSample", 20, "mode"},
    {"GroupNormalization", 21, kAny},
};

uint32_t attribute_of(const onnx::Node& node, std::string_view name) {
  for (uint32_t i = 0; i < node.attributes.size(); ++i)
    if (node.attributes[i].name == name) return i;
  return onnx::kNone;
}

// kAny: whether this node changes.
bool is_changed(const onnx::Node& node) {
  if (node.op_type == "Split") return node.inputs.size() < 2 && node.find("split") == nullptr;
  if (!node.op_type.ends_with("max")) return true;
  const onnx::Attribute* axis = node.find("axis");  // over the last axis, both meanings agree
  return axis == nullptr || axis->integer != -1;
}

// The scales of Resize, if they are constants.
std::vector<float> scales_of(const onnx::Model& model, uint32_t node) {
  std::vector<float> scales;
  for (const onnx::Tensor& tensor : model.tensors)
    for (const onnx::Consumer& consumer : tensor.consumers) {
      const onnx::Range values{tensor.begin, tensor.end};
      if (consumer.node != node || consumer.input != 1 || consumer.view != onnx::kNone || tensor.data_type != 1 ||
          tensor.encoding != onnx::Encoding::bytes || tensor.is_external() || tensor.input.bytes() > 0 ||
          !model.skeleton->is_kept(values))
        continue;
      const std::string_view text = model.skeleton->text(values);
      scales.resize(text.size() / sizeof(float));
      if (!scales.empty()) std::memcpy(scales.data(), text.data(), scales.size() * sizeof(float));
    }
  return scales;
}

// How a node changes that has no attribute for it; nullopt: it cannot be converted. Resize of version 10 rounds
// coordinates down where it enlarges and up where it makes smaller, as ONNX Runtime does.
std::optional<NodeChange> change_of(const onnx::Model& model, uint32_t n) {
  const onnx::Node& node = model.nodes[n];
  if (node.op_type.ends_with("max"))
    return node.inputs.size() == 1 && node.outputs.size() == 1 ? std::optional(NodeChange::flatten) : std::nullopt;
  if (node.op_type == "Split") return NodeChange::count;
  const bool is_resize = node.op_type == "Resize";
  if ((!is_resize && node.op_type != "Upsample") || node.inputs.size() != 2) return std::nullopt;
  const onnx::Attribute* const mode = node.find("mode");
  if (!is_resize || (mode != nullptr && onnx::text_of(*model.skeleton, *mode) == "linear")) return NodeChange::floor;
  const std::vector<float> scales = scales_of(model, n);
  const auto is_all = [&](auto&& holds) { return std::all_of(scales.begin(), scales.end(), holds); };
  if (scales.empty()) return std::nullopt;
  if (is_all([](float scale) { return scale >= 1; })) return NodeChange::floor;
  if (is_all([](float scale) { return scale <= 1; })) return NodeChange::ceil;
  return is_all([](float scale) { return scale > 0; }) ? std::optional(NodeChange::both) : std::nullopt;
}

void append_integer(std::string& out, uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) out += static_cast<char>(value >> (8 * byte) & 0xFF);
}

void append_real(std::string& out, float value) {
  char bytes[sizeof(float)];
  std::memcpy(bytes, &value, sizeof(float));
  out.append(bytes, sizeof(float));
}

// AttributeProto: 2 f, 3 i, 8 ints. False: something else.
bool read_values(const onnx::Skeleton& skeleton, const onnx::Attribute& attribute, bool is_real, std::string& out) {
  if (!is_real) {
    const auto integers = onnx::integers_of(skeleton, attribute);
    if (!integers) return false;
    for (const int64_t value : *integers) append_integer(out, static_cast<uint64_t>(value));
    return !out.empty();
  }
  for (onnx::Fields f(skeleton, skeleton.field(attribute.whole.begin).payload); f.next();) {
    if (f.field.number != 2) continue;
    out.assign(sizeof(float), '\0');
    std::memcpy(out.data(), &attribute.real, sizeof(float));
  }
  return !out.empty();
}

// Reals become inputs of the type of the others, which is known only if there is a single one.
bool has_one_real_type(const onnx::Model& model) {
  for (const onnx::Tensor& tensor : model.tensors)
    if (tensor.data_type == 10 || tensor.data_type == 11 || tensor.data_type == 16) return false;  // half, double, bf16
  return true;
}

}  // namespace

Result<List<AttributeInput>> opset_changes(const onnx::Model& model, uint32_t opset) {
  List<AttributeInput> inputs;
  const uint64_t from = model.opset();
  if (from >= opset) return inputs;
  if (from < kOldest)
    return error_at(ErrorCode::format_unsupported, "opset_import",
                    "the model uses opset {}; this needs opset {}, and only models from opset {} on can be converted. "
                    "Export the model again",
                    from, opset, kOldest);
  if (model.functions > 0)
    return error_at(ErrorCode::format_unsupported, "opset_import",
                    "this needs opset {}, and the model has functions, which are written for opset {}", opset, from);
  const bool has_one_type = has_one_real_type(model);
  for (uint32_t n = 0; n < model.nodes.size(); ++n) {
    const onnx::Node& node = model.nodes[n];
    if (!node.domain.empty()) continue;
    for (const Change& change : kChanges) {
      if (change.version <= from || change.version > opset || node.op_type != change.op_type) continue;
      const bool is_any = change.attribute == kAny;
      const uint32_t attribute = is_any ? onnx::kNone : attribute_of(node, change.attribute);
      if (is_any ? !is_changed(node) : attribute == onnx::kNone) continue;
      AttributeInput input{NodeChange::input, n, attribute, change.input, change.becomes == kReal, {}};
      const bool is_whole = node.graphs.empty();  // subgraphs may have edits
      if (const auto changed = is_any && is_whole ? change_of(model, n) : std::nullopt) {
        input.change = *changed;
        if (*changed == NodeChange::both)
          for (const float scale : scales_of(model, n)) append_real(input.values, scale);
        inputs.push_back(std::move(input));
        continue;
      }
      if (is_whole && attribute != onnx::kNone && change.becomes != Becomes::nothing &&
          (!input.is_real || has_one_type) && !node.outputs.empty() &&
          read_values(*model.skeleton, node.attributes[attribute], input.is_real, input.values)) {
        inputs.push_back(std::move(input));
        continue;
      }
      return error_at(
          ErrorCode::format_unsupported, node.name.empty() ? node.op_type : node.name,
          "this needs opset {}, and opset {} changes what {} means, which is not converted here. Export the "
          "model for opset {}, convert it with onnx.version_converter.convert_version(model, {}) of the "
          "Python package onnx, or leave --qdq (the option qdq) out where it is set{}",
          opset, uint32_t{change.version}, node.op_type, opset, opset,
          opset == kPerChannel ? std::string_view(", or give the weights one scale each (int8_per_tensor)")
                               : std::string_view());
    }
  }
  return inputs;
}

}  // namespace wasmquant::conversion
