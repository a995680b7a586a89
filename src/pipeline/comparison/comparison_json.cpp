#include "pipeline/comparison/comparison_json.h"

#include <algorithm>

#include "pipeline/task/packed_tasks.h"

namespace wasmquant {

void ComparisonRows::add_row(json::TextWriter& out, const ComparedPair& pair) {
  const WeightLayout& right = pair.right.layout;
  const bool plain = right.codes == CodeStorage::source_values;
  out.begin('{');
  out.member("name", std::string_view(pair.name));
  if (pair.weight.layer != usual_layer(pair.name)) out.member("layer", std::string_view(pair.weight.layer));
  out.member("layerType", std::string_view(pair.weight.layer_type));
  out.member("dtype", info_of(pair.weight.source).name);
  out.member("shape", std::span<const uint64_t>(pair.weight.shape));
  const bool is_same = plain && right.source == pair.weight.source;
  out.member("action", std::string_view(is_same ? "copy" : plain ? "cast" : "quantize"));
  add_specs(out, right, plain);
  out.member("reason", number_of(Reason{Rule::no_config, "", text_of("stored as {}", pair.right_format)}));
  out.member("bytesBefore", pair.bytes_before);
  out.member("bytesAfter", pair.bytes_after);
  out.member("outputs", std::span<const uint64_t>());
  out.end('}');
}

std::string ComparisonRows::rows(size_t first, size_t last) {
  last = std::min(last, pairs_.size());
  std::string text;
  json::TextWriter out(text);
  std::vector<uint64_t> tiles, bytes, by_columns;
  out.begin('{');
  out.key("tensors");
  out.begin('[');
  for (size_t i = first; i < last; ++i) {
    const ComparedPair& pair = pairs_[i];
    add_row(out, pair);
    tiles.push_back(pair.right.tiles);
    bytes.push_back(pair.bytes_before);
    by_columns.push_back(pair.left.has_column_tiles() || pair.right.has_column_tiles() ? 1 : 0);
  }
  out.end(']');
  add_new(out);
  out.member("outputs", std::span<const uint64_t>());
  out.member("tiles", std::span<const uint64_t>(tiles));
  out.member("bytes", std::span<const uint64_t>(bytes));
  out.member("byColumns", std::span<const uint64_t>(by_columns));
  out.end('}');
  return text;
}

std::string packed_tasks(const Comparison& comparison, size_t first, size_t last) {
  TaskPacker packer;
  for (size_t i = first; i < std::min(last, comparison.pairs.size()); ++i) {
    packer.add(comparison.pairs[i].left);
    packer.add(comparison.pairs[i].right);
  }
  return packer.bytes();
}

}  // namespace wasmquant
