// bitsandbytes (tools/bitsandbytes/bitsandbytes.cpp). JSON in a tensor's bytes gives shape and block size of 4-bit
// weights; the model index reads it with the headers (ModelIndex::inline_tensors).
#include "checkpoint/read_only_format.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {
namespace {

constexpr std::string_view kState = "weight.quant_state.bitsandbytes__";
constexpr std::string_view kParts[] = {".weight.absmax", ".weight.quant_map", ".weight.nested_absmax",
                                       ".weight.nested_quant_map"};

// Of a layer whose codes are there.
const ModelTensor* state_of(const ModelIndex& model, std::string_view layer) {
  if (tensor_of(model, layer, "weight") == nullptr) return nullptr;
  for (const std::string_view type : {"nf4", "fp4"})
    if (const ModelTensor* state = model.find(text_of("{}.{}{}", layer, kState, type))) return state;
  return nullptr;
}

bool is_int8(const ModelIndex& model, std::string_view layer) {
  const ModelTensor* weight = tensor_of(model, layer, "weight");
  return weight != nullptr && weight->stored.dtype == StorageDtype::I8 && tensor_of(model, layer, "SCB") != nullptr;
}

Result<json::Value> read_state(const ModelIndex& model, const ModelTensor& state) {
  const std::optional<std::string_view> text = model.inline_bytes(state.stored.name);
  if (!text)
    return error_at(ErrorCode::file_invalid, state.stored.name, "cannot be read: its {} bytes are not JSON",
                    state.stored.end - state.stored.begin);
  auto parsed = json::parse(*text);
  if (!parsed) return error_at(ErrorCode::file_invalid, state.stored.name, "is not JSON: {}", parsed.error().message);
  return std::move(*parsed);
}

/// The lengths in "shape"; empty if absent.
std::vector<uint64_t> shape_in(const json::Value& state) {
  std::vector<uint64_t> shape;
  for (const json::Value& length : state["shape"].items()) {
    if (!length.is_integer() || length.as_integer() <= 0) return {};
    shape.push_back(static_cast<uint64_t>(length.as_integer()));
  }
  return shape;
}

class BitsAndBytesSource final : public SourceFormat {
 public:
  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const override {
    const std::string_view name = tensor.stored.name;
    const auto [layer, part] = split_name(name);
    if (part == "weight" && (state_of(model, layer) != nullptr || is_int8(model, layer))) return StoredRole::codes;
    if (is_one_of(part, {"SCB", "weight_format"}) && is_int8(model, layer)) return StoredRole::part;
    for (const std::string_view ending : kParts)
      if (name.ends_with(ending) && state_of(model, name.substr(0, name.size() - ending.size())) != nullptr)
        return StoredRole::part;
    const size_t state = name.find(text_of(".{}", kState));
    const bool is_state = state != std::string_view::npos && state_of(model, name.substr(0, state)) == &tensor;
    return is_state ? StoredRole::part : StoredRole::plain;
  }

  List<std::vector<uint64_t>> possible_shapes(const ModelIndex& model, const ModelTensor& codes) const override {
    const ModelTensor* state = state_of(model, split_name(codes.stored.name).layer);
    if (state == nullptr) return {codes.stored.shape};
    const auto read = read_state(model, *state);
    return read ? List<std::vector<uint64_t>>{shape_in(*read)} : List<std::vector<uint64_t>>();
  }

  Result<std::optional<StoredWeight>> find(const ModelIndex& model, const WeightDescription& weight) const override {
    if (const ModelTensor* state = state_of(model, weight.layer)) {
      TRY(found, find_4bit(model, weight, *state));
      return std::optional(std::move(found));
    }
    if (!is_int8(model, weight.layer)) return std::optional<StoredWeight>();
    if (const ModelTensor* format = tensor_of(model, weight.layer, "weight_format")) {
      const std::optional<std::string_view> byte = model.inline_bytes(format->stored.name);
      if (!byte || *byte != std::string_view("\0", 1))
        return error_at(ErrorCode::dtype_unsupported, format->stored.name,
                        "is not 0, which means plain rows; weights in the order of a GPU's kernels are not decoded");
    }
    QuantizationSpec spec;
    spec.dtype = Dtype::int8;
    spec.qscheme = QScheme::per_channel;
    spec.observer = ObserverId::PerChannelMinMaxObserver;
    spec.ch_axis = 0;
    TRY(found, locate(model, "bitsandbytes-int8", weight, {spec}));
    return std::optional(std::move(found));
  }

 private:
  static Result<StoredWeight> find_4bit(const ModelIndex& model, const WeightDescription& weight,
                                        const ModelTensor& state) {
    TRY(said, read_state(model, state));
    if (shape_in(said) != weight.shape)
      return error_at(ErrorCode::shape_mismatch, state.stored.name, "has shape {}; expected {}",
                      json::write(said["shape"]), describe(weight.source, weight.shape));
    StoredWeight found;
    found.format = "bitsandbytes-4bit";
    found.weight = weight;
    json::Value needed;
    for (const char* key : {"quant_type", "blocksize"}) needed.set(key, said[key]);
    if (tensor_of(model, weight.layer, "weight.nested_absmax") != nullptr) {
      if (!said["nested_blocksize"].is_integer() || said["nested_blocksize"].as_integer() <= 0 ||
          !said["nested_offset"].is_number())
        return error_at(ErrorCode::file_invalid, state.stored.name,
                        "has no \"nested_blocksize\" and \"nested_offset\", which weight.nested_absmax needs");
      for (const char* key : {"nested_blocksize", "nested_offset"}) needed.set(key, said[key]);
    }
    found.weight.stored = std::move(needed);
    TRY(layout, checkpoint_format_named(found.format)->layout(found.weight, {QuantizationSpec{}}));
    found.task.name = text_of("{}.weight", weight.layer);
    for (const Component& component : layout.components) {
      TRY(tensor, need_tensor(model, component.name_in(weight.layer)));
      const StoredTensor& stored = tensor->stored;
      // Codes may have any dtype (bnb_4bit_quant_storage), flat or as a column: the bytes are the same.
      const bool fits = component.role == Role::codes
                            ? stored.end - stored.begin == component.bytes
                            : stored.dtype == component.dtype && stored.shape == component.shape;
      if (!fits) return wrong_tensor(*tensor, "bitsandbytes", component);
      found.task.components.push_back({tensor->file, stored.begin});
    }
    found.task.layout = std::move(layout);
    return found;
  }
};

}  // namespace

Result<std::unique_ptr<SourceFormat>> bitsandbytes_source(const json::Value&) {
  return std::unique_ptr<SourceFormat>(std::make_unique<BitsAndBytesSource>());
}

}  // namespace wasmquant
