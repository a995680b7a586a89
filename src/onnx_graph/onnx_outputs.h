// Adds outputs to an ONNX graph, so that a runtime returns intermediate values.
#pragma once
#include <span>
#include <string>

namespace wasmquant::conversion {

/// The bytes that, appended to the model's file, make these values outputs of its graph: protobuf merges a message that
/// occurs twice, so a second graph with just the new outputs adds them to the first. The runtime infers their types. No
/// name may be an output already.
///   ModelProto 7 graph { GraphProto 12 output { ValueInfoProto 1 name } … }
/// Sources: onnx.proto; protobuf.dev, "Encoding", "Last One Wins".
std::string added_outputs(std::span<const std::string> names);

}  // namespace wasmquant::conversion
