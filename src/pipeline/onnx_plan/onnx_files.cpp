// Names of the model and its data file, and the order of literals, copies and tasks in them.
#include "pipeline/onnx_plan/onnx_files.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"

namespace wasmquant {
namespace {

using conversion::Segment;

// Shorter gaps between tensors (nodes) are written as literals, which is cheaper than a task each.
constexpr uint64_t kMaxLiteralBytes = 1 << 20;
constexpr std::string_view kFolder = "onnx/";  // of transformers.js

// Strips folder, extension and the dtype being quantized.
std::string_view stem_of(std::string_view name) {
  name = name.substr(name.find_last_of("/\\") + 1);
  for (const std::string_view ending : {".onnx", "_fp16", "_fp32"})
    if (name.ends_with(ending) && name.size() > ending.size()) name.remove_suffix(ending.size());
  return name;
}

}  // namespace

OnnxFiles::OnnxFiles(Plan& plan, const ModelIndex& model, const onnx::Model& onnx, const PlanOptions& options)
    : plan_(plan),
      model_(model),
      onnx_(onnx),
      options_(options),
      name_(model_name()),
      data_name_(text_of("{}_data", name_)) {}

std::string OnnxFiles::data_in_model() const {
  return options_.onnx.folder ? data_name_.substr(kFolder.size()) : data_name_;
}

// transformers.js names: model_q4.onnx, model_q4f16.onnx, model_int8.onnx; all others, such as q8, are "quantized".
std::string OnnxFiles::model_name() const {
  if (!options_.onnx.file.empty()) return options_.onnx.file;
  const char* suffix = nullptr;
  const auto is_product = [](const PlannedTensor& planned) {
    return planned.onnx_form && *planned.onnx_form != OnnxForm::gather_block_quantized;
  };
  // Tables that are only looked up have the name of the layers, which may have fewer bits.
  const bool has_products = std::any_of(plan_.tensors.begin(), plan_.tensors.end(), is_product);
  for (const PlannedTensor& planned : plan_.tensors) {
    if (has_products ? !is_product(planned) : !planned.onnx_form) continue;
    const WeightLayout& layout = planned.task.layout;
    const bool is_half = layout.spec.scale_type == ScaleType::float16;
    const bool computes = *planned.onnx_form == OnnxForm::integer_operator;
    const char* own = computes                            ? "quantized"
                      : layout.bits == 2                  ? is_half ? "q2f16" : "q2"
                      : layout.bits == 4                  ? is_half ? "q4f16" : "q4"
                      : layout.spec.dtype == Dtype::int8  ? "int8"
                      : layout.spec.dtype == Dtype::uint8 ? "uint8"
                                                          : "quantized";
    suffix = suffix == nullptr || std::string_view(suffix) == own ? own : "quantized";
  }
  std::string_view name = options_.name.empty() ? std::string_view("model") : options_.name;
  // transformers.js names tell the model's part: model, encoder_model, decoder_model_merged ...
  if (options_.onnx.folder) name = stem_of(model_.files()[0].name);
  const std::string_view folder = options_.onnx.folder ? kFolder : "";
  return suffix == nullptr ? text_of("{}{}.onnx", folder, name) : text_of("{}{}_{}.onnx", folder, name, suffix);
}

void OnnxFiles::place(const conversion::OnnxRewrite& rewritten, List<uint32_t> chosen) {
  // Data first: it has most bytes, and append-only targets take one file after another.
  if (rewritten.data.bytes > 0) {
    place_file(data_name_, rewritten.data, rewritten, chosen);
    plan_.external_data_of = name_;
  }
  place_file(name_, rewritten.model, rewritten, chosen);
  for (PlannedTensor& planned : plan_.tensors)
    if (planned.task.is_copy && !planned.task.factors->any() && !planned.outputs().empty())
      planned.task.components.front().file = file_of_copy(planned);
  order_work(std::move(chosen));
}

void OnnxFiles::place_file(const std::string& name, const conversion::OnnxFile& from,
                           const conversion::OnnxRewrite& rewritten, const List<uint32_t>& chosen) {
  const auto index = static_cast<uint32_t>(plan_.files.size());
  PlannedFile file;
  file.name = name;
  file.bytes = from.bytes;
  uint64_t at = 0;
  for (const Segment& segment : from.segments) {
    const onnx::Range range{segment.begin, segment.begin + segment.bytes};
    switch (segment.kind) {
      case Segment::Kind::literal:
        file.add_literal(at, std::string_view(rewritten.literals).substr(segment.begin, segment.bytes));
        break;
      case Segment::Kind::zeros:
        file.add_literal(at, std::string(segment.bytes, '\0'));
        break;
      case Segment::Kind::component:
        plan_.tensors[chosen[segment.source]].task.components[segment.component] = {index, at};
        break;
      case Segment::Kind::model:
        if (segment.bytes <= kMaxLiteralBytes && onnx_.skeleton->is_kept(range))
          file.add_literal(at, onnx_.skeleton->text(range));
        else
          add_copy({0, segment.begin}, segment.bytes, {index, at});
        break;
      case Segment::Kind::external:
        add_copy({segment.source + 1, segment.begin}, segment.bytes, {index, at});
        break;
    }
    at += segment.bytes;
  }
  plan_.files.push_back(std::move(file));
}

void OnnxFiles::add_copy(const Location& from, uint64_t bytes, const Location& to) {
  TensorTask& task = plan_.copies.emplace_back();
  task.is_copy = true;
  task.source = from;
  task.source_bytes = bytes;
  task.components.push_back(to);
  set_tiles(task, options_.tile_bytes);
}

// onnx_graph/onnx_rewrite.cpp keeps small tensors in the model.
uint32_t OnnxFiles::file_of_copy(const PlannedTensor& planned) const {
  const onnx::Tensor& tensor = onnx_.tensors[model_.onnx_tensors()[planned.tensor].tensor];
  const bool is_inside = planned.task.source_bytes < conversion::kLeastExternalBytes ||
                         (tensor.encoding != onnx::Encoding::bytes && !tensor.is_external());
  return is_inside ? static_cast<uint32_t>(plan_.files.size() - 1) : 0;
}

// Sorts work by place in the files.
void OnnxFiles::order_work(List<uint32_t> work) {
  for (uint32_t c = 0; c < plan_.copies.size(); ++c) work.push_back(static_cast<uint32_t>(plan_.tensors.size()) + c);
  const auto place_of = [&](uint32_t i) { return plan_.task_of(work[i]).components.front(); };
  plan_.work = List<uint32_t>();
  for (const uint32_t i : sorted_order(work.size(), [&](uint32_t a, uint32_t b) {
         const Location left = place_of(a), right = place_of(b);
         return left.file != right.file ? left.file < right.file : left.offset < right.offset;
       }))
    plan_.work.push_back(work[i]);
}

}  // namespace wasmquant
