// Any bytes as an ONNX model. Whatever is accepted is the same when fed in other pieces, has its values inside the
// file, and can be rewritten with its weights quantized: the result is accepted again, and has them.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "formats/onnx/onnx.h"
#include "mutators/mutators.h"
#include "onnx_graph/onnx_rewrite.h"
#include "onnx_graph/onnx_weights.h"
#include "pipeline/stored/onnx_dequantize.h"
#include "require.h"

namespace {

using namespace wasmquant;
using conversion::Segment;

Result<onnx::Model> read(std::span<const uint8_t> file, size_t step) {
  auto skeleton = std::make_unique<onnx::Skeleton>(file.size());
  for (auto need = skeleton->need(); need.bytes > 0; need = skeleton->need()) {
    require(need.offset + need.bytes <= file.size());
    const auto piece = file.subspan(need.offset, std::min<size_t>(need.bytes, step));
    const std::vector<uint8_t> alone(piece.begin(), piece.end());
    auto status = skeleton->feed(alone);
    if (!status) return std::move(status.error());
  }
  return onnx::read_model(std::move(skeleton));
}

bool is_same(const onnx::Model& a, const onnx::Model& b) {
  if (a.nodes.size() != b.nodes.size() || a.tensors.size() != b.tensors.size()) return false;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const onnx::Tensor &left = a.tensors[i], &right = b.tensors[i];
    if (left.name != right.name || left.shape != right.shape || left.begin != right.begin || left.end != right.end)
      return false;
  }
  return true;
}

constexpr uint64_t kMost = 4 << 20;

std::string bytes_of(const conversion::OnnxFile& file, const std::string& literals, std::span<const uint8_t> in) {
  std::string out;
  for (const Segment& segment : file.segments) {
    const auto begin = static_cast<size_t>(segment.begin), bytes = static_cast<size_t>(segment.bytes);
    if (segment.kind == Segment::Kind::literal) {
      require(begin + bytes <= literals.size());
      out.append(literals, begin, bytes);
    } else if (segment.kind == Segment::Kind::model) {
      require(begin + bytes <= in.size());
      out.append(reinterpret_cast<const char*>(in.data()) + begin, bytes);
    } else {
      out.append(bytes, '\0');
    }
  }
  require(out.size() == file.bytes);
  return out;
}

void rewrite(const onnx::Model& model, std::span<const uint8_t> file, const QuantizationSpec& spec,
             conversion::OnnxStyle style, uint64_t largest) {
  std::deque<WeightLayout> layouts;
  std::vector<conversion::OnnxChoice> choices;
  uint64_t bytes = 0;
  const auto weights = conversion::list_weights(model);
  for (const auto& weight : weights) {
    const auto form = conversion::onnx_form_of(model, weight, spec, style);
    if (!form) continue;
    auto layout = onnx_layout(*form, conversion::describe(model, weight, *form), spec);
    if (!layout) continue;
    layouts.push_back(std::move(*layout));
    choices.push_back({weight.tensor, *form, &layouts.back(), &weight, {}, {}});
    if (style == conversion::OnnxStyle::dequantize_linear) {
      choices.back().input = conversion::StaticScale{0.5f, 3, false};
      if (weight.tensor % 2 == 0) choices.back().output = conversion::StaticScale{0.25f, 0, true};
    }
    for (const Component& component : layouts.back().components) bytes += component.bytes;
  }
  conversion::OnnxOptions options;
  options.data_file = "data";
  options.largest_model = largest;
  DiagnosticList diagnostics;
  const auto out = conversion::rewrite_onnx(model, choices, options, diagnostics);
  if (!out) return;
  if (choices.empty() && largest > kMost && model.locations.empty()) require(out->model.bytes == file.size());
  if (out->model.bytes > kMost || bytes > kMost) return;
  const std::string text = bytes_of(out->model, out->literals, file);
  const auto again = read({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, 1 << 16);
  require(static_cast<bool>(again));
  require(again->quantized_nodes >= model.quantized_nodes + (choices.empty() ? 0 : 1));
  if (out->data.bytes > 0)
    require(again->locations.size() == 1 && onnx::check_external(*again, "data", out->data.bytes));
}

// Codes that are decoded are in the file, whatever nodes read them, and the float model can be quantized.
void dequantize(const onnx::Model& model, size_t size) {
  const auto floats = conversion::dequantized(model);
  if (!floats || !floats->is_changed) return;
  for (const onnx::Tensor& tensor : floats->model.tensors)
    if (tensor.is_decoded()) require(tensor.decoded < floats->weights.size());
  for (const conversion::StoredOnnxWeight& weight : floats->weights) {
    const auto stored = stored_weight(model, weight);
    const TensorTask& task = stored->task;
    require(task.components.size() == task.layout->components.size());
    for (size_t c = 0; c < task.components.size(); ++c) {
      const Component& component = task.layout->components[c];
      const uint64_t bytes = component.varint_bytes != 0 ? component.varint_bytes : component.bytes;
      require(task.components[c].file != 0 || task.components[c].offset + bytes <= size);
    }
  }
  std::deque<WeightLayout> layouts;
  std::vector<conversion::OnnxChoice> choices;
  const auto weights = conversion::list_weights(floats->model);
  const QuantizationSpec spec;
  for (const auto& weight : weights) {
    const auto form = conversion::onnx_form_of(floats->model, weight, spec, conversion::OnnxStyle::weight_only);
    if (!form) continue;
    auto layout = onnx_layout(*form, conversion::describe(floats->model, weight, *form), spec);
    if (!layout) continue;
    layouts.push_back(std::move(*layout));
    choices.push_back({weight.tensor, *form, &layouts.back(), &weight, {}, {}});
  }
  DiagnosticList diagnostics;
  (void)conversion::rewrite_onnx(floats->model, choices, {}, diagnostics);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> file(data, size);
  const auto model = read(file, 1 << 16);
  const auto pieces = read(file, 20 + (size == 0 ? 0 : data[size - 1]));
  require(static_cast<bool>(model) == static_cast<bool>(pieces));
  if (!model) {
    require(model.error().message == pieces.error().message && model.error().message.size() < 1024);
    require(model.error().where.size() < 300);
    return 0;
  }
  require(is_same(*model, *pieces));
  for (const onnx::Tensor& tensor : model->tensors) {
    require(tensor.begin <= tensor.end);
    if (tensor.is_external())
      require(onnx::is_inside_folder(tensor.location));
    else
      require(tensor.end <= size);
  }
  dequantize(*model, size);
  QuantizationSpec spec;
  spec.dtype = Dtype::uint4;
  spec.symmetric = false;
  spec.qscheme = QScheme::per_group;
  spec.ch_axis = 1;
  spec.group_size = 16;
  rewrite(*model, file, spec, conversion::OnnxStyle::weight_only, ~uint64_t{0} >> 1);
  rewrite(*model, file, spec, conversion::OnnxStyle::dequantize_linear, 100);
  spec.dtype = Dtype::int8;
  spec.symmetric = true;
  spec.qscheme = QScheme::per_channel;
  spec.ch_axis = 0;
  rewrite(*model, file, spec, conversion::OnnxStyle::dequantize_linear, ~uint64_t{0} >> 1);
  rewrite(*model, file, spec, conversion::OnnxStyle::dynamic, 100);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_protobuf(data, size, max_size, seed);
}
