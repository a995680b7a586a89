// A rewriter that edits the graph weight by weight and keeps the bytes of everything else.
#include "onnx_graph/onnx_rewrite.h"

#include <algorithm>

#include "core/message.h"
#include "formats/onnx/protobuf.h"
#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_norms.h"
#include "onnx_graph/onnx_operators.h"
#include "onnx_graph/onnx_opset.h"
#include "onnx_graph/onnx_static.h"
#include "onnx_graph/onnx_storage.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant::conversion {
namespace {

using onnx::Consumer;
using onnx::DataType;
using onnx::Range;
using onnx::Tensor;

constexpr uint32_t kMetadataProps = 14;  // of ModelProto: StringStringEntry, 1 key, 2 value
constexpr uint32_t kStaticOpset = 11;

uint32_t number_of(DataType type) { return static_cast<uint32_t>(type); }

uint32_t type_of(const OnnxChoice& choice, const Component& component) {
  if (component.role == Role::scale) return float_type_of(*choice.layout);
  const bool is_signed = component.dtype == StorageDtype::I8;
  if (choice.form == OnnxForm::dequantize_linear && choice.layout->bits == 4)
    return number_of(is_signed ? DataType::int4 : DataType::uint4);
  if (choice.form == OnnxForm::dequantize_linear && choice.layout->bits == 2)
    return number_of(is_signed ? DataType::int2 : DataType::uint2);
  return number_of(is_signed ? DataType::int8 : DataType::uint8);
}

// If everything is embedded.
uint64_t estimated_bytes(const onnx::Model& model, std::span<const OnnxChoice> choices) {
  uint64_t bytes = model.skeleton->file_bytes();
  for (const Tensor& tensor : model.tensors)
    if (tensor.is_external()) bytes += tensor.end - tensor.begin;
  for (const OnnxChoice& choice : choices) {
    const Tensor& tensor = model.tensors[choice.tensor];
    bytes -= tensor.end - tensor.begin;
    for (const Component& component : choice.layout->components) bytes += component.bytes;
  }
  return bytes;
}

void set_property(OnnxEditor& editor, std::string_view key, std::string_view value) {
  std::string entry, field;
  protobuf::append_field(entry, 1, key);
  const onnx::Skeleton& skeleton = *editor.model.skeleton;
  for (onnx::Fields f(skeleton, {0, skeleton.file_bytes()}); f.next();)
    if (f.field.number == kMetadataProps && skeleton.text(f.field.payload).starts_with(entry))
      editor.replace(f.field.whole, {});
  protobuf::append_field(entry, 2, value);
  protobuf::append_field(field, kMetadataProps, entry);
  editor.insert(editor.model.graphs[0].whole.begin, editor.literal(field));
}

bool is_taken(const onnx::Model& model, const OnnxChoice& choice, const Consumer& consumer) {
  return takes_form(model, *choice.weight, consumer, choice.form, choice.readers);
}

const Consumer* consumer_at(const Tensor& tensor, uint32_t node) {
  for (const Consumer& consumer : tensor.consumers)
    if (consumer.node == node) return &consumer;
  return nullptr;
}

// Removes the nodes between a tensor and its replaced consumers that nothing reads any more. `dequantized`: the view
// that DequantizeLinear gives now. Returns a consumer of the float tensor; null: it has none.
const Consumer* release(OnnxEditor& editor, const OnnxChoice& choice, uint32_t dequantized) {
  const onnx::Model& model = editor.model;
  const Tensor& tensor = model.tensors[choice.tensor];
  List<const Consumer*> readers(tensor.views.size());  // of each view, then of the tensor
  const Consumer* reader = nullptr;
  const auto reader_of = [&](uint32_t view) -> const Consumer*& {
    if (view == onnx::kNone) return reader;
    return readers[static_cast<size_t>(std::lower_bound(tensor.views.begin(), tensor.views.end(), view) -
                                       tensor.views.begin())];
  };
  const bool is_dequantized = dequantized != onnx::kNone;
  for (const Consumer& consumer : tensor.consumers)
    if (consumer.use != onnx::Use::view && (is_dequantized || !is_taken(model, choice, consumer)))
      reader_of(consumer.view) = &consumer;
  for (size_t v = tensor.views.size(); v-- > 0;) {
    const onnx::View& view = model.views[tensor.views[v]];
    if (tensor.views[v] == dequantized) continue;
    if (readers[v] != nullptr || view.is_output) {
      const Consumer*& above = reader_of(view.parent);
      if (above == nullptr) above = readers[v] != nullptr ? readers[v] : consumer_at(tensor, view.node);
    } else {
      editor.replace_node(view.node, {});
    }
  }
  return reader;
}

// Marks removed tensors in `is_done`.
void fold(OnnxEditor& editor, std::span<const OnnxChoice> choices, const List<OnnxNorm>& norms, List<bool>& is_done) {
  const onnx::Model& model = editor.model;
  List<bool> is_replaced(model.nodes.size());
  for (const OnnxChoice& choice : choices)
    if (!choice.is_float && (!gives_values(choice.form) || choice.input || choice.output))
      for (const Consumer& consumer : model.tensors[choice.tensor].consumers) is_replaced[consumer.node] = true;
  fold_norms(editor, {norms.data(), norms.size()}, is_replaced);
  const List<bool> needless = needless_tensors(model, norms);
  for (uint32_t t = 0; t < needless.size(); ++t) {
    if (!needless[t]) continue;
    is_done[t] = true;
    editor.drop(model.tensors[t], {});
  }
}

class Rewriter {
 public:
  Rewriter(const onnx::Model& model, std::span<const OnnxChoice> choices, const OnnxOptions& options,
           DiagnosticList& diagnostics)
      : model_(model),
        choices_(choices),
        options_(options),
        diagnostics_(diagnostics),
        editor_(model),
        operators_(editor_, choices, options.accuracy_level),
        storage_(editor_) {}

  Result<OnnxRewrite> run() {
    const bool is_external = estimated_bytes(model_, choices_) > options_.largest_model;
    if (is_external && !onnx::is_inside_folder(options_.data_file))
      return error_at(ErrorCode::argument_invalid, "data_file",
                      "the model has more than {} bytes and needs a file for external data", options_.largest_model);
    if (is_external) storage_.use_file(options_.data_file);
    TRY_VOID(set_opsets());
    for (const auto& [key, value] : options_.properties) set_property(editor_, key, value);
    List<bool> is_chosen(model_.tensors.size());
    for (uint32_t c = 0; c < choices_.size(); ++c) {
      is_chosen[choices_[c].tensor] = true;
      TRY_VOID(rewrite(c));
    }
    quantize_values(editor_, choices_);
    if (options_.norms != nullptr) fold(editor_, choices_, *options_.norms, is_chosen);
    for (uint32_t t = 0; t < model_.tensors.size(); ++t)
      if (!is_chosen[t]) TRY_VOID(keep(model_.tensors[t]));
    TRY(file, editor_.apply());
    if (file.bytes() > onnx::kMaxMessageBytes)
      return error_at(ErrorCode::format_unsupported, "", "the model has {} bytes; readers refuse more than {}",
                      file.bytes(), onnx::kMaxMessageBytes);
    out_.literals = std::move(editor_.literals);
    out_.replaced = editor_.replaced;
    out_.model = {file.segments(), file.bytes()};
    out_.data = {storage_.data().segments(), storage_.data().bytes()};
    return std::move(out_);
  }

 private:
  Status set_opsets() {
    uint32_t needed = options_.least_opset;
    bool needs_microsoft = false;
    for (const OnnxChoice& choice : choices_) {
      if (choice.is_float) continue;
      needed = std::max(needed, onnx_opset_of(choice.form, *choice.layout));
      // ONNX Runtime puts a Round of version 11 in the place of a static bias or output.
      if (choice.input || choice.output) needed = std::max(needed, kStaticOpset);
      needs_microsoft = needs_microsoft || choice.form == OnnxForm::mat_mul_n_bits;
    }
    TRY_VOID(raise_opset(editor_, needed, diagnostics_));
    out_.opset = static_cast<uint32_t>(std::max<uint64_t>(model_.opset(), needed));
    for (const onnx::OpsetImport& import : model_.opsets)
      if (import.domain == kMicrosoft) needs_microsoft = false;
    if (needs_microsoft) editor_.insert(model_.graphs[0].whole.begin, opset_import(editor_, kMicrosoft, 1));
    return {};
  }

  // A float tensor that keeps its name and gets the values of its choice.
  void change_values(uint32_t index) {
    const Tensor& tensor = model_.tensors[choices_[index].tensor];
    const Component& component = choices_[index].layout->components.front();
    Pieces message;
    message.add(editor_.literals, tensor_head(tensor.name, tensor.data_type, tensor.shape));
    storage_.add_values(message, {Segment::Kind::component, index, 0, 0, component.bytes});
    editor_.drop(tensor, {});
    editor_.add_initializer(tensor.graph, message);
  }

  // A decoded tensor has no bytes to copy: its values are a choice of their own.
  Status keep(const Tensor& tensor) {
    if (!tensor.is_decoded()) {
      storage_.keep(tensor);
      return {};
    }
    for (const OnnxChoice& choice : choices_)
      if (choice.is_float && &model_.tensors[choice.tensor] == &tensor) return {};
    return error_at(ErrorCode::format_unsupported, tensor.name,
                    "it is stored as codes, and a node needs its values; exclude its layers, which writes the values");
  }

  // ---- weights

  // Adds the components of a choice to its graph; returns their names, in order.
  List<std::string> add_components(uint32_t index) {
    const OnnxChoice& choice = choices_[index];
    const Tensor& tensor = model_.tensors[choice.tensor];
    List<std::string> names;
    for (uint32_t c = 0; c < choice.layout->components.size(); ++c) {
      const Component& component = choice.layout->components[c];
      names.push_back(editor_.fresh(component.name_part, ""));
      Pieces message;
      message.add(editor_.literals, tensor_head(names.back(), type_of(choice, component), component.shape));
      storage_.add_values(message, {Segment::Kind::component, index, c, 0, component.bytes});
      editor_.add_initializer(tensor.graph, message);
    }
    return names;
  }

  Status rewrite(uint32_t index) {
    const OnnxChoice& choice = choices_[index];
    const Tensor& tensor = model_.tensors[choice.tensor];
    if (choice.is_float) {
      change_values(index);
      return {};
    }
    const List<std::string> names = add_components(index);
    const bool is_dequantized = gives_values(choice.form);
    const uint32_t view = is_dequantized ? dequantized_view(model_, *choice.weight) : onnx::kNone;
    uint32_t replaced = 0;
    if (is_dequantized) {
      operators_.dequantize(choice, view, names);
      if (view == onnx::kNone) return {};
    } else {
      for (const Consumer& consumer : tensor.consumers) {
        if (!is_taken(model_, choice, consumer)) continue;
        ++replaced;
        operators_.replace(choice, consumer, names);
      }
      if (replaced == 0)
        return error_at(ErrorCode::argument_invalid, tensor.name, "no node that reads it accepts {}",
                        name_of(choice.form));
    }
    const Consumer* const reader = release(editor_, choice, view);
    if (reader == nullptr && !tensor.is_output) {
      editor_.drop(tensor, {});
      return {};
    }
    out_.kept.push_back(choice.tensor);
    diagnostics_.add(
        {Severity::warning, "weight-kept-twice", std::string(tensor.name),
         text_of("{} needs this weight as it was, so the model stores it twice",
                 reader == nullptr ? std::string_view("an output of the graph") : model_.nodes[reader->node].op_type),
         choice.weight->embedding.empty() ? "" : "give the layers that share it one int4 spec in groups"});
    return keep(tensor);
  }

  const onnx::Model& model_;
  const std::span<const OnnxChoice> choices_;
  const OnnxOptions& options_;
  DiagnosticList& diagnostics_;
  OnnxEditor editor_;
  OnnxOperators operators_;
  OnnxRewrite out_;
  OnnxStorage storage_;
};

}  // namespace

uint32_t float_type_of(const WeightLayout& layout) noexcept {
  const StorageDtype dtype = layout.components[1].dtype;
  if (dtype == StorageDtype::F16) return number_of(DataType::float16);
  return number_of(dtype == StorageDtype::BF16 ? DataType::bfloat16 : DataType::float32);
}

Result<OnnxRewrite> rewrite_onnx(const onnx::Model& model, std::span<const OnnxChoice> choices,
                                 const OnnxOptions& options, DiagnosticList& diagnostics) {
  return Rewriter(model, choices, options, diagnostics).run();
}

}  // namespace wasmquant::conversion
