// Numbers of keys and tokens are counted from the first one in the cache; masks are booleans until they become numbers.
#include "onnx_conversion/sequence_graph.h"

#include <algorithm>
#include <limits>

#include "model/steps/attention.h"
#include "onnx_conversion/attention_graph.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {
namespace {

using model::Architecture;

constexpr GraphAxis kTokens[] = {{"batch_size"}, {"sequence_length"}};
constexpr GraphAxis kKeys[] = {{"batch_size"}, {"total_sequence_length"}};

class Sequences {
 public:
  Sequences(const Architecture& architecture, GraphText& graph) : a_(architecture), graph_(graph) {
    graph_.enter("sequence");
    graph_.input("input_ids", kInt64, kTokens);
    tokens_ = length_of("input_ids", 1);
    out_.batch = graph_.node("Gather", {shape_, graph_.integers({0})});
  }

  SequenceValues decoder() {
    graph_.input("attention_mask", kInt64, kKeys);
    keys_ = length_of("attention_mask", 1);
    add_key_counts();
    if (rotates() || a_.names.has(model::ModelPart::positions)) {
      graph_.input("position_ids", kInt64, kTokens);
      out_.positions = out_.places = "position_ids";
      if (a_.first_position > 0)
        out_.places = graph_.node("Add", {out_.positions, graph_.integer(static_cast<int64_t>(a_.first_position))});
    }
    const Value key = range(graph_.integer(0), keys_);
    const Value query =
        graph_.node("Unsqueeze", {range(graph_.node("Sub", {keys_, tokens_}), keys_), graph_.integers({1})});
    const Value is_past = graph_.node("LessOrEqual", {key, query});
    out_.bias = with_slopes(bias_of(is_past), key);
    if (slides()) {
      const Value first = graph_.node("Sub", {query, graph_.integer(a_.window)});
      const Value is_near = graph_.node("Greater", {key, first});
      out_.window_bias = with_slopes(bias_of(graph_.node("And", {is_past, is_near})), key);
    }
    if (rotates()) out_.rotation = rotation_of(a_, out_.positions, graph_);
    return std::move(out_);
  }

  SequenceValues encoder() {
    graph_.input("attention_mask", kInt64, kTokens);
    if (a_.token_types > 1 && a_.names.has(model::ModelPart::types)) graph_.input("token_type_ids", kInt64, kTokens);
    const Value key = range(graph_.integer(0), tokens_);
    out_.bias = square(bias_where(is_kept()));
    if (slides()) {
      const Value query = graph_.node("Unsqueeze", {key, graph_.integers({1})});
      const Value distance = graph_.node("Abs", {graph_.node("Sub", {key, query})});
      out_.window_bias = bias_of(graph_.node("Less", {distance, graph_.integer(a_.window)}));
    }
    out_.places = a_.first_position == 0 ? graph_.node("Unsqueeze", {key, graph_.integers({0})}) : behind_padding();
    if (!rotates()) return std::move(out_);
    out_.positions = graph_.node("Expand", {out_.places, shape_});
    out_.rotation = rotation_of(a_, out_.positions, graph_);
    return std::move(out_);
  }

 private:
  /// int64 [].
  Value length_of(std::string_view input, int64_t axis) {
    shape_ = graph_.node("Shape", {input});
    return graph_.node("Gather", {shape_, graph_.integer(axis)});
  }
  Value range(Value first, Value end) { return graph_.node("Range", {first, end, graph_.integer(1)}); }

  void add_key_counts() {
    const Value last = graph_.node("Cast", {graph_.node("Sub", {keys_, graph_.integer(1)})}, {{"to", int64_t{kInt32}}});
    out_.last_keys = graph_.node("Expand", {last, out_.batch});
    out_.key_count = graph_.node("Cast", {keys_}, {{"to", int64_t{kInt32}}});
  }

  static bool any(const List<bool>& layers) { return std::find(layers.begin(), layers.end(), true) != layers.end(); }
  bool rotates() const { return any(a_.is_rotated); }
  bool slides() const { return any(a_.is_sliding); }
  bool has_groups() const { return attention_kind(a_) == AttentionKind::products; }

  /// MultiHeadAttention has a row for each token.
  Value square(Value bias) {
    if (has_groups()) return bias;
    const Value side = graph_.node("Unsqueeze", {tokens_, graph_.integers({0})}), one = graph_.integers({1});
    return graph_.node("Expand", {bias, graph_.node("Concat", {one, one, side, one}, {{"axis", int64_t{0}}})});
  }

  /// Of keys that are no padding, bool [batch, 1, 1, keys], or with one more axis for groups.
  Value is_kept() {
    constexpr int64_t kBool = 9;
    if (!is_kept_.empty()) return is_kept_;
    const Value axes = has_groups() ? graph_.integers({1, 2, 3}) : graph_.integers({1, 2});
    is_kept_ = graph_.node("Unsqueeze", {graph_.node("Cast", {"attention_mask"}, {{"to", kBool}}), axes});
    return is_kept_;
  }
  Value bias_where(Value is_seen) {
    return graph_.node("Where", {is_seen, graph_.number(0), graph_.number(std::numeric_limits<float>::lowest())});
  }
  /// `is_seen` [tokens, keys].
  Value bias_of(Value is_seen) { return bias_where(graph_.node("And", {is_seen, is_kept()})); }

  // Softmax is the same for slopes of distances and of positions.
  Value with_slopes(Value bias, Value key) {
    if (!a_.has_slopes) return bias;
    std::vector<float> slopes;
    for (uint32_t head = 0; head < a_.heads; ++head) slopes.push_back(model::slope_of(a_.heads, head));
    std::vector<uint64_t> shape = {1, a_.heads, 1, 1};
    if (has_groups()) shape = {1, a_.kv_heads, a_.heads / a_.kv_heads, 1, 1};
    const Value position = graph_.node("Cast", {key}, {{"to", int64_t{kFloat32}}});
    return graph_.node("Add", {bias, graph_.node("Mul", {graph_.numbers(slopes, shape), position})});
  }

  // RoBERTa counts tokens behind the padding token's position, which padding has.
  Value behind_padding() {
    const auto padding = static_cast<int64_t>(a_.first_position) - 1;
    const Value is_token = graph_.node("Not", {graph_.node("Equal", {"input_ids", graph_.integer(padding)})});
    const Value one = graph_.node("Cast", {is_token}, {{"to", int64_t{kInt64}}});
    const Value count = graph_.node("CumSum", {one, graph_.integer(1)});
    return graph_.node("Add", {graph_.node("Mul", {count, one}), graph_.integer(padding)});
  }

  const Architecture& a_;
  GraphText& graph_;
  SequenceValues out_;
  Value shape_, tokens_, keys_, is_kept_;
};

}  // namespace

SequenceValues decoder_inputs(const Architecture& architecture, GraphText& graph) {
  return Sequences(architecture, graph).decoder();
}

SequenceValues encoder_inputs(const Architecture& architecture, GraphText& graph) {
  return Sequences(architecture, graph).encoder();
}

}  // namespace wasmquant::conversion
