// A growing array with the part of std::vector's interface that is used here. std::vector compiles its growth code for
// every element type, half a kilobyte of WebAssembly each; this one shares one function. Data for kernels is in
// std::vector.
#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

namespace wasmquant {

/// The part that does not depend on the element type.
class ListStorage {
 public:
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 protected:
  /// Moves `count` elements to uninitialised memory and destroys the originals. Null: copy their bytes.
  using Relocate = void (*)(void* to, void* from, size_t count);

  ListStorage() noexcept = default;
  ListStorage(ListStorage&& other) noexcept;
  ~ListStorage();
  void swap(ListStorage& other) noexcept;
  /// Reserves room for `count` elements in total.
  void reserve(size_t count, size_t element_bytes, Relocate relocate);
  /// Adds one element and returns its uninitialised memory.
  void* append(size_t element_bytes, Relocate relocate);

  void* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

/// Arguments must not refer to elements of the same list.
template <class T>
class List : public ListStorage {
 public:
  using value_type = T;

  List() noexcept = default;
  explicit List(size_t count) { resize(count); }
  List(std::initializer_list<T> items) : List() {
    reserve(items.size());
    append(items.begin(), items.end());
  }
  template <class Iterator>
  requires(!std::is_integral_v<Iterator>) List(Iterator first, Iterator last) { append(first, last); }
  List(const List& other) : List() {
    reserve(other.size());
    append(other.begin(), other.end());
  }
  List(List&& other) noexcept = default;
  List& operator=(List other) noexcept {
    ListStorage::swap(other);
    return *this;
  }
  ~List() { clear(); }
  void swap(List& other) noexcept { ListStorage::swap(other); }

  T* data() noexcept { return static_cast<T*>(data_); }
  const T* data() const noexcept { return static_cast<const T*>(data_); }
  T* begin() noexcept { return data(); }
  const T* begin() const noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](size_t i) noexcept { return data()[i]; }
  const T& operator[](size_t i) const noexcept { return data()[i]; }
  T& front() noexcept { return *begin(); }
  const T& front() const noexcept { return *begin(); }
  T& back() noexcept { return end()[-1]; }
  const T& back() const noexcept { return end()[-1]; }

  void reserve(size_t count) { ListStorage::reserve(count, sizeof(T), how_to_move()); }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    return *std::construct_at(static_cast<T*>(ListStorage::append(sizeof(T), how_to_move())),
                              std::forward<Arguments>(arguments)...);
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    for (; first != last; ++first) emplace_back(*first);
  }
  void insert(size_t index, T item) {
    push_back(std::move(item));
    std::rotate(begin() + index, end() - 1, end());
  }
  void pop_back() noexcept {
    back().~T();
    --size_;
  }
  void resize(size_t count) {
    while (size_ > count) pop_back();
    reserve(count);
    while (size_ < count) emplace_back();
  }
  void clear() noexcept {
    while (size_ > 0) pop_back();
  }

  friend bool operator==(const List& a, const List& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  static constexpr Relocate how_to_move() noexcept {
    if constexpr (std::is_trivially_copyable_v<T>) {
      return nullptr;
    } else {
      return relocate;
    }
  }
  static void relocate(void* to, void* from, size_t count) {
    T* const source = static_cast<T*>(from);
    for (size_t i = 0; i < count; ++i) {
      std::construct_at(static_cast<T*>(to) + i, std::move(source[i]));
      source[i].~T();
    }
  }
};

}  // namespace wasmquant
