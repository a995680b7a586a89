#include "onnx_graph/onnx_outputs.h"

#include "formats/onnx/protobuf.h"

namespace wasmquant::conversion {

std::string added_outputs(std::span<const std::string> names) {
  std::string graph, out;
  for (const std::string& name : names) {
    std::string value;
    protobuf::append_field(value, 1, name);
    protobuf::append_field(graph, 12, value);
  }
  protobuf::append_field(out, 7, graph);
  return out;
}

}  // namespace wasmquant::conversion
