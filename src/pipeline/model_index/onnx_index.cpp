#include "pipeline/model_index/onnx_index.h"

#include <optional>

namespace wasmquant {
namespace {

// By TensorProto.DataType, from 1; F32 means "not listed".
constexpr StorageDtype kStored[] = {
    StorageDtype::F32,     StorageDtype::U8,          StorageDtype::I8,      StorageDtype::U16,
    StorageDtype::I16,     StorageDtype::I32,         StorageDtype::I64,     StorageDtype::F32,
    StorageDtype::BOOL,    StorageDtype::F16,         StorageDtype::F64,     StorageDtype::U32,
    StorageDtype::U64,     StorageDtype::C64,         StorageDtype::F32,     StorageDtype::BF16,
    StorageDtype::F8_E4M3, StorageDtype::F8_E4M3FNUZ, StorageDtype::F8_E5M2, StorageDtype::F8_E5M2FNUZ};

std::optional<StorageDtype> storage_dtype_of(uint32_t data_type) noexcept {
  if (data_type == 0 || data_type > std::size(kStored)) return std::nullopt;
  const StorageDtype dtype = kStored[data_type - 1];
  if (dtype == StorageDtype::F32 && data_type != 1) return std::nullopt;
  return dtype;
}

}  // namespace

List<OnnxTensor> OnnxIndex::tensors() const {
  List<OnnxTensor> listed;
  size_t next = 0;  // weights are in tensor order
  for (uint32_t t = 0; t < model().tensors.size(); ++t) {
    const onnx::Tensor& tensor = model().tensors[t];
    const bool is_weight = next < weights_.size() && weights_[next].tensor == t;
    const conversion::OnnxModelWeight* weight = is_weight ? &weights_[next++] : nullptr;
    const auto dtype = storage_dtype_of(tensor.data_type);
    if (dtype && !tensor.name.empty() && (is_weight || tensor.node == onnx::kNone))
      listed.push_back({t, weight, *dtype});
  }
  return listed;
}

}  // namespace wasmquant
