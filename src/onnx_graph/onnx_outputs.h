// More outputs of an ONNX graph, so that a runtime gives out values inside it.
#pragma once
#include <span>
#include <string>

namespace wasmquant::conversion {

/// The bytes that make these values outputs of the model's graph when they follow its file's last byte: protobuf joins
/// the fields of a message that stands twice, so a second graph that holds the new outputs alone adds them to the first.
/// The runtime infers their types. A name that is an output already must not be among them.
///   ModelProto 7 graph { GraphProto 12 output { ValueInfoProto 1 name } … }
/// Sources: onnx.proto; protobuf.dev, "Encoding", "Last One Wins".
std::string added_outputs(std::span<const std::string> names);

}  // namespace wasmquant::conversion
