// Field numbers are those of onnx.proto.
#include "formats/onnx/onnx_skeleton.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Outcome;
using protobuf::Wire;

constexpr uint64_t kFirstWindow = 4096, kLargestWindow = uint64_t{1} << 20;
// Values of small tensors (shapes, scalars) are kept, which avoids a gap for each.
constexpr uint64_t kMaxValueBytes = 64;

std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Skeleton::Skeleton(uint64_t file_bytes) : file_bytes_(file_bytes), window_(kFirstWindow) {
  frames_.push_back({Message::model, file_bytes});
}

Skeleton::Message Skeleton::child_of(Message message, uint32_t number) noexcept {
  switch (message) {
    case Message::model:
      if (number == 7) return Message::graph;
      if (number == 25) return Message::function;
      return number == 8 ? Message::leaf : Message::none;  // opset_import
    case Message::graph:
      if (number == 1) return Message::node;
      if (number == 5) return Message::tensor;                              // initializer
      if (number == 15) return Message::sparse;                             // sparse_initializer
      return number == 11 || number == 12 ? Message::leaf : Message::none;  // input, output
    case Message::node:
      return number == 5 ? Message::attribute : Message::none;
    case Message::attribute:
      if (number == 5 || number == 10) return Message::tensor;  // t, tensors
      if (number == 6 || number == 11) return Message::graph;   // g, graphs
      return number == 22 || number == 23 ? Message::sparse : Message::none;
    case Message::tensor:
      return number == 13 ? Message::leaf : Message::none;  // external_data
    case Message::sparse:
      return number == 1 || number == 2 ? Message::tensor : Message::none;
    case Message::function:
      if (number == 7) return Message::node;
      return number == 11 ? Message::attribute : Message::none;
    case Message::none:
    case Message::leaf:
      return Message::none;
  }
  return Message::none;
}

uint64_t Skeleton::longest(Message message, uint32_t number) noexcept {
  // float_data 4 to int64_data 7, raw_data 9 to uint64_data 11
  const bool is_values = message == Message::tensor && number >= 4 && number <= 11 && number != 8;
  return is_values ? kMaxValueBytes : kMaxTextBytes;
}

Need Skeleton::need() const noexcept {
  if (frames_.empty()) return {};
  return {at_, std::min(window_, file_bytes_ - at_)};
}

Status Skeleton::invalid(const char* message) const {
  return error_at(ErrorCode::file_invalid, text_of("byte {}", at_), message);
}

Status Skeleton::feed(std::span<const uint8_t> bytes) {
  const uint64_t start = at_;
  for (;;) {
    while (!frames_.empty() && copy_left_ == 0 && at_ == frames_.back().end) frames_.pop_back();
    if (frames_.empty() || at_ - start >= bytes.size()) break;
    const uint64_t end = frames_.back().end;
    auto here = bytes.subspan(static_cast<size_t>(at_ - start));
    here = here.first(static_cast<size_t>(std::min<uint64_t>(here.size(), end - at_)));
    if (copy_left_ > 0) {
      const uint64_t count = std::min<uint64_t>(copy_left_, here.size());
      kept_.append(reinterpret_cast<const char*>(here.data()), static_cast<size_t>(count));
      at_ += count;
      copy_left_ -= count;
      continue;
    }
    protobuf::Head head;
    const Outcome outcome = protobuf::read_head(here, head);
    if (outcome == Outcome::bad_varint) return invalid("a varint of more than 64 bits");
    if (outcome == Outcome::bad_tag) return invalid("these bytes are not a protobuf field: is this an ONNX model?");
    if (outcome == Outcome::cut_off) {
      if (at_ + here.size() == file_bytes_)
        return error_at(ErrorCode::file_truncated, text_of("byte {}", at_), "the file ends within a field");
      if (at_ + here.size() == end) return invalid("a field runs over the end of its message");
      break;
    }
    if (kept_.size() + head.bytes + kMaxTextBytes > kMaxKeptBytes || gaps_.size() >= kMaxGaps)
      return error_at(ErrorCode::file_too_large, text_of("byte {}", at_),
                      "without the data of its tensors the model has more than {} bytes", kMaxKeptBytes);
    kept_.append(reinterpret_cast<const char*>(here.data()), head.bytes);
    at_ += head.bytes;
    TRY_VOID(enter(head));
  }
  if (at_ - start > bytes.size())
    window_ = kFirstWindow;
  else if (at_ != start)
    window_ = std::min(2 * window_, kLargestWindow);
  if (!frames_.empty() && at_ == start && bytes.size() >= protobuf::kMaxHeadBytes)
    return invalid("a field that cannot be read");
  return {};
}

// Enters the payload of the field whose head ends at at_.
Status Skeleton::enter(const protobuf::Head& head) {
  const Frame frame = frames_.back();
  const Message child = child_of(frame.message, head.number);
  if (head.wire != Wire::bytes) {
    if (child != Message::none) return invalid("expected a message here, found a number");
    return {};
  }
  if (head.value > frame.end - at_) {
    if (frames_.size() == 1)
      return error_at(
          ErrorCode::file_truncated, text_of("byte {}", at_),
          "a field has {} bytes, but the file has only {} more: at least {} bytes are missing. Download the file again",
          head.value, frame.end - at_, head.value - (frame.end - at_));
    return error_at(ErrorCode::file_invalid, text_of("byte {}", at_),
                    "a field of {} bytes in a message of which {} are left", head.value, frame.end - at_);
  }
  if (child != Message::none) {
    if (frames_.size() >= kMaxDepth)
      return error_at(ErrorCode::file_invalid, text_of("byte {}", at_), "messages nest more than {} deep", kMaxDepth);
    frames_.push_back({child, at_ + head.value});
  } else if (head.value > longest(frame.message, head.number)) {
    gaps_.push_back({at_, at_ + head.value, kept_.size()});
    at_ += head.value;
  } else {
    copy_left_ = head.value;
  }
  return {};
}

void Skeleton::append(std::string_view text) {
  kept_ += text;
  file_bytes_ += text.size();
}

void Skeleton::append(const Skeleton& source, const Range& range) {
  pieces_.push_back({file_bytes_, range.begin});
  const auto keep = [&](uint64_t begin, uint64_t end) {
    kept_ += std::string_view(source.kept_).substr(source.place_of(begin), static_cast<size_t>(end - begin));
  };
  uint64_t at = range.begin;
  for (Range gap = source.next_gap(at); gap.bytes() > 0 && gap.begin < range.end; gap = source.next_gap(at)) {
    keep(at, gap.begin);
    const uint64_t begin = file_bytes_ + (gap.begin - range.begin);
    gaps_.push_back({begin, begin + gap.bytes(), kept_.size()});
    at = gap.end;
  }
  keep(at, range.end);
  file_bytes_ += range.bytes();
}

Range Skeleton::next_gap(uint64_t at) const noexcept {
  const size_t next = first_after(gaps_.size(), [&](size_t i) { return gaps_[i].begin < at; });
  return next == gaps_.size() ? Range{at, at} : Range{gaps_[next].begin, gaps_[next].end};
}

uint64_t Skeleton::source_of(uint64_t at) const noexcept {
  const size_t next = first_after(pieces_.size(), [&](size_t i) { return pieces_[i].begin <= at; });
  return next == 0 ? at : pieces_[next - 1].source + (at - pieces_[next - 1].begin);
}

// Position of the file's byte `at` in kept_.
size_t Skeleton::place_of(uint64_t at) const noexcept {
  const size_t next = first_after(gaps_.size(), [&](size_t i) { return gaps_[i].end <= at; });
  return static_cast<size_t>(next == 0 ? at : gaps_[next - 1].kept + (at - gaps_[next - 1].end));
}

bool Skeleton::is_cut_out(const Range& payload) const noexcept {
  // Only whole payloads longer than kMaxValueBytes are cut out.
  if (payload.bytes() <= kMaxValueBytes) return false;
  return place_of(payload.end) == place_of(payload.begin);
}

Field Skeleton::field(uint64_t at) const noexcept {
  const auto here = as_bytes(std::string_view(kept_).substr(place_of(at)));
  protobuf::Head head;
  protobuf::read_head(here, head);
  Field field{head.number, head.wire, head.value, {at, at + head.bytes}, {}};
  if (head.wire == Wire::bytes) {
    field.payload = {field.whole.end, field.whole.end + head.value};
    field.whole.end = field.payload.end;
  }
  return field;
}

std::string_view Skeleton::text(const Range& payload) const noexcept {
  if (is_cut_out(payload)) return {};
  return std::string_view(kept_).substr(place_of(payload.begin), static_cast<size_t>(payload.bytes()));
}

}  // namespace wasmquant::onnx
