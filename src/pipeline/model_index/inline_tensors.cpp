#include "pipeline/model_index/inline_tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/message.h"
#include "numeric/half.h"

namespace wasmquant {
namespace {

constexpr uint64_t kMaxBytes = 16384;  // bitsandbytes' JSON has about 200

}  // namespace

std::optional<float> InlineTensors::scalar_of(const StoredTensor& tensor, std::string_view bytes) noexcept {
  uint32_t bits = 0;
  if (bytes.size() > sizeof(bits)) return std::nullopt;
  std::memcpy(&bits, bytes.data(), bytes.size());
  if (tensor.dtype == StorageDtype::F32) return std::bit_cast<float>(bits);
  if (tensor.dtype == StorageDtype::BF16) return std::bit_cast<float>(bits << 16);
  if (tensor.dtype == StorageDtype::F16) return from_half(static_cast<uint16_t>(bits));
  return std::nullopt;
}

bool InlineTensors::is_one(const StoredTensor& tensor) noexcept {
  const std::string_view name = tensor.name;
  const uint64_t bytes = tensor.end - tensor.begin;
  if (name.find(".act_fn.") != name.npos)
    return tensor.dtype == StorageDtype::F32
               ? bytes == sizeof(float)
               : bytes == 2 && (tensor.dtype == StorageDtype::BF16 || tensor.dtype == StorageDtype::F16);
  if (name.ends_with(".weight_shape")) return tensor.dtype == StorageDtype::I64 && bytes == 16;
  if (tensor.dtype != StorageDtype::U8 || bytes == 0) return false;
  if (name.ends_with(".weight_format")) return bytes == 1;
  return bytes <= kMaxBytes &&
         (name.ends_with(".comfy_quant") || name.ends_with(".weight.quant_state.bitsandbytes__nf4") ||
          name.ends_with(".weight.quant_state.bitsandbytes__fp4"));
}

List<uint32_t> InlineTensors::wanted() const {
  List<uint32_t> out;
  for (const InlineTensor& entry : entries_) out.push_back(entry.index);
  return out;
}

size_t InlineTensors::place_of(uint32_t index) const noexcept {
  const InlineTensor* at = std::lower_bound(entries_.begin(), entries_.end(), index,
                                            [](const InlineTensor& entry, uint32_t i) { return entry.index < i; });
  return at != entries_.end() && at->index == index ? static_cast<size_t>(at - entries_.begin()) : entries_.size();
}

Status InlineTensors::set(uint32_t index, const StoredTensor& tensor, std::string bytes) {
  const size_t place = place_of(index);
  if (place == entries_.size() || bytes.size() != tensor.end - tensor.begin)
    return error_at(ErrorCode::argument_invalid, tensor.name, "{} bytes were given; it has {}",
                    static_cast<uint64_t>(bytes.size()), tensor.end - tensor.begin);
  entries_[place].bytes = std::move(bytes);
  return {};
}

std::optional<std::string_view> InlineTensors::bytes(uint32_t index) const noexcept {
  const size_t place = place_of(index);
  if (place == entries_.size() || entries_[place].bytes.empty()) return std::nullopt;
  return entries_[place].bytes;
}

}  // namespace wasmquant
