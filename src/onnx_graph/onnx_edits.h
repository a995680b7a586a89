// Edits of a protobuf message: replaces ranges, inserts text, and updates the lengths of all enclosing messages.
#pragma once
#include <optional>

#include "core/list.h"
#include "core/result.h"
#include "formats/onnx/onnx_skeleton.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {

/// Collects edits and applies them.
class Edits {
 public:
  explicit Edits(const onnx::Skeleton& skeleton) : skeleton_(skeleton) {}
  /// `range` is whole fields, or empty to insert. Ranges must not overlap; at one offset, pieces are inserted in the
  /// order of the calls, before existing content.
  void replace(const onnx::Range& range, Pieces pieces);
  /// Marks a field that contains edited fields, so its length changes. Repeated calls are allowed.
  void open(const onnx::Range& field);
  /// The file with all edits applied. Errors: format-unsupported if ranges overlap, which only an invalid graph causes.
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
