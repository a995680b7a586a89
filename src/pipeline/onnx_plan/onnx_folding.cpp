#include "pipeline/onnx_plan/onnx_folding.h"

#include <algorithm>
#include <cstring>

#include "algorithms/scaling/batch_norm.h"
#include "core/message.h"
#include "kernels/kernels.h"

namespace wasmquant {
namespace {

using conversion::OnnxNorm;

// A norm's tensors in reading order; the optional bias is last.
List<uint32_t> tensors_of(const OnnxNorm& norm) {
  List<uint32_t> out(std::begin(norm.values), std::end(norm.values));
  if (norm.bias != onnx::kNone) out.push_back(norm.bias);
  return out;
}

}  // namespace

OnnxFolding::OnnxFolding(const onnx::Model& model, const List<conversion::OnnxModelWeight>& weights, bool asked)
    : original_(model), model_(&model) {
  if (!asked) return;
  norms_ = conversion::foldable_norms(model, weights);
  if (norms_.empty()) return;
  folded_ = conversion::without_norms(model, norms_);
  model_ = &folded_;
  needless_ = conversion::needless_tensors(model, norms_);
  factors_.resize(norms_.size());
}

Status OnnxFolding::read(std::span<const uint8_t> constants, Plan& plan) {
  for (OnnxNorm& norm : norms_) {
    if (!constants.empty()) {
      TRY_VOID(fold(norm, constants));
      continue;
    }
    norm.bias_bytes.assign(
        norm.channels * info_of(*onnx::weight_dtype_of(original_.tensors[norm.weight].data_type)).bits / 8, '\0');
    for (const uint32_t t : tensors_of(norm)) {
      const onnx::Tensor& tensor = original_.tensors[t];
      const auto [file, begin] = original_.place_of(tensor);
      plan.constants.push_back({{file, begin}, tensor.end - tensor.begin});
    }
  }
  if (constants.empty()) return {};
  return error_at(ErrorCode::argument_invalid, "constants", "{} bytes more than the norms have", constants.size());
}

Status OnnxFolding::fold(OnnxNorm& norm, std::span<const uint8_t>& constants) {
  std::vector<float> values[5];
  size_t v = 0;
  for (const uint32_t t : tensors_of(norm)) {
    const onnx::Tensor& tensor = original_.tensors[t];
    const uint64_t bytes = tensor.end - tensor.begin;
    const StorageDtype dtype = *onnx::weight_dtype_of(tensor.data_type);
    std::vector<float>& out = values[v++];
    out.resize(norm.channels);
    if (bytes > constants.size() || bytes != norm.channels * info_of(dtype).bits / 8)
      return error_at(ErrorCode::argument_invalid, "constants", "are not those of norm {q}", tensor.name);
    std::vector<uint16_t> bits(dtype == StorageDtype::F32 ? 0 : norm.channels);
    std::memcpy(bits.empty() ? static_cast<void*>(out.data()) : bits.data(), constants.data(), bytes);
    if (!bits.empty()) (dtype == StorageDtype::F16 ? kernels::widen_f16 : kernels::widen_bf16)(bits, out.data());
    constants = constants.subspan(bytes);
  }
  std::vector<float>& bias = values[4];
  bias.resize(norm.channels);
  std::vector<float>& factors = factors_[static_cast<size_t>(&norm - norms_.data())];
  factors.assign(norm.channels, 1.0f);
  const BatchNorm found{values[0], values[1], values[2], values[3], norm.epsilon};
  if (Status folded = fold_batch_norm(found, factors, bias); !folded) {
    folded.error().where = original_.tensors[norm.values[0]].name;
    return folded;
  }
  const StorageDtype dtype = *onnx::weight_dtype_of(original_.tensors[norm.weight].data_type);
  norm.bias_bytes.resize(norm.channels * info_of(dtype).bits / 8);
  std::vector<uint16_t> bits(norm.channels);
  if (dtype != StorageDtype::F32)
    (dtype == StorageDtype::F16 ? kernels::narrow_f16 : kernels::narrow_bf16)(bias, bits.data());
  std::memcpy(norm.bias_bytes.data(), dtype == StorageDtype::F32 ? static_cast<void*>(bias.data()) : bits.data(),
              norm.bias_bytes.size());
  return {};
}

const OnnxNorm* OnnxFolding::norm_of(uint32_t weight) const noexcept {
  for (const OnnxNorm& norm : norms_)
    if (norm.weight == weight) return &norm;
  return nullptr;
}

void OnnxFolding::apply(uint32_t tensor, PlannedTensor& planned) const {
  const OnnxNorm* const norm = norm_of(tensor);
  if (norm == nullptr) return;
  const std::string_view name = original_.nodes[norm->node].name;
  planned.add_reason(
      text_of("; the batch norm {} is folded into it", name.empty() ? original_.tensors[norm->values[0]].name : name));
  ChannelFactors factors;
  factors.inner = norm->inner;
  factors.cycle = norm->cycle;
  factors.repeat = norm->repeat;
  factors.values = factors_[static_cast<size_t>(norm - norms_.data())];
  planned.task.factors = std::move(factors);
}

}  // namespace wasmquant
