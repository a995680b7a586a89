#include "onnx_graph/onnx_storage.h"

#include <algorithm>

namespace wasmquant::conversion {
namespace {

/// Alignment of data in an external file, so that it can be mapped.
constexpr uint64_t kPage = 4096;

}  // namespace

void OnnxStorage::add_values(Pieces& tensor, const Segment& segment) {
  if (!file_.empty() && segment.bytes >= kLeastExternalBytes) {
    const uint64_t begin = (data_.bytes() + kPage - 1) / kPage * kPage;
    data_.add({Segment::Kind::zeros, 0, 0, data_.bytes(), begin - data_.bytes()});
    data_.add(segment);
    tensor.add(editor_.literals, external_fields(file_, begin, segment.bytes));
    return;
  }
  std::string head;
  protobuf::append_head(head, kRawData, segment.bytes);
  tensor.add(editor_.literals, head);
  tensor.add(segment);
}

void OnnxStorage::keep(const onnx::Tensor& tensor) {
  const onnx::Model& model = editor_.model;
  const uint64_t bytes = tensor.end - tensor.begin;
  const bool moves_out = !file_.empty() && tensor.encoding == onnx::Encoding::bytes && bytes >= kLeastExternalBytes;
  if (!tensor.is_external() && !moves_out) return;
  Segment segment{Segment::Kind::model, 0, 0, tensor.begin, bytes};
  if (tensor.is_external()) {
    segment.kind = Segment::Kind::external;
    segment.source = model.place_of(tensor).first;
  }
  editor_.open_graph(tensor.graph);
  if (tensor.node != onnx::kNone) {
    editor_.open(model.nodes[tensor.node].whole);
    editor_.open(model.nodes[tensor.node].find("value")->whole);
  }
  editor_.open(tensor.whole);
  Pieces values;
  add_values(values, segment);
  editor_.insert(tensor.message.begin, std::move(values));
  for (const onnx::Range& field : tensor.data) editor_.replace(field, {});
}

}  // namespace wasmquant::conversion
