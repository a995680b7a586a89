#include "onnx_graph/onnx_edits.h"

#include "core/message.h"
#include "core/order.h"

namespace wasmquant::conversion {

void Edits::replace(const onnx::Range& range, Pieces pieces) { edits_.push_back({range, false, std::move(pieces)}); }

void Edits::open(const onnx::Range& field) { edits_.push_back({field, true, {}}); }

// The recursion is bounded: messages nest no deeper than kMaxDepth.
Pieces Edits::compose(const onnx::Range& range, size_t& next, std::string& literals) {
  Pieces out;
  uint64_t at = range.begin;
  while (next < order_.size() && edits_[order_[next]].range.begin < range.end) {
    const Edit& edit = edits_[order_[next++]];
    if (edit.range.begin < at || edit.range.end > range.end) {
      if (!overlap_) overlap_ = edit.range.begin;
      continue;
    }
    out.add(onnx::Range{at, edit.range.begin});
    at = edit.range.end;
    if (!edit.is_open) {
      out.add(edit.pieces);
      continue;
    }
    while (next < order_.size() && edits_[order_[next]].is_open && edits_[order_[next]].range.begin == edit.range.begin)
      ++next;
    const onnx::Field field = skeleton_.field(edit.range.begin);
    const Pieces inner = compose(field.payload, next, literals);
    out.add_field(literals, field.number, inner);
  }
  out.add(onnx::Range{at, range.end});
  return out;
}

Result<Pieces> Edits::apply(std::string& literals) {
  order_ = sorted_order(edits_.size(), [&](uint32_t a, uint32_t b) {
    const Edit &left = edits_[a], &right = edits_[b];
    if (left.range.begin != right.range.begin) return left.range.begin < right.range.begin;
    const bool left_is_empty = left.range.bytes() == 0, right_is_empty = right.range.bytes() == 0;
    return left_is_empty && !right_is_empty;
  });
  size_t next = 0;
  Pieces whole = compose({0, skeleton_.file_bytes()}, next, literals);
  if (overlap_)
    return error_at(ErrorCode::format_unsupported, text_of("byte {}", *overlap_),
                    "quantizing this graph would change these bytes twice; check the model, or exclude its weights");
  return whole;
}

}  // namespace wasmquant::conversion
