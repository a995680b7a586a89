// What goes into the layers of an ONNX model and comes out of them, by the names that the graph has for it.
#pragma once
#include "core/json.h"
#include "pipeline/model_index/onnx_index.h"

namespace wasmquant {

/// {"layers": [{layer, input, output, nested}], "inputs": [{name, type, shape, optional}], "outputs": [name],
/// "locations": [name]}: a row for each node that multiplies or convolves with a weight of a layer, in the order of
/// weights; nested: in a graph inside a node, where no caller sees its values. Then the graph's own inputs (type: the
/// number of TensorProto.DataType; shape: left out when it is not said, of sizes, -1 and names; optional: has a
/// default) and outputs, and the files with external data.
json::Value layer_values(const OnnxIndex& index);

}  // namespace wasmquant
