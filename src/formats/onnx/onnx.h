// ONNX models: graphs, tensors with the places of their bytes, and consumers. Read from a skeleton (onnx_skeleton.h),
// without weights.
//   ModelProto 7 graph, 8 opset_import, 25 functions · GraphProto 1 node, 5 initializer, 11 input, 12 output
//   NodeProto 1 input, 2 output, 3 name, 4 op_type, 5 attribute, 7 domain
// Weights are in initializers and Constant nodes, of the graph and of subgraphs (If, Loop, Scan). Function bodies are
// only searched for nodes of quantized models.
// Source: onnx.proto and IR.md of onnx; checks of formats.md A.3.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "core/result.h"
#include "formats/onnx/onnx_skeleton.h"
#include "numeric/storage_dtype.h"

namespace wasmquant {
const Format& onnx_format() noexcept;
}  // namespace wasmquant

namespace wasmquant::onnx {

inline constexpr uint32_t kNone = ~uint32_t{0};
inline constexpr uint32_t kMaxRank = 64;
/// Nodes, inputs, outputs, attributes and tensors together: a two-byte field takes ten times as much here.
inline constexpr uint32_t kMaxItems = 4'000'000;
/// External data in total: JavaScript numbers are exact only up to here.
inline constexpr uint64_t kMaxExternalBytes = (uint64_t{1} << 53) - 1;
/// Limit for protobuf messages, and so for files without external data.
inline constexpr uint64_t kMaxMessageBytes = (uint64_t{1} << 31) - 1;

/// TensorProto.DataType, as far as used here.
enum class DataType : uint8_t {
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  int32 = 6,
  int64 = 7,
  float16 = 10,
  float64 = 11,
  bfloat16 = 16,
  float8_e4m3 = 17,
  float8_e5m2 = 19,
  uint4 = 21,
  int4 = 22,
  uint2 = 25,
  int2 = 26,
};
/// Bits per element; 0 for strings and unknown types.
uint32_t bits_of(uint32_t data_type) noexcept;
/// Dtypes of quantizable weights: FLOAT, FLOAT16, BFLOAT16.
std::optional<StorageDtype> weight_dtype_of(uint32_t data_type) noexcept;

/// How a tensor's values are stored in [begin, end).
enum class Encoding : uint8_t {
  none,       // no elements
  bytes,      // little-endian, one after another (raw_data, packed float_data, external data)
  varints,    // int32_data and similar: one varint each; float16 and bfloat16 as bits
  scattered,  // separate fields among others, or strings: not readable as one range
};

/// What a node does with an input.
enum class Use : uint8_t {
  mat_mul,         // MatMul: input B
  fused_mat_mul,   // FusedMatMul of com.microsoft: input B
  gemm,            // Gemm: input B
  conv,            // Conv: W
  conv_transpose,  // ConvTranspose: W
  gather,          // Gather: data
  recurrent,       // LSTM, GRU, RNN: W and R
  attention,       // Attention of com.microsoft: weights [in, q + k + v]
  einsum_in_out,   // Einsum (onnx_einsum.h): a matrix or batch [..., in, out]
  einsum_out_in,   // and [..., out, in]
  quantized,       // any input of a node that quantizes, dequantizes or works on codes
  view,            // a node of Tensor::views
  other,
};
/// Whether the node multiplies or convolves its first input with the tensor.
constexpr bool is_product(Use use) noexcept { return use <= Use::conv_transpose; }
/// A node's input that reads a tensor.
struct Consumer {
  uint32_t node = 0;   // index into nodes
  uint32_t input = 0;  // index of the node's input
  Use use = Use::other;
  uint32_t view = kNone;  // index into views, if the node reads the tensor through one
};

/// What nodes between a tensor and its consumers make of it (onnx_views.h), with the same elements in the same order.
struct View {
  uint32_t tensor = kNone;
  uint32_t parent = kNone;  // the view that its node reads; kNone: the tensor
  uint32_t node = kNone;
  std::string_view name;  // of the node's output
  uint32_t data_type = 0;
  std::vector<uint64_t> shape;  // in the order of the elements
  bool is_transposed = false;   // consumers see the last two dimensions exchanged; neither is 1
  bool is_output = false;
};

/// A node's attribute; strings, lists and tensors stay in the file, at `whole`.
struct Attribute {
  std::string_view name;
  Range whole;          // the field in its node, with its tag
  int64_t integer = 0;  // 0 unless given
  float real = 0;
};

/// What a node's input reads as it is: a tensor, or an output of another node. Both kNone: an input of a graph, or nothing.
struct Origin {
  uint32_t tensor = kNone, node = kNone;
};

/// A node; its texts point into the skeleton.
struct Node {
  uint32_t graph = 0;
  Range whole;  // the field in its graph, with its tag
  std::string_view name, op_type, domain;
  List<std::string_view> inputs, outputs;
  List<Attribute> attributes;
  List<uint32_t> graphs;    // subgraphs
  List<Origin> origins;     // of its inputs
  uint32_t reads = 0;       // inputs of nodes and outputs of graphs that are its outputs
  uint32_t reader = kNone;  // the last node that reads one; kNone: an output of a graph does

  const Attribute* find(std::string_view attribute) const noexcept;
  /// The attribute's integer, or what it is without the attribute.
  int64_t integer_or(std::string_view attribute, int64_t standard) const noexcept {
    const Attribute* const found = find(attribute);
    return found == nullptr ? standard : found->integer;
  }
  void add_reader(uint32_t node) noexcept {
    ++reads;
    reader = node;
  }
};

/// A tensor of an initializer, or the value of a Constant node.
struct Tensor {
  std::string_view name;
  uint32_t graph = 0;
  uint32_t data_type = 0;
  std::vector<uint64_t> shape;
  Encoding encoding = Encoding::none;
  std::string_view location;  // external file, relative to the model's folder; else empty
  uint64_t begin = 0;         // of its values, in the model's file or the external one
  uint64_t end = 0;
  uint32_t decoded = kNone;  // of a dequantized model: the stored weight whose values these are (onnx_dequantize.h)
  uint32_t node = kNone;     // the Constant node
  Range whole;               // the initializer's field, or the TensorProto's in the node's attribute, with its tag
  Range message;             // the TensorProto
  List<Range> data;          // fields that locate or contain values, with their tags
  Range input;               // the graph input it is the default of, with its tag; empty: none
  bool is_output = false;
  List<Consumer> consumers;  // in its graph and subgraphs, also through views
  List<uint32_t> views;      // indexes into the model's, parents before children

  bool is_external() const noexcept { return !location.empty(); }
  bool is_decoded() const noexcept { return decoded != kNone; }
};

/// A graph's input (ValueInfoProto).
struct Input {
  std::string_view name;
  Range whole;  // the field, with its tag
};

/// In file order: a graph comes before its subgraphs, which are the next `last` - own index graphs.
struct Graph {
  uint32_t parent = kNone;       // graph
  uint32_t parent_node = kNone;  // node that contains it
  uint32_t last = 0;             // last subgraph, or itself
  Range whole;                   // field in model or attribute, with its tag
  Range message;
  Range attribute;  // the attribute field that contains it, with its tag; empty for the main graph
  List<Input> inputs;
  List<std::string_view> outputs;
  List<uint32_t> nodes;
};

/// The version of one operator set that the model uses.
struct OpsetImport {
  std::string_view domain;  // "" for the standard domain
  uint64_t version = 0;
  Range whole;
};

/// A whole model. Its texts point into `skeleton`; lists refer to each other by index.
struct Model {
  std::shared_ptr<const Skeleton> skeleton;  // shared by models that differ in their graphs
  uint64_t ir_version = 0;
  Range ir_version_field;
  List<OpsetImport> opsets;
  List<Graph> graphs;  // [0] is the main graph
  List<Node> nodes;
  List<Tensor> tensors;              // in file order
  List<View> views;                  // by node
  List<std::string_view> names;      // all value names, sorted, with duplicates
  List<std::string_view> locations;  // external files, sorted by name
  uint32_t first_external = 1;       // number of the first of them; 0: the model itself is in no file
  uint32_t functions = 0;
  uint32_t quantized_nodes = 0;  // QuantizeLinear, DequantizeLinear, MatMulNBits, MatMulInteger, …, including functions

  /// Number and offset of the file that has a tensor's values: 0 is the model's own, external ones follow from first_external on.
  std::pair<uint32_t, uint64_t> place_of(const Tensor& tensor) const noexcept;
  /// Version of the standard operator set.
  uint64_t opset() const noexcept;
  bool has_name(std::string_view name) const noexcept;
};

/// A file's graph, for editors.
struct ModelFile : FileDetails {
  Model model;
};

/// Reads a complete skeleton, which the model keeps alive for its views. Errors: format-unknown (no graph),
/// file-invalid, tensor-duplicate, file-too-large; where = tensor name or byte.
Result<Model> read_model(std::unique_ptr<const Skeleton> skeleton);

/// Whether `location` is a file in the model's folder or below: no absolute path, no "..", no backslash, no control
/// character, no drive. Links must be checked by whoever opens it.
bool is_inside_folder(std::string_view location) noexcept;

/// Checks that external data is inside its file. Errors: file-truncated, naming tensor and file.
Status check_external(const Model& model, std::string_view location, uint64_t file_bytes);

/// Decodes float16 or bfloat16 bits stored as varints. Errors: file-invalid unless there are `count` 16-bit numbers.
Status decode_varints(std::span<const uint8_t> bytes, std::span<uint16_t> bits, std::string_view name);

}  // namespace wasmquant::onnx
