// The nodes that are written for an embedding (onnx_graph/onnx_gather.cpp), found again by their last one.
#pragma once
#include "pipeline/stored/float_graph.h"

namespace wasmquant::conversion {

struct GatheredWeight {
  StoredOnnxWeight weight;
  NodeInput indices;
};
/// `reshape`: the Reshape that gives the rows. Nullopt: it is not the last of these nodes.
std::optional<GatheredWeight> find_gathered(const FloatGraph& graph, uint32_t reshape);

}  // namespace wasmquant::conversion
