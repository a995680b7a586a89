// The skeleton of an ONNX file: all bytes except the payloads of tensors and other long fields. Built in one pass from
// front to back, from pieces of any size; payloads are skipped, not read.
// Kept bytes are checked: fields are inside their messages, nesting is limited, varints and tags are valid.
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

/// Memory limit; graphs without weights take a few megabytes.
inline constexpr uint64_t kMaxKeptBytes = 100'000'000;
inline constexpr uint64_t kMaxGaps = 4'000'000;
/// Nesting limit of protobuf's own readers. A subgraph adds three levels.
inline constexpr uint32_t kMaxDepth = 100;
/// Longer strings are cut out; tensor names and other fields read here are shorter.
inline constexpr uint64_t kMaxTextBytes = 4096;

/// Bytes [begin, end) of the file.
struct Range {
  uint64_t begin = 0, end = 0;
  uint64_t bytes() const noexcept { return end - begin; }
};

/// A protobuf field and its place in the file.
struct Field {
  uint32_t number = 0;
  protobuf::Wire wire = protobuf::Wire::varint;
  uint64_t value = 0;  // a number
  Range whole;         // with its tag
  Range payload;       // a length-delimited field
};

/// Feed it the file front to back; when complete, it gives the fields that were kept.
class Skeleton {
 public:
  explicit Skeleton(uint64_t file_bytes);
  /// One that is put together from parts of a file and new bytes; complete after each append().
  Skeleton() : file_bytes_(0), window_(0) {}
  /// New bytes.
  void append(std::string_view text);
  /// Bytes of the file of `source`, which begin and end outside of what was cut out of it.
  void append(const Skeleton& source, const Range& range);

  /// The next bytes to feed. Requests grow while useful, and start small after a skipped payload.
  Need need() const noexcept;
  /// Bytes from need().offset on, at least one. Errors naming the byte: file-invalid, file-truncated, file-too-large.
  Status feed(std::span<const uint8_t> bytes);
  uint64_t file_bytes() const noexcept { return file_bytes_; }

  // ---- when complete

  /// The field that begins exactly at byte `at`.
  Field field(uint64_t at) const noexcept;
  /// The bytes of a payload; empty if cut out.
  std::string_view text(const Range& payload) const noexcept;
  bool is_cut_out(const Range& payload) const noexcept;
  /// The next bytes that were cut out, from `at` on; empty: none.
  Range next_gap(uint64_t at) const noexcept;
  /// Where byte `at`, taken from a file, is in that file; `at` itself if this is a file's own skeleton.
  uint64_t source_of(uint64_t at) const noexcept;
  /// Whether it was put together from parts of a file and new bytes.
  bool is_composed() const noexcept { return window_ == 0; }
  /// Whether all these bytes were kept, so that text() returns them.
  bool is_kept(const Range& range) const noexcept {
    return place_of(range.end) - place_of(range.begin) == range.bytes();
  }

 private:
  // Message types on the way to tensors. leaf: parsed, but without submessages.
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
  struct Piece {
    uint64_t begin, source;  // here and in the file
  };
  List<Piece> pieces_;
};

/// Iterates over a message:   for (Fields f(skeleton, payload); f.next();) use(f.field);
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
