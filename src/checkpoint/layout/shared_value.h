// A value that many holders have in common, stored once. The plan of a model has a row per tensor, and most rows have
// the layout and the reason of a few: with shared values a row of a large model needs bytes, not kilobytes.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>

namespace wasmquant {

/// Copies share the value. Values that are equal to one of the last few of their type become that one. T needs ==.
template <class T>
class SharedValue {
 public:
  SharedValue() noexcept = default;
  SharedValue(T value) : value_(known(std::move(value))) {}  // NOLINT: converts, as a plain member would

  const T& get() const noexcept {
    static const T kDefault{};
    return value_ ? *value_ : kDefault;
  }
  operator const T&() const noexcept { return get(); }  // NOLINT: the same
  const T& operator*() const noexcept { return get(); }
  const T* operator->() const noexcept { return &get(); }

  /// Replaces the value by one that `change`, called with a T&, has changed.
  template <class Change>
  void edit(Change change) {
    T value = get();
    change(value);
    *this = SharedValue(std::move(value));
  }

  friend bool operator==(const SharedValue& a, const SharedValue& b) { return a.value_ == b.value_ || *a == *b; }

 private:
  static constexpr size_t kRemembered = 8;

  static std::shared_ptr<const T> known(T value) {
    static std::shared_ptr<const T> last[kRemembered];
    static size_t next = 0;
    for (const auto& each : last)
      if (each && *each == value) return each;
    return last[next++ % kRemembered] = std::make_shared<const T>(std::move(value));
  }

  std::shared_ptr<const T> value_;
};

}  // namespace wasmquant
