#include "conversion/onnx_opset.h"

#include "core/message.h"

namespace wasmquant::conversion {
namespace {

// Older files are too different in too many ways.
constexpr uint64_t kOldest = 9;

// An operator whose nodes change meaning, or stop being valid, with a version: those that have the attribute; `any`:
// all; `bare`: those with one input. From the operators' history in Changelog.md of onnx, versions 10 to 25.
struct Change {
  std::string_view op_type;
  uint8_t version;
  std::string_view attribute;
};
constexpr std::string_view kAny = "*", kBare = "-";
constexpr Change kChanges[] = {
    {"Slice", 10, "starts"},
    {"TopK", 10, "k"},
    {"Upsample", 10, kAny},
    {"Clip", 11, "max"},
    {"Clip", 11, "min"},
    {"Pad", 11, "pads"},
    {"Resize", 11, kAny},
    {"Scatter", 11, kAny},
    {"Dropout", 12, "ratio"},
    {"Hardmax", 13, kAny},
    {"LogSoftmax", 13, kAny},  // but for axis -1, see below
    {"ReduceSum", 13, "axes"},
    {"Softmax", 13, kAny},  // but for axis -1, see below
    {"Split", 13, "split"},
    {"Squeeze", 13, "axes"},
    {"Unsqueeze", 13, "axes"},
    {"BatchNormalization", 14, "training_mode"},
    {"RoiAlign", 16, kAny},
    {"ReduceL1", 18, "axes"},
    {"ReduceL2", 18, "axes"},
    {"ReduceLogSum", 18, "axes"},
    {"ReduceLogSumExp", 18, "axes"},
    {"ReduceMax", 18, "axes"},
    {"ReduceMean", 18, "axes"},
    {"ReduceMin", 18, "axes"},
    {"ReduceProd", 18, "axes"},
    {"ReduceSumSquare", 18, "axes"},
    {"Split", 18, kBare},
    {"DFT", 20, "axis"},
    {"GridSample", 20, "mode"},
    {"GroupNormalization", 21, kAny},
};

bool is_changed(const onnx::Node& node, const Change& change) {
  if (node.op_type != change.op_type) return false;
  if (change.attribute == kBare) return node.inputs.size() < 2;
  if (change.attribute != kAny) return node.find(change.attribute) != nullptr;
  if (node.op_type.ends_with("oftmax")) {  // Softmax and LogSoftmax: over the last axis, both meanings are one
    const onnx::Attribute* axis = node.find("axis");
    return axis == nullptr || axis->integer != -1;
  }
  return true;
}

}  // namespace

Status check_raise(const onnx::Model& model, uint32_t opset) {
  const uint64_t from = model.opset();
  if (from >= opset) return {};
  if (from < kOldest)
    return error_at(ErrorCode::format_unsupported, "opset_import",
                    "the model uses version {} of the operators, version {} is needed, and only models of version {} "
                    "or later can be raised; export it anew",
                    from, opset, kOldest);
  if (model.functions > 0)
    return error_at(ErrorCode::format_unsupported, "opset_import",
                    "version {} of the operators is needed, and the model has functions, which say {}", opset, from);
  for (const onnx::Node& node : model.nodes) {
    if (!node.domain.empty()) continue;
    for (const Change& change : kChanges)
      if (change.version > from && change.version <= opset && is_changed(node, change))
        return error_at(ErrorCode::format_unsupported, node.name.empty() ? node.op_type : node.name,
                        "version {} of the operators is needed, and version {} changes what {} means; export the model "
                        "for version {}",
                        opset, uint32_t{change.version}, node.op_type, opset);
  }
  return {};
}

uint32_t ir_version_of(uint32_t opset) noexcept {
  if (opset >= 25) return 12;
  if (opset >= 23) return 11;
  if (opset >= 21) return 10;
  if (opset >= 19) return 9;
  return opset >= 15 ? 8 : 7;
}

}  // namespace wasmquant::conversion
