// The bones of an ONNX file: all its bytes but the payloads of tensors and other long ones. Made in one pass over the
// file from front to back, in pieces of any size; payloads are skipped, not read.
// What is kept was checked: every field lies inside its message, messages nest to a limit, varints and tags are sound.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "formats/format.h"
#include "formats/onnx/protobuf.h"

namespace wasmquant::onnx {

/// What a page has to hold must end somewhere; graphs without weights are a few megabytes.
inline constexpr uint64_t kMaxKeptBytes = 100'000'000;
inline constexpr uint64_t kMaxGaps = 4'000'000;
/// Messages in messages; protobuf's own readers stop here. A graph in a node of a graph takes three.
inline constexpr uint32_t kMaxDepth = 100;
/// Longer texts are cut out: of the tensors' names and of what else is read here, none is that long.
inline constexpr uint64_t kMaxTextBytes = 4096;

/// Bytes [begin, end) of the file.
struct Range {
  uint64_t begin = 0, end = 0;
  uint64_t bytes() const noexcept { return end - begin; }
};

/// One field of a message that the skeleton follows.
struct Field {
  uint32_t number = 0;
  protobuf::Wire wire = protobuf::Wire::varint;
  uint64_t value = 0;  // of a number
  Range whole;         // with its tag
  Range payload;       // of bytes
};

class Skeleton {
 public:
  explicit Skeleton(uint64_t file_bytes);

  /// What feed() wants next. It grows while it is of use, and is small after a payload that was skipped.
  Need need() const noexcept;
  /// Bytes of the file from need().offset on, one or more. Errors: file-invalid, file-truncated, file-too-large; each
  /// names the byte.
  Status feed(std::span<const uint8_t> bytes);
  uint64_t file_bytes() const noexcept { return file_bytes_; }

  // ---- when complete

  /// The field that begins at byte `at`, which must be the beginning of one.
  Field field(uint64_t at) const noexcept;
  /// The bytes of a payload; empty when they were cut out.
  std::string_view text(const Range& payload) const noexcept;
  bool is_cut_out(const Range& payload) const noexcept;
  /// Whether nothing was cut out of these bytes: text() then gives them.
  bool is_kept(const Range& range) const noexcept {
    return place_of(range.end) - place_of(range.begin) == range.bytes();
  }

 private:
  // What a message is, as far as one has to know to find tensors in it. leaf: followed, but without messages inside.
  enum class Message : uint8_t { none, model, graph, node, attribute, tensor, sparse, function, leaf };
  struct Frame {
    Message message;
    uint64_t end;
  };
  struct Gap {
    uint64_t begin, end;
    uint64_t kept;  // bytes kept before it
  };

  static Message child_of(Message message, uint32_t number) noexcept;
  static uint64_t longest(Message message, uint32_t number) noexcept;
  Status enter(const protobuf::Head& head);
  Status invalid(const char* message) const;
  size_t place_of(uint64_t at) const noexcept;

  uint64_t file_bytes_, at_ = 0, copy_left_ = 0;
  uint64_t window_;
  List<Frame> frames_;
  std::string kept_;
  List<Gap> gaps_;
};

/// The fields of a message, one after another:   for (Fields f(skeleton, payload); f.next();) use(f.field);
struct Fields {
  Fields(const Skeleton& skeleton, const Range& message) noexcept
      : skeleton_(skeleton), at_(message.begin), end_(message.end) {}
  bool next() noexcept {
    if (at_ >= end_) return false;
    field = skeleton_.field(at_);
    at_ = field.whole.end;
    return true;
  }
  Field field;

 private:
  const Skeleton& skeleton_;
  uint64_t at_, end_;
};

}  // namespace wasmquant::onnx
