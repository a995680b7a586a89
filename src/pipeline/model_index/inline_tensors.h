// Small tensors whose bytes say how others are stored: bitsandbytes keeps JSON and a format number in them. They are
// read along with the headers, before anything is planned.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant {

class InlineTensors {
 public:
  /// Whether a tensor is one of them, by name, dtype and size.
  static bool is_one(const StoredTensor& tensor) noexcept;

  /// `index`: of the tensor in its model; to be called in ascending order.
  void add(uint32_t index) { entries_.push_back({index, {}}); }
  /// Indexes of the tensors to be read.
  List<uint32_t> wanted() const;
  /// The bytes of `tensor`, which has that index. Errors: argument-invalid when they are not as many as it has, or it
  /// is none of these.
  Status set(uint32_t index, const StoredTensor& tensor, std::string bytes);
  /// Nothing where they were not given.
  std::optional<std::string_view> bytes(uint32_t index) const noexcept;

 private:
  struct Entry {
    uint32_t index;
    std::string bytes;  // empty: not given
  };
  /// entries_.size() where there is none.
  size_t place_of(uint32_t index) const noexcept;

  List<Entry> entries_;
};

}  // namespace wasmquant
