// Reads a model's skeleton: versions, functions, graphs, and where external data are, without the values of tensors.
#include "core/message.h"
#include "core/order.h"
#include "formats/onnx/onnx_graph_reader.h"
#include "formats/onnx/onnx_tensor.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Wire;

class Reader {
 public:
  explicit Reader(Model& model) : model_(model), skeleton_(*model.skeleton), graphs_(model) {}

  Status run() {
    for (Fields f(skeleton_, {0, skeleton_.file_bytes()}); f.next();) TRY_VOID(take(f.field));
    if (model_.graphs.empty())
      return error_at(ErrorCode::format_unknown, "", "an ONNX model has a graph; this file has none");
    if (model_.opsets.empty())
      return error_at(ErrorCode::file_invalid, "", "the model does not say which opsets it uses");
    TRY_VOID(find_uses(model_, graphs_.definitions()));
    return list_locations();
  }

 private:
  Status take(const Field& field) {
    switch (field.number) {
      case 1:
        TRY_VOID(expect(field, Wire::varint));
        model_.ir_version = field.value;
        model_.ir_version_field = field.whole;
        return {};
      case 7:
        if (!model_.graphs.empty())
          return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin), "the graph appears twice");
        return graphs_.read(field, kNone, kNone, {});
      case 8:
        return opset(field);
      case 25:
        ++model_.functions;
        for (Fields f(skeleton_, field.payload); f.next();)
          if (f.field.number == 7) TRY_VOID(function_node(f.field));
        return {};
      default:
        return {};
    }
  }

  Status opset(const Field& field) {
    OpsetImport& import = model_.opsets.emplace_back();
    import.whole = field.whole;
    for (Fields f(skeleton_, field.payload); f.next();) {
      if (f.field.number == 1) TRY_VOID(read_text(skeleton_, f.field, import.domain));
      if (f.field.number == 2) {
        TRY_VOID(expect(f.field, Wire::varint));
        import.version = f.field.value;
      }
    }
    import.domain = own_domain(import.domain);
    for (const OpsetImport& other : model_.opsets)  // merged models may repeat a version
      if (other.domain == import.domain && other.version != import.version)
        return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin),
                        "two opset versions of domain {q}: {} and {}", import.domain, other.version, import.version);
    if (model_.opsets.size() > 1000)
      return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin), "more than 1000 operator sets");
    return {};
  }

  Status function_node(const Field& field) {
    std::string_view op_type, domain;
    for (Fields f(skeleton_, field.payload); f.next();) {
      if (f.field.number == 4) TRY_VOID(read_text(skeleton_, f.field, op_type));
      if (f.field.number == 7) TRY_VOID(read_text(skeleton_, f.field, domain));
    }
    if (is_quantized_operator(own_domain(domain), op_type)) ++model_.quantized_nodes;
    return {};
  }

  Status list_locations() {
    List<std::string_view> all;
    uint64_t bytes = 0;
    for (const Tensor& tensor : model_.tensors) {
      if (!tensor.is_external()) continue;
      all.push_back(tensor.location);
      bytes += tensor.end - tensor.begin;
      if (bytes > kMaxExternalBytes)
        return error_at(ErrorCode::file_too_large, shown_name(tensor.name),
                        "with this tensor external data exceed {} bytes", kMaxExternalBytes);
    }
    for (const uint32_t i : sorted_by_name(all.size(), [&](uint32_t k) { return all[k]; }))
      if (model_.locations.empty() || model_.locations.back() != all[i]) model_.locations.push_back(all[i]);
    return {};
  }

  Model& model_;
  const Skeleton& skeleton_;
  GraphReader graphs_;
};

}  // namespace

const Attribute* Node::find(std::string_view attribute) const noexcept {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::pair<uint32_t, uint64_t> Model::place_of(const Tensor& tensor) const noexcept {
  if (!tensor.is_external()) return {0, skeleton->source_of(tensor.begin)};
  const size_t at = first_after(locations.size(), [&](size_t i) { return locations[i] < tensor.location; });
  return {static_cast<uint32_t>(at) + first_external, tensor.begin};
}

uint64_t Model::opset() const noexcept {
  for (const OpsetImport& import : opsets)
    if (import.domain.empty()) return import.version;
  return 0;
}

bool Model::has_name(std::string_view name) const noexcept {
  const size_t at = first_after(names.size(), [&](size_t i) { return names[i] < name; });
  return at < names.size() && names[at] == name;
}

Result<Model> read_model(std::unique_ptr<const Skeleton> skeleton) {
  Model model;
  model.skeleton = std::move(skeleton);
  TRY_VOID(Reader(model).run());
  return model;
}

Status check_external(const Model& model, std::string_view location, uint64_t file_bytes) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.location == location && tensor.end > file_bytes)
      return error_at(
          ErrorCode::file_truncated, shown_name(tensor.name),
          "its data end at byte {} of {q}, which has {}: at least {} bytes are missing. Download the file again",
          tensor.end, location, file_bytes, tensor.end - file_bytes);
  return {};
}

}  // namespace wasmquant::onnx
