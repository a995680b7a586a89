// Graph values that enter and leave the layers of an ONNX model.
#pragma once
#include "core/json.h"
#include "pipeline/model_index/onnx_index.h"

namespace wasmquant {

/// {"layers": [{layer, input, output, nested}], "inputs": [{name, type, shape, optional}], "outputs": [name],
/// "locations": [name]}. layers: one row per node that multiplies or convolves with a layer's weight, in weight order;
/// nested: in a control-flow subgraph, whose values cannot be observed. inputs: type is a TensorProto.DataType; shape
/// has sizes, -1 and names, absent if undeclared; optional: has a default. locations: external data files.
json::Value layer_values(const OnnxIndex& index);

}  // namespace wasmquant
