#include "pipeline/comparison/comparison.h"

#include <algorithm>
#include <numeric>

#include "config/match/layer_type.h"
#include "core/order.h"
#include "families/model_family.h"
#include "gguf_conversion/conversion.h"
#include "pipeline/comparison/onnx_comparison.h"
#include "pipeline/model_index/expert_tensors.h"
#include "pipeline/model_index/converted_model.h"
#include "pipeline/stored/quantized_weight_reader.h"
#include "pipeline/task/session.h"

namespace wasmquant {
namespace {

// Elements of a weight that is decoded whole, because its two sides have their tiles across each other.
constexpr uint64_t kMaxWholeElements = uint64_t{1} << 26;

uint64_t stored_bytes(const TensorTask& task) {
  uint64_t bytes = 0;
  for (const Component& component : task.layout.components) bytes += component.bytes;
  return bytes;
}

// Plain elements can be read by columns.
bool is_plain(const WeightLayout& layout) {
  const StorageDtypeInfo& stored = info_of(layout.components.front().dtype);
  return layout.codes == CodeStorage::source_values && !stored.is_ggml() && stored.bits >= 8;
}

// Experts, and parameters that are stored in codes, are weights whatever they are called.
bool is_weight(const OriginalTensor& tensor) {
  return tensor.plain == nullptr || tensor.weight.layer_type == kExperts ||
         layer_name_of(tensor.name).role == TensorRole::weight;
}

// How a matrix that split_experts() took out of a tensor lies in it.
void set_part(const OriginalTensor& tensor, TensorTask& task) {
  if (tensor.plain == nullptr || !tensor.plain->is_part) return;
  task.source_pitch = tensor.plain->pitch;
  if (!tensor.plain->is_input_major) return;
  task.change.is_transposed = true;
  WeightLayout& layout = task.layout;
  std::swap(layout.rows, layout.columns);
  layout.shape = {layout.rows, layout.columns};
}

// The model with a matrix for each expert, where the other side has the experts so; else null.
Result<std::unique_ptr<ModelIndex>> as_stored_beside(const ModelIndex& model, std::string_view config,
                                                     const ModelIndex& other, const StoredWeightReader& other_reader) {
  TRY(family, families::ModelFamily::read(config));
  std::unique_ptr<ModelIndex> split = split_experts(model, family);
  if (split == nullptr) return split;
  for (const OriginalTensor& tensor : other_reader.originals(other))
    if (model.find(tensor.name) == nullptr && split->find(tensor.name) != nullptr) return split;
  return std::unique_ptr<ModelIndex>();
}

class Comparer {
 public:
  Comparer(const ModelIndex& reference, StoredWeightReader left, const ModelIndex& quantized, StoredWeightReader right,
           const TileBytes& tile_bytes)
      : reference_(reference),
        quantized_(quantized),
        left_(std::move(left)),
        right_(std::move(right)),
        tile_bytes_(tile_bytes) {}

  Result<Comparison> run() {
    const List<OriginalTensor> left = left_.originals(reference_), right = right_.originals(quantized_);
    const bool converts = reference_.is_gguf() != quantized_.is_gguf();
    if (converts)
      TRY_VOID(convert(reference_.is_gguf() ? quantized_ : reference_, reference_.is_gguf() ? right : left));
    List<uint8_t> is_paired(right.size());
    const List<uint32_t> by_name =
        sorted_by_name(right.size(), [&](uint32_t i) -> std::string_view { return right[i].name; });
    for (size_t i = 0; i < left.size(); ++i) {
      const OriginalTensor& tensor = left[i];
      if (tensor.plain != nullptr && (!is_quantizable(tensor.plain->stored.dtype, tensor.plain->stored.shape) ||
                                      tensor.plain->stored.begin == tensor.plain->stored.end))
        continue;
      const Counterpart counterpart = converts ? counterpart_of(i, tensor.name) : Counterpart{tensor.name, {}};
      const size_t place =
          place_of(counterpart.name, by_name, [&](uint32_t k) -> std::string_view { return right[k].name; });
      const OriginalTensor* other = nullptr;
      if (place < by_name.size() && right[by_name[place]].name == counterpart.name) {
        other = &right[by_name[place]];
        is_paired[by_name[place]] = 1;
      }
      if (Status added = add(tensor, other, counterpart.change); !added) not_compared(tensor.name, added.error());
    }
    for (size_t i = 0; i < right.size(); ++i)
      if (is_paired[i] == 0 && is_weight(right[i]))
        not_compared(right[i].name, Error{ErrorCode::tensor_missing, "", "is not in the reference model"});
    return std::move(out_);
  }

 private:
  // What stands for a tensor on the other side; the change is the folder's.
  struct Counterpart {
    std::string name;
    ValueChange change;
  };

  // Of the folder's tensors what GGUF makes of them.
  Status convert(const ModelIndex& folder, const List<OriginalTensor>& originals) {
    std::vector<conversion::SourceTensor> sources;
    for (const OriginalTensor& original : originals) sources.push_back({original.name, original.weight.shape});
    DiagnosticList remarks;
    TRY(converted, conversion::convert(model_files(folder, ""), sources, remarks));
    for (const conversion::ConvertedTensor& tensor : converted.tensors) {
      if (tensor.source == conversion::ConvertedTensor::kGenerated) continue;
      ValueChange change;
      if (tensor.rearrangement == conversion::Rearrangement::interleave) change.interleaved_rows = tensor.head_rows;
      change.is_transposed = tensor.rearrangement == conversion::Rearrangement::transpose;
      change.adds_one = tensor.plus_one;
      names_.push_back({tensor.source, originals[tensor.source].name, tensor.name, change});
    }
    return {};
  }

  Counterpart counterpart_of(size_t index, const std::string& name) const {
    for (const Named& named : names_) {
      if (reference_.is_gguf() && named.gguf == name) return {named.folder, named.change};
      if (!reference_.is_gguf() && named.source == index) return {named.gguf, named.change};
    }
    return {};
  }

  Status add(const OriginalTensor& tensor, const OriginalTensor* other, const ValueChange& change) {
    if (!is_weight(tensor) && (other == nullptr || other->plain != nullptr)) {
      // Biases and bare parameters are never packed.
      if (other == nullptr || other->weight.shape != tensor.weight.shape || !is_quantizable(other->weight.source))
        return Error{ErrorCode::tensor_missing, "", "is not in the quantized model with this shape"};
      return {};
    }
    if (other == nullptr) return Error{ErrorCode::tensor_missing, "", "is not in the quantized model"};
    ComparedPair pair;
    pair.name = tensor.name;
    pair.weight = tensor.weight;
    pair.right_weight = other->weight;
    if (pair.weight.shape.empty()) pair.weight.shape = pair.right_weight.shape;
    if (pair.right_weight.shape.empty()) pair.right_weight.shape = pair.weight.shape;
    TRY(left, left_.find(reference_, pair.weight));
    TRY(right, right_.find(quantized_, pair.right_weight));
    pair.weight = std::move(left.weight);
    pair.right_weight = std::move(right.weight);
    pair.left = std::move(left.task);
    pair.right = std::move(right.task);
    pair.left_format = std::move(left.format);
    pair.right_format = std::move(right.format);
    (reference_.is_gguf() ? pair.right : pair.left).change = change;
    set_part(tensor, pair.left);
    set_part(*other, pair.right);
    TRY_VOID(set_common_tiles(pair));
    pair.bytes_before = stored_bytes(pair.left);
    pair.bytes_after = stored_bytes(pair.right);
    out_.pairs.push_back(std::move(pair));
    return {};
  }

  // Tiles that hold the same elements on both sides.
  Status set_common_tiles(ComparedPair& pair) {
    TensorTask &left = pair.left, &right = pair.right;
    const WeightLayout &l = left.layout, &r = right.layout;
    const bool is_transposed = left.change.is_transposed || right.change.is_transposed;
    const bool is_same = (l.rows == r.rows && l.columns == r.columns) || l.shape == r.shape;
    if (is_transposed ? l.rows != r.columns || l.columns != r.rows : !is_same)
      return error_at(ErrorCode::shape_mismatch, "", "is [{}, {}] here and [{}, {}] there", l.rows, l.columns, r.rows,
                      r.columns);
    if (is_transposed && !is_plain(left.change.is_transposed ? l : r))
      return error_at(ErrorCode::format_unsupported, "",
                      "a quantized weight that is stored transposed cannot be compared");
    pair.by_columns = left.change.is_transposed || (r.column_tiles() && !l.column_tiles() && is_plain(l));
    pair.right_by_columns = right.change.is_transposed || (l.column_tiles() && !r.column_tiles() && is_plain(r));
    set_tiles(right, tile_bytes_);
    uint64_t lines = right.tile_lines;
    const bool by_columns_left = pair.by_columns || l.column_tiles();
    const bool by_columns_right = pair.right_by_columns || r.column_tiles();
    const uint64_t head = std::max(left.change.interleaved_rows, right.change.interleaved_rows);
    if (by_columns_left != (by_columns_right != is_transposed) || (head != 0 && by_columns_left)) {
      if (l.rows * l.columns > kMaxWholeElements)
        return error_at(ErrorCode::memory_budget, "", "has more than {} elements, and its two sides are stored across",
                        kMaxWholeElements);
      lines = std::max(l.rows, l.columns);
    } else {
      uint64_t multiple = std::lcm(std::max<uint64_t>(head, 1), std::lcm(l.line_multiple(), r.line_multiple()));
      if (l.columns != r.columns) multiple = std::lcm(multiple, whole_source_lines(r, l));
      lines = (lines + multiple - 1) / multiple * multiple;
      if (std::min(lines, r.lines()) > kMaxWholeElements / std::max<uint64_t>(r.line_elements(), 1))
        return error_at(ErrorCode::memory_budget, "", "would have to be decoded in parts of more than {} elements",
                        kMaxWholeElements);
    }
    const uint64_t all = by_columns_right ? r.columns : r.rows;
    for (TensorTask* task : {&left, &right}) {
      task->tile_lines = lines;
      task->tiles = (all + lines - 1) / std::max<uint64_t>(lines, 1);
    }
    if (l.columns != r.columns && !is_transposed) left.tile_lines = source_lines(r, lines, l);
    return {};
  }

  void not_compared(const std::string& name, const Error& error) {
    out_.diagnostics.push_back({Severity::warning, "tensor-not-compared", name,
                                error.where.empty() ? error.message : text_of("{}: {}", error.where, error.message),
                                ""});
  }

  struct Named {
    uint32_t source;  // number of the folder's tensor
    std::string folder, gguf;
    ValueChange change;
  };

  const ModelIndex &reference_, &quantized_;
  StoredWeightReader left_, right_;
  const TileBytes& tile_bytes_;
  List<Named> names_;
  Comparison out_;
};

}  // namespace

Result<Comparison> compare_models(const ModelIndex& reference, std::string_view reference_config,
                                  const ModelIndex& quantized, std::string_view quantized_config,
                                  const TileBytes& tile_bytes) {
  if (reference.onnx() != nullptr && quantized.onnx() != nullptr) return compare_onnx(reference, quantized, tile_bytes);
  if (reference.onnx() != nullptr || quantized.onnx() != nullptr)
    return error_at(ErrorCode::format_unsupported, "model", "an ONNX model is compared with another one alone");
  const auto reader_of = [](const ModelIndex& model, std::string_view config) {
    if (model.is_gguf()) return StoredWeightReader::create({});
    return StoredWeightReader::create(config, model.companion("hf_quant_config.json"));
  };
  TRY(left, reader_of(reference, reference_config));
  TRY(right, reader_of(quantized, quantized_config));
  const bool is_quantized = !reference_config.empty() && left.has_codes(reference);
  TRY(split_left, as_stored_beside(reference, reference_config, quantized, right));
  TRY(split_right, as_stored_beside(quantized, quantized_config, reference, left));
  auto compared = Comparer(split_left ? *split_left : reference, std::move(left),
                           split_right ? *split_right : quantized, std::move(right), tile_bytes)
                      .run();
  if (compared && is_quantized)
    compared->diagnostics.push_back({Severity::note, "reference-quantized", "",
                                     "the reference is a quantized model: errors are differences from what it holds",
                                     "compare against the model it was made from to see what quantizing lost"});
  return compared;
}

}  // namespace wasmquant
