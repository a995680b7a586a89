// Edits of a protobuf message: ranges replaced, text put in, and the lengths of all messages around them set right.
#pragma once
#include <optional>

#include "core/list.h"
#include "core/result.h"
#include "formats/onnx/onnx_skeleton.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {

class Edits {
 public:
  explicit Edits(const onnx::Skeleton& skeleton) : skeleton_(skeleton) {}
  /// `range` is whole fields, or empty: then the pieces go in there. Ranges may not overlap; at one place, pieces go in
  /// the order of the calls, and before what stands there.
  void replace(const onnx::Range& range, Pieces pieces);
  /// A field that holds edited fields, and so changes its length. May be said more than once.
  void open(const onnx::Range& field);
  /// The file with all edits made. Errors: format-unsupported where ranges overlap, as only a graph that no runtime
  /// takes can make them: nothing of it would be right.
  Result<Pieces> apply(std::string& literals);

 private:
  struct Edit {
    onnx::Range range;
    bool is_open = false;
    Pieces pieces;
  };
  Pieces compose(const onnx::Range& range, size_t& next, std::string& literals);

  const onnx::Skeleton& skeleton_;
  List<Edit> edits_;
  List<uint32_t> order_;
  std::optional<uint64_t> overlap_;  // the first byte that is edited twice
};

}  // namespace wasmquant::conversion
