// Nodes that pass a weight on: Identity, Cast to another float type, Transpose of matrices, Reshape, Squeeze, Unsqueeze,
// Flatten. Exporters leave them between a weight and its layer.
#pragma once
#include <optional>
#include <vector>

#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {

/// Weights have fewer dimensions; each view keeps a shape, and a small node makes one.
inline constexpr size_t kMaxViewRank = 8;

/// The integers of an attribute, one (i) or a list (ints). Nullopt if it has others or is cut out of the skeleton.
std::optional<std::vector<int64_t>> integers_of(const Skeleton& skeleton, const Attribute& attribute);

/// The text of a string attribute (s); empty if it has none or is cut out of the skeleton.
std::string_view text_of(const Skeleton& skeleton, const Attribute& attribute);

/// The values of a small int64 tensor in the skeleton; nullopt for others.
std::optional<std::vector<int64_t>> integers_of(const Model& model, const Tensor& tensor);

/// The view that `node` gives of its first input `of`, with tensor, parent, node and name still to be set. `wanted`: the
/// constants of Reshape's, Squeeze's or Unsqueeze's second input. Nullopt for other nodes, and for those that change the order
/// of elements otherwise than by exchanging the last two dimensions.
std::optional<View> view_of(const Skeleton& skeleton, const Node& node, const View& of,
                            const std::optional<std::vector<int64_t>>& wanted);

}  // namespace wasmquant::onnx
