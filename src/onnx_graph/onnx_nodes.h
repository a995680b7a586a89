// Segments of a rewritten ONNX file: known bytes, copied ranges of files, and components of weights that are yet to be
// quantized; and messages made of them.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "formats/onnx/onnx_skeleton.h"

namespace wasmquant::conversion {

/// Field of TensorProto (onnx.proto), and data types of its elements.
inline constexpr uint32_t kRawData = 9;
inline constexpr uint32_t kFloat32 = 1, kUint8 = 2, kInt32 = 6, kInt64 = 7;

/// `bytes` bytes of an output file, in order.
struct Segment {
  enum class Kind : uint8_t {
    literal,    // OnnxRewrite::literals from `begin` on
    model,      // the input model from `begin` on
    external,   // the input's file number `source` from `begin` on
    component,  // component number `component` of the layout of choice number `source`, whole
    zeros,      // zero padding
  };
  Kind kind = Kind::literal;
  uint32_t source = 0, component = 0;
  uint64_t begin = 0, bytes = 0;
};

/// A growing message made of segments.
class Pieces {
 public:
  uint64_t bytes() const noexcept { return bytes_; }
  const List<Segment>& segments() const noexcept { return segments_; }
  void add(const Segment& segment);
  void add(const Pieces& other);
  /// Appends `text` to `literals`.
  void add(std::string& literals, std::string_view text);
  void add(const onnx::Range& range) { add({Segment::Kind::model, 0, 0, range.begin, range.bytes()}); }
  /// Adds a field with content `inner`.
  void add_field(std::string& literals, uint32_t number, const Pieces& inner);

 private:
  List<Segment> segments_;
  uint64_t bytes_ = 0;
};

/// NodeProto, field by field. Nodes without a name stay unnamed: runtimes reject duplicates.
class NodeBytes {
 public:
  NodeBytes(std::string_view op_type, std::string_view domain, std::string_view name, std::string_view suffix);
  NodeBytes& input(std::string_view name);
  NodeBytes& output(std::string_view name);
  NodeBytes& attribute(std::string_view name, int64_t value);
  NodeBytes& real(std::string_view name, float value);
  NodeBytes& integers(std::string_view name, std::span<const int64_t> values);
  /// `message`: a TensorProto.
  NodeBytes& tensor(std::string_view name, std::string_view message);
  /// The message without its length.
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

/// The start of a TensorProto: dims, data_type, name. Its values must follow.
std::string tensor_head(std::string_view name, uint32_t data_type, std::span<const uint64_t> shape);
/// The bytes of a value of a float type that has it.
std::string float_bytes(float value, uint32_t data_type);
/// external_data and data_location of a TensorProto.
std::string external_fields(std::string_view location, uint64_t offset, uint64_t length);

/// The bytes that, appended to the model's file, make these values outputs of its graph, so that a runtime returns them:
/// protobuf merges a message that occurs twice, so a second graph with just the new outputs adds them to the first. The
/// runtime infers their types. No name may be an output already.
///   ModelProto 7 graph { GraphProto 12 output { ValueInfoProto 1 name } … }
/// Sources: onnx.proto; protobuf.dev, "Encoding", "Last One Wins".
std::string added_outputs(std::span<const std::string> names);

}  // namespace wasmquant::conversion
