// Names of the model and its data file, and the order of literals, copies and tasks in them.
#include "pipeline/onnx_plan/onnx_files.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"
#include "formats/onnx/onnx_value_type.h"
#include "pipeline/plan/onnx_file_name.h"

namespace wasmquant {
namespace {

using conversion::Segment;

// Shorter gaps between tensors (nodes) are written as literals, which is cheaper than a task each.
constexpr uint64_t kMaxLiteralBytes = 1 << 20;
constexpr std::string_view kFolder = "onnx/";  // of transformers.js

// Of the inputs for cached keys and values, as Optimum names them.
std::string_view cache_type_of(const onnx::Model& onnx) {
  for (const onnx::Input& input : onnx.graphs[0].inputs) {
    if (!input.name.starts_with("past_key_values")) continue;
    const uint32_t type = onnx::value_type_of(*onnx.skeleton, input.whole).data_type;
    if (type == static_cast<uint32_t>(onnx::DataType::float16)) return "float16";
    if (type == static_cast<uint32_t>(onnx::DataType::float32)) return "float32";
  }
  return {};
}

// By which a file of weights like this one is known.
std::string_view suffix_of(const PlannedTensor& planned) {
  const WeightLayout& layout = planned.task.layout;
  const bool is_half = layout.spec.scale_type == ScaleType::float16;
  if (*planned.onnx_form == OnnxForm::integer_operator) return "quantized";
  if (layout.bits == 2) return is_half ? "q2f16" : "q2";
  if (layout.bits == 4) return is_half ? "q4f16" : "q4";
  return layout.spec.dtype == Dtype::int8 ? "int8" : layout.spec.dtype == Dtype::uint8 ? "uint8" : "quantized";
}

}  // namespace

OnnxFiles::OnnxFiles(Plan& plan, const ModelIndex& model, const onnx::Model& onnx, const PlanOptions& options,
                     const List<bool>& is_substitute)
    : plan_(plan),
      model_(model),
      onnx_(onnx),
      options_(options),
      name_(model_name(is_substitute)),
      data_name_(text_of("{}_data", name_)) {}

std::string OnnxFiles::data_in_model() const {
  return options_.onnx.folder ? data_name_.substr(kFolder.size()) : data_name_;
}

// The dtype of most bytes; "quantized" if none has more than half. Weights whose operator cannot read what the config
// gives to others do not count, nor do tables that are only looked up, unless there is nothing else.
std::string OnnxFiles::suffix(const List<bool>& is_substitute) const {
  struct Share {
    std::string_view suffix;
    uint64_t bytes;
  };
  enum { kProduct, kTable, kSubstitute, kNothing } chosen = kNothing;
  List<Share> shares;
  uint64_t bytes = 0;
  for (size_t i = 0; i < plan_.tensors.size(); ++i) {
    const PlannedTensor& planned = plan_.tensors[i];
    if (!planned.onnx_form) continue;
    const bool is_table = *planned.onnx_form == OnnxForm::gather_rows;
    const auto kind = is_substitute[i] ? kSubstitute : is_table ? kTable : kProduct;
    if (kind > chosen) continue;
    if (kind < chosen) shares.clear(), bytes = 0;
    chosen = kind;
    const std::string_view own = suffix_of(planned);
    auto share = std::find_if(shares.begin(), shares.end(), [&](const Share& other) { return other.suffix == own; });
    if (share == shares.end()) share = &shares.emplace_back(Share{own, 0});
    share->bytes += planned.task.source_bytes;
    bytes += planned.task.source_bytes;
  }
  for (const Share& share : shares)
    if (share.bytes > bytes / 2) return text_of("_{}", share.suffix);
  return shares.empty() ? "" : "_quantized";
}

// transformers.js names: model_q4.onnx, model_q4f16.onnx, model_int8.onnx; its q8 is "quantized".
std::string OnnxFiles::model_name(const List<bool>& is_substitute) const {
  if (!options_.onnx.file.empty()) return options_.onnx.file;
  std::string_view name = options_.name.empty() ? std::string_view("model") : options_.name;
  // transformers.js names tell the model's part: model, encoder_model, decoder_model_merged ...
  if (options_.onnx.folder)
    name = model_.format().has_graph ? read_onnx_file_name(model_.files()[0].name).stem : std::string_view("model");
  const std::string_view folder = options_.onnx.folder ? kFolder : "";
  return text_of("{}{}{}.onnx", folder, name, suffix(is_substitute));
}

void OnnxFiles::place(const conversion::OnnxRewrite& rewritten, List<uint32_t> chosen) {
  // Data first: it has most bytes, and append-only targets take one file after another.
  plan_.onnx = {name_, 0, cache_type_of(onnx_), options_.onnx.present};
  if (rewritten.data.bytes > 0) {
    place_file(data_name_, rewritten.data, rewritten, chosen);
    plan_.onnx.data_files = 1;
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
        if (onnx_.skeleton->is_composed())
          place_composed(file, range, {index, at});
        else if (segment.bytes <= kMaxLiteralBytes && onnx_.skeleton->is_kept(range))
          file.add_literal(at, onnx_.skeleton->text(range));
        else
          add_copy({0, segment.begin}, segment.bytes, {index, at});
        break;
      case Segment::Kind::external:
        add_copy({segment.source, segment.begin}, segment.bytes, {index, at});
        break;
    }
    at += segment.bytes;
  }
  plan_.files.push_back(std::move(file));
}

// Of a dequantized model's text only what was cut out of the source is in its file.
void OnnxFiles::place_composed(PlannedFile& file, const onnx::Range& range, Location to) {
  const onnx::Skeleton& text = *onnx_.skeleton;
  for (uint64_t at = range.begin; at < range.end;) {
    const onnx::Range gap = text.next_gap(at);
    const uint64_t end = gap.bytes() == 0 ? range.end : std::min(gap.begin, range.end);
    if (end > at) file.add_literal(to.offset, text.text({at, end}));
    to.offset += end - at;
    at = end;
    if (at == range.end) break;
    add_copy({0, text.source_of(gap.begin)}, gap.bytes(), to);
    to.offset += gap.bytes();
    at = gap.end;
  }
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
