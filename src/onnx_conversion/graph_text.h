// The text of a new ONNX model: nodes one after another, each named by where it stands and by its operator.
//   ModelProto 1 ir_version, 2 producer_name, 7 graph, 8 opset_import · GraphProto 1 node, 2 name, 5 initializer, 11 input, 12 output
// Source: onnx.proto of onnx.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/list.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {

/// An attribute of a node.
class NodeAttribute {
 public:
  NodeAttribute(std::string_view name, int64_t value) : name_(name), integer_(value) {}
  NodeAttribute(std::string_view name, float value) : name_(name), kind_(Kind::real), real_(value) {}
  NodeAttribute(std::string_view name, std::span<const int64_t> values)
      : name_(name), kind_(Kind::integers), integers_(values) {}

  void add_to(NodeBytes& node) const;

 private:
  enum class Kind : uint8_t { integer, real, integers };
  std::string_view name_;
  Kind kind_ = Kind::integer;
  int64_t integer_ = 0;
  float real_ = 0;
  std::span<const int64_t> integers_;
};

/// A dimension of an input or output: a length, or a name if it differs from run to run.
struct GraphAxis {
  std::string_view name;
  uint64_t length = 0;  // if it has no name
};

/// The name of a value of the graph, which lives as long as the graph; "": none.
using Value = std::string_view;

/// A model that grows.
class GraphText {
 public:
  using Inputs = std::initializer_list<Value>;
  using Attributes = std::initializer_list<NodeAttribute>;

  /// Before the names of nodes that follow: "model.layers.0.self_attn".
  void enter(std::string place) { place_ = std::move(place); }

  /// An input or output of the graph. `data_type`: TensorProto.DataType.
  void input(std::string_view name, uint32_t data_type, std::span<const GraphAxis> axes);
  void output(std::string_view name, uint32_t data_type, std::span<const GraphAxis> axes);

  /// The output of a new node of ONNX's own operator; "" among the inputs: not given.
  Value node(std::string_view op_type, Inputs inputs, Attributes attributes = {});
  /// The same for one of ONNX Runtime's.
  Value microsoft(std::string_view op_type, Inputs inputs, Attributes attributes = {});
  /// With outputs under these names.
  void node_to(std::string_view op_type, std::string_view domain, Inputs inputs, std::span<const Value> outputs,
               Attributes attributes = {});
  /// A new name for an output of node_to().
  Value fresh(std::string_view part);
  /// That name as a value.
  Value named(std::string_view name);

  /// Constants.
  Value integers(std::span<const int64_t> values);
  Value integers(std::initializer_list<int64_t> values) { return integers(std::span(values.begin(), values.size())); }
  Value integer(int64_t value);
  Value number(float value);
  Value numbers(std::span<const float> values, std::span<const uint64_t> shape);
  /// A tensor whose values are bytes of a file.
  void stored(std::string_view name, uint32_t data_type, std::span<const uint64_t> shape, std::string_view location,
              uint64_t begin, uint64_t bytes);

  /// The whole model.
  std::string finish(std::string_view name) const;

 private:
  void value(uint32_t field, std::string_view name, uint32_t data_type, std::span<const GraphAxis> axes);
  Value constant(uint32_t data_type, std::span<const uint64_t> shape, std::string_view bytes);

  std::string place_, nodes_, initializers_, values_;
  List<std::unique_ptr<char[]>> names_;
  List<std::pair<std::string, Value>> constants_;  // what they are, and their names
  uint64_t count_ = 0;
};

}  // namespace wasmquant::conversion
