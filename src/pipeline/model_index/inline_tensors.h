// Small tensors that are read with the headers: those that describe how others are stored (bitsandbytes: JSON, a format
// number; compressed-tensors: a shape), and the numbers of an activation, which GGUF has as metadata.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant {

/// The bytes of a model's inline tensors, by index of the tensor.
class InlineTensors {
 public:
  /// Whether a tensor is inline, by name, dtype and size.
  static bool is_one(const StoredTensor& tensor) noexcept;
  /// The value of one that is a single float; nullopt of others.
  static std::optional<float> scalar_of(const StoredTensor& tensor, std::string_view bytes) noexcept;

  /// `index`: of the tensor in its model; call in ascending order.
  void add(uint32_t index) { entries_.push_back({index, {}}); }
  List<uint32_t> wanted() const;
  /// Sets the bytes of `tensor`, number `index`. Errors: argument-invalid if the size is wrong or it is not inline.
  Status set(uint32_t index, const StoredTensor& tensor, std::string bytes);
  /// Nullopt if not set.
  std::optional<std::string_view> bytes(uint32_t index) const noexcept;

 private:
  struct InlineTensor {
    uint32_t index;
    std::string bytes;  // empty: not set
  };
  /// entries_.size() if not found.
  size_t place_of(uint32_t index) const noexcept;

  List<InlineTensor> entries_;
};

}  // namespace wasmquant
