#include "checkpoint/activation_scales.h"

#include <cstring>

#include "checkpoint/checkpoint_format.h"
#include "kernels/kernels.h"

namespace wasmquant {
namespace {

// As tensors are called, by role.
constexpr std::string_view kTensorPrefixes[] = {"input", "output", "k", "v"};
constexpr std::string_view kRoleNames[] = {"input", "output", "key", "value"};

ConstantTensor& add_tensor(List<ConstantTensor>& out, const std::string& layer, ActivationRole role, Role what,
                           StorageDtype dtype, const std::vector<uint64_t>& shape) {
  ConstantTensor& tensor = out.emplace_back();
  uint64_t bytes = info_of(dtype).bits / 8;
  for (const uint64_t length : shape) bytes *= length;
  const char* const suffix = what == Role::scale ? "scale" : "zero_point";
  tensor.component = {what, text_of("{}.{}_{}", layer, kTensorPrefixes[static_cast<size_t>(role)], suffix), dtype,
                      shape, bytes};
  tensor.bytes.resize(bytes);
  return tensor;
}

}  // namespace

std::string_view name_of(ActivationRole role) noexcept { return kRoleNames[static_cast<size_t>(role)]; }

ActivationRole activation_role_named(std::string_view name) noexcept {
  for (size_t i = 0; i < std::size(kRoleNames); ++i)
    if (kRoleNames[i] == name) return static_cast<ActivationRole>(i);
  return ActivationRole::input;
}

std::optional<ActivationStorage> activation_storage(const Stages& stages, uint64_t channels) {
  ActivationStorage out;
  out.spec = stages.front();
  const DtypeInfo& dtype = info_of(out.spec.dtype);
  const bool is_per_channel = out.spec.qscheme == QScheme::per_channel && channels != 0;
  if (stages.size() != 1 || dtype.bits != 8 || dtype.is_block() || out.spec.scale_format != ScaleFormat::float32 ||
      out.spec.zero_point_type != ZeroPointType::int32 || (out.spec.qscheme != QScheme::per_tensor && !is_per_channel))
    return std::nullopt;
  if (is_per_channel) out.scale_shape = {channels};
  out.has_zero_point = dtype.is_integer;
  out.zero_point = dtype.is_signed ? StorageDtype::I8 : StorageDtype::U8;
  return out;
}

List<ConstantTensor> activation_tensors(const std::string& layer, ActivationRole role, const json::Value& found,
                                        const ActivationStorage& storage) {
  List<ConstantTensor> out;
  const StorageDtype dtype = scale_storage(storage.spec);
  ConstantTensor& scale = add_tensor(out, layer, role, Role::scale, dtype, storage.scale_shape);
  const json::Array &scales = found["scale"].items(), &zero_points = found["zeroPoint"].items();
  const size_t width = info_of(dtype).bits / 8;
  for (size_t i = 0; i < scales.size() && i * width < scale.bytes.size(); ++i) {
    const auto number = static_cast<float>(scales[i].as_number());
    uint16_t half;
    if (dtype != StorageDtype::F32)
      (dtype == StorageDtype::BF16 ? kernels::narrow_bf16 : kernels::narrow_f16)({&number, 1}, &half);
    std::memcpy(&scale.bytes[i * width], dtype == StorageDtype::F32 ? static_cast<const void*>(&number) : &half, width);
  }
  if (!storage.has_zero_point) return out;
  ConstantTensor& zero_point = add_tensor(out, layer, role, Role::zero_point, storage.zero_point, storage.scale_shape);
  for (size_t i = 0; i < zero_points.size() && i < zero_point.bytes.size(); ++i)
    zero_point.bytes[i] = static_cast<char>(static_cast<int>(zero_points[i].as_number()) + storage.zero_offset);
  return out;
}

}  // namespace wasmquant
