// A byte buffer whose new bytes are uninitialised: zeroing a tile would cost as much as reading it.
#pragma once
#include <cstdint>
#include <memory>

namespace wasmquant {

/// An uninitialised, resizable buffer.
class Bytes {
 public:
  /// Makes room for `size` bytes. Growing discards the content.
  void resize(uint64_t size) {
    if (size > capacity_) {
      data_.reset();  // first, so that both never exist at once
      data_ = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(size));
      capacity_ = size;
    }
    size_ = size;
  }
  uint8_t* data() noexcept { return data_.get(); }
  const uint8_t* data() const noexcept { return data_.get(); }
  uint64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  uint64_t size_ = 0, capacity_ = 0;
};

}  // namespace wasmquant
