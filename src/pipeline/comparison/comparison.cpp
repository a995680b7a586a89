// Tiles in which two models have the same elements, though each stores them in its own way.
#include "pipeline/comparison/comparison.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/message.h"
#include "pipeline/comparison/comparer.h"
#include "pipeline/session/session.h"

namespace wasmquant {
namespace {

// Largest weight, in elements, that may be decoded whole because the tiles of the two sides run across each other.
constexpr uint64_t kMaxWholeElements = uint64_t{1} << 26;

uint64_t stored_bytes(const TensorTask& task) {
  uint64_t bytes = 0;
  for (const Component& component : task.layout->components) bytes += component.bytes;
  return bytes;
}

// Whether columns can be read directly.
bool is_plain(const TensorTask& task) {
  const WeightLayout& layout = task.layout;
  const StorageDtypeInfo& stored = info_of(layout.components.front().dtype);
  return layout.codes == CodeStorage::source_values && !stored.is_ggml() && stored.bits >= 8 && !task.assembly->any();
}

// The axes after leading ones, which the matrix of one expert has from its stack.
std::span<const uint64_t> matrix_shape(const std::vector<uint64_t>& shape) {
  std::span<const uint64_t> axes(shape);
  while (!axes.empty() && axes.front() == 1) axes = axes.subspan(1);
  return axes;
}

// Gives both sides tiles of the same elements.
Status set_common_tiles(ComparedPair& pair, const TileBytes& tile_bytes) {
  TensorTask &left = pair.left, &right = pair.right;
  const WeightLayout &l = left.layout, &r = right.layout;
  // If one side is the transpose, the plain one is read by columns.
  const bool by_left = left.change.is_transposed || r.source_transposed;
  const bool is_transposed = by_left || right.change.is_transposed;
  const bool is_same =
      (l.rows == r.rows && l.columns == r.columns) || std::ranges::equal(matrix_shape(l.shape), matrix_shape(r.shape));
  if (is_transposed ? l.rows != r.columns || l.columns != r.rows : !is_same)
    return error_at(ErrorCode::shape_mismatch, "", "is [{}, {}] in one model and [{}, {}] in the other", l.rows,
                    l.columns, r.rows, r.columns);
  if (is_transposed && !is_plain(by_left ? left : right))
    return error_at(ErrorCode::format_unsupported, "",
                    "a quantized weight that is stored transposed cannot be compared");
  left.by_columns = by_left || (r.column_tiles() && !l.column_tiles() && is_plain(left));
  right.by_columns = right.change.is_transposed || (l.column_tiles() && !r.column_tiles() && is_plain(right));
  set_tiles(right, tile_bytes);
  uint64_t lines = right.tile_lines;
  const bool by_columns_left = left.by_columns || l.column_tiles();
  const bool by_columns_right = right.by_columns || r.column_tiles();
  const uint64_t head = std::max(left.change.interleaved_rows, right.change.interleaved_rows);
  if (by_columns_left != (by_columns_right != is_transposed) || (head != 0 && by_columns_left)) {
    if (l.rows * l.columns > kMaxWholeElements)
      return error_at(
          ErrorCode::not_implemented, "",
          "has more than {} elements and is stored transposed in one of the models, so it must fit in memory",
          kMaxWholeElements);
    lines = std::max(l.rows, l.columns);
  } else {
    uint64_t multiple = std::lcm(std::max<uint64_t>(head, 1), std::lcm(l.line_multiple(), r.line_multiple()));
    if (l.columns != r.columns && !r.source_transposed) multiple = std::lcm(multiple, whole_source_lines(r, l));
    lines = (lines + multiple - 1) / multiple * multiple;
    if (std::min(lines, r.lines()) > kMaxWholeElements / std::max<uint64_t>(r.line_elements(), 1))
      return error_at(ErrorCode::not_implemented, "", "would have to be decoded in parts of more than {} elements",
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

}  // namespace

void Comparer::add(std::string_view name, Result<StoredPair> stored) {
  const Status added = stored ? add_pair(name, std::move(*stored)) : Status(std::move(stored.error()));
  if (added) return;
  const Error& error = added.error();
  out_.diagnostics.push_back({Severity::warning, "tensor-not-compared", std::string(name),
                              error.where.empty() ? error.message : text_of("{}: {}", error.where, error.message), ""});
}

Status Comparer::add_pair(std::string_view name, StoredPair stored) {
  ComparedPair pair;
  pair.name = name;
  pair.left = std::move(stored.left.task);
  pair.right = std::move(stored.right.task);
  pair.right_format = std::move(stored.right.format);
  pair.weight = std::move(stored.left.weight);
  TRY_VOID(set_common_tiles(pair, tile_bytes_));
  pair.bytes_before = stored_bytes(pair.left);
  pair.bytes_after = stored_bytes(pair.right);
  out_.pairs.push_back(std::move(pair));
  return {};
}

Result<Comparison> compare_models(const ModelIndex& reference, const json::Value& reference_config,
                                  const ModelIndex& quantized, const json::Value& quantized_config,
                                  const TileBytes& tile_bytes) {
  Comparer comparer(tile_bytes);
  bool is_quantized = false;
  if (&reference.format() != &quantized.format() && (reference.format().has_graph || quantized.format().has_graph))
    return error_at(ErrorCode::format_unsupported, "model",
                    "an ONNX model can only be compared with another ONNX model");
  if (reference.format().has_graph) {
    TRY_VOID(compare_onnx(reference, quantized, comparer));
  } else {
    TRY(has_codes, compare_by_name(reference, reference_config, quantized, quantized_config, comparer));
    is_quantized = has_codes;
  }
  Comparison out = comparer.take();
  if (is_quantized)
    out.diagnostics.push_back({Severity::note, "reference-quantized", "/quantization_config",
                               "the reference is a quantized model: errors are differences from its dequantized values",
                               "compare against the model it was made from to see what quantizing lost"});
  return out;
}

}  // namespace wasmquant
