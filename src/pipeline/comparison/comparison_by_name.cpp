// Pairs the tensors of two models by name, also between GGUF and Hugging Face names, and between stacked and single
// experts.
#include "config/match/layer_type.h"
#include "core/message.h"
#include "core/order.h"
#include "families/model_family.h"
#include "gguf_conversion/projector.h"
#include "pipeline/comparison/comparer.h"
#include "pipeline/model_index/converted_model.h"
#include "pipeline/model_index/expert_tensors.h"
#include "pipeline/stored/dequantized_view.h"
#include "pipeline/stored/quantized_weight_reader.h"

namespace wasmquant {
namespace {

// Experts and quantized parameters are weights under any name.
bool is_weight(const DecodedTensor& tensor) {
  return tensor.plain == nullptr || tensor.weight.layer_type == kExperts ||
         layer_name_of(tensor.name).role == TensorRole::weight;
}

// Locates a matrix that split_experts() took from a stacked tensor.
void set_part(const DecodedTensor& tensor, TensorTask& task) {
  if (tensor.plain == nullptr || !tensor.plain->is_part) return;
  task.source_pitch = tensor.plain->pitch;
  if (!tensor.plain->is_input_major) return;
  task.change.is_transposed = true;
  task.layout.edit([](WeightLayout& layout) {
    std::swap(layout.rows, layout.columns);
    layout.shape = {layout.rows, layout.columns};
  });
}

// A model, and how its weights are read. A folder whose tool arranges them in another way is seen as its class has them.
class Side {
 public:
  static Result<Side> open(const ModelIndex& model, const json::Value& config) {
    const bool is_gguf = model.format().carries_config;
    TRY(reader, StoredWeightReader::create(is_gguf ? json::Value() : config, is_gguf ? nullptr : &model));
    const bool has_codes = reader.has_codes(model);
    if (!reader.rearranges()) return Side(nullptr, &model, std::move(reader), has_codes);
    TRY(restored, original_model(model));
    TRY(plain, StoredWeightReader::create(json::Value()));
    const ModelIndex* const seen = restored.get();
    return Side(std::move(restored), seen, std::move(plain), has_codes);
  }

  const ModelIndex& model() const noexcept { return *model_; }
  const StoredWeightReader& reader() const noexcept { return reader_; }
  bool has_codes() const noexcept { return has_codes_; }

 private:
  Side(std::unique_ptr<ModelIndex> restored, const ModelIndex* model, StoredWeightReader reader, bool has_codes)
      : restored_(std::move(restored)), model_(model), reader_(std::move(reader)), has_codes_(has_codes) {}

  std::unique_ptr<ModelIndex> restored_;
  const ModelIndex* model_;
  StoredWeightReader reader_;
  bool has_codes_;
};

// The model split into one matrix per expert if the other side stores experts that way, else null.
Result<std::unique_ptr<ModelIndex>> open_counterpart(const ModelIndex& model, const json::Value& config,
                                                     const ModelIndex& other, const StoredWeightReader& other_reader) {
  std::unique_ptr<ModelIndex> split = split_experts(model, families::ModelFamily::read(config));
  if (split == nullptr) return split;
  for (const DecodedTensor& tensor : other_reader.decoded_tensors(other))
    if (model.find(tensor.name) == nullptr && split->find(tensor.name) != nullptr) return split;
  return std::unique_ptr<ModelIndex>();
}

class NameComparer {
 public:
  NameComparer(const ModelIndex& left, const StoredWeightReader& left_reader, const ModelIndex& right,
               const StoredWeightReader& right_reader)
      : left_(left),
        right_(right),
        left_reader_(left_reader),
        right_reader_(right_reader),
        left_tensors_(left_reader.decoded_tensors(left)),
        right_tensors_(right_reader.decoded_tensors(right)) {}

  Status run(Comparer& out) {
    const bool converts = left_.format().has_ggml_names != right_.format().has_ggml_names;
    if (converts) TRY_VOID(convert());
    const auto name_of = [&](uint32_t i) -> std::string_view { return right_tensors_[i].name; };
    const List<uint32_t> by_name = sorted_by_name(right_tensors_.size(), name_of);
    List<uint8_t> is_paired(right_tensors_.size());
    for (size_t i = 0; i < left_tensors_.size(); ++i) {
      const DecodedTensor& tensor = left_tensors_[i];
      if (tensor.plain != nullptr && (!is_quantizable(tensor.plain->stored.dtype, tensor.plain->stored.shape) ||
                                      tensor.plain->stored.begin == tensor.plain->stored.end))
        continue;
      const Counterpart counterpart = converts ? counterpart_of(i, tensor.name) : Counterpart{tensor.name, {}};
      const size_t place = place_of(counterpart.name, by_name, name_of);
      const DecodedTensor* other = nullptr;
      if (place < by_name.size() && right_tensors_[by_name[place]].name == counterpart.name) {
        other = &right_tensors_[by_name[place]];
        is_paired[by_name[place]] = 1;
      }
      if (is_weight(tensor) || (other != nullptr && other->plain == nullptr))
        out.add(tensor.name, counterpart.is_arranged ? rearranged() : find(tensor, other, counterpart.change));
      else if (other == nullptr || other->weight.shape != tensor.weight.shape || !is_quantizable(other->weight.source))
        out.add(tensor.name, missing("is not in the quantized model with this shape"));  // biases are never packed
    }
    for (size_t i = 0; i < right_tensors_.size(); ++i)
      if (is_paired[i] == 0 && is_weight(right_tensors_[i]))
        out.add(right_tensors_[i].name, missing("is not in the reference model"));
    return {};
  }

 private:
  // A tensor's counterpart on the other side; the change applies to the folder.
  struct Counterpart {
    std::string name;
    ValueTransform change;
    bool is_arranged = false;  // other rows, or several tensors
  };
  struct ConvertedTensor {
    uint32_t source;  // index of the folder's tensor
    std::string folder, gguf;
    ValueTransform change;
    bool is_arranged;
  };

  static Error rearranged() {
    return missing(
        "is in GGUF with its rows in another order or in several tensors: compare two GGUF files, the other of f32");
  }
  static Error missing(const char* message) { return Error{ErrorCode::tensor_missing, "", message}; }

  Status convert() {
    const ModelIndex& folder = left_.format().has_ggml_names ? right_ : left_;
    const List<DecodedTensor>& originals = left_.format().has_ggml_names ? right_tensors_ : left_tensors_;
    std::vector<conversion::SourceTensor> sources;
    for (const DecodedTensor& original : originals) sources.push_back({original.name, original.weight.shape});
    DiagnosticList remarks;
    TRY(files, model_files(folder, ""));
    const auto architecture =
        (left_.format().has_ggml_names ? left_ : right_).gguf_metadata().find_text("general.architecture");
    TRY(converted, architecture == "clip" ? conversion::convert_projector(files, sources, remarks)
                                          : conversion::convert(files, sources, remarks));
    for (const conversion::ConvertedTensor& tensor : converted.tensors)
      if (tensor.source != conversion::ConvertedTensor::kGenerated)
        converted_.push_back(
            {tensor.source, originals[tensor.source].name, tensor.name, change_of(tensor), tensor.is_arranged()});
    return {};
  }

  Counterpart counterpart_of(size_t index, const std::string& name) const {
    for (const ConvertedTensor& converted : converted_) {
      if (left_.format().has_ggml_names && converted.gguf == name)
        return {converted.folder, converted.change, converted.is_arranged};
      if (!left_.format().has_ggml_names && converted.source == index)
        return {converted.gguf, converted.change, converted.is_arranged};
    }
    return {};
  }

  Result<StoredPair> find(const DecodedTensor& tensor, const DecodedTensor* other, const ValueTransform& change) const {
    if (other == nullptr) return missing("is not in the quantized model");
    WeightDescription weight = tensor.weight, right_weight = other->weight;
    if (weight.shape.empty()) weight.shape = right_weight.shape;
    if (right_weight.shape.empty()) right_weight.shape = weight.shape;
    TRY(left, find_counterpart(left_reader_, left_, tensor, weight, right_weight));
    TRY(right, find_counterpart(right_reader_, right_, *other, right_weight, weight));
    (left_.format().has_ggml_names ? right : left).task.change = change;
    set_part(tensor, left.task);
    set_part(*other, right.task);
    return StoredPair{std::move(left), std::move(right)};
  }

  // Words that codes fill only in part do not tell the shape; that of the other side does, if it fits.
  static Result<StoredWeight> find_counterpart(const StoredWeightReader& reader, const ModelIndex& model,
                                               const DecodedTensor& tensor, const WeightDescription& weight,
                                               const WeightDescription& counterpart) {
    if (tensor.plain == nullptr && counterpart.shape != weight.shape) {
      WeightDescription same = weight;
      same.shape = counterpart.shape;
      if (auto found = reader.find(model, same)) return found;
    }
    return reader.find(model, weight);
  }

  const ModelIndex &left_, &right_;
  const StoredWeightReader &left_reader_, &right_reader_;
  const List<DecodedTensor> left_tensors_, right_tensors_;
  List<ConvertedTensor> converted_;
};

}  // namespace

Result<bool> compare_by_name(const ModelIndex& left, const json::Value& left_config, const ModelIndex& right,
                             const json::Value& right_config, Comparer& out) {
  TRY(l, Side::open(left, left_config));
  TRY(r, Side::open(right, right_config));
  TRY(left_split, open_counterpart(l.model(), left_config, r.model(), r.reader()));
  TRY(right_split, open_counterpart(r.model(), right_config, l.model(), l.reader()));
  TRY_VOID(
      NameComparer(left_split ? *left_split : l.model(), l.reader(), right_split ? *right_split : r.model(), r.reader())
          .run(out));
  return !left_config.is_null() && l.has_codes();
}

}  // namespace wasmquant
