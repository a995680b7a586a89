#include "core/list.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace wasmquant {

ListStorage::ListStorage(ListStorage&& other) noexcept { swap(other); }

ListStorage::~ListStorage() { ::operator delete(data_); }

void ListStorage::swap(ListStorage& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
}

void ListStorage::reserve(size_t count, size_t element_bytes, Relocate relocate) {
  if (count <= capacity_) return;
  if (count > PTRDIFF_MAX / element_bytes) std::abort();
  void* const larger = ::operator new(count* element_bytes);
  if (relocate != nullptr) {
    relocate(larger, data_, size_);
  } else if (size_ != 0) {
    std::memcpy(larger, data_, size_ * element_bytes);
  }
  ::operator delete(data_);
  data_ = larger;
  capacity_ = count;
}

void* ListStorage::append(size_t element_bytes, Relocate relocate) {
  // Lists of one or two large elements are many, in the plans of large models.
  if (size_ == capacity_) reserve(std::max<size_t>(2 * capacity_, element_bytes < 32 ? 4 : 1), element_bytes, relocate);
  return static_cast<char*>(data_) + element_bytes * size_++;
}

}  // namespace wasmquant
