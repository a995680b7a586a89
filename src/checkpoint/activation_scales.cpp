#include "checkpoint/activation_scales.h"

#include <cstring>

#include "checkpoint/checkpoint_format.h"
#include "kernels/kernels.h"

namespace wasmquant {
namespace {

KnownTensor& add_tensor(List<KnownTensor>& out, const FoundActivations& found, Role role, const char* suffix,
                        StorageDtype dtype, const std::vector<uint64_t>& shape) {
  KnownTensor& tensor = out.emplace_back();
  const uint64_t bytes = found.scale.size() * info_of(dtype).bits / 8;
  tensor.component = {role, text_of("{}.{}_{}", found.layer, name_of(found.role), suffix), dtype, shape, bytes};
  tensor.bytes.resize(bytes);
  return tensor;
}

}  // namespace

std::string_view name_of(ActivationRole role) noexcept { return role == ActivationRole::input ? "input" : "output"; }

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

List<KnownTensor> activation_tensors(const FoundActivations& found, const ActivationStorage& storage) {
  List<KnownTensor> out;
  const StorageDtype dtype = scale_storage(storage.spec);
  KnownTensor& scale = add_tensor(out, found, Role::scale, "scale", dtype, storage.scale_shape);
  if (dtype == StorageDtype::F32)
    std::memcpy(scale.bytes.data(), found.scale.data(), scale.bytes.size());
  else
    (dtype == StorageDtype::BF16 ? kernels::narrow_bf16 : kernels::narrow_f16)(
        found.scale, reinterpret_cast<uint16_t*>(scale.bytes.data()));
  if (!storage.has_zero_point) return out;
  KnownTensor& zero_point =
      add_tensor(out, found, Role::zero_point, "zero_point", storage.zero_point, storage.scale_shape);
  for (size_t i = 0; i < found.zero_point.size() && i < zero_point.bytes.size(); ++i)
    zero_point.bytes[i] = static_cast<char>(static_cast<int>(found.zero_point[i]) + storage.zero_offset);
  return out;
}

}  // namespace wasmquant
