// Result<T>: a value or an Error. The core uses no exceptions; the type shows that a call can fail.
//   Result<Plan> plan = make_plan(...);   if (!plan) return plan.error();   use(*plan);
// TRY(name, expression) makes `name` a reference to the value, which lives to the end of the scope, or returns the
// error; TRY_VOID(expression) is for Result<void>.
#pragma once
#include <cassert>
#include <memory>
#include <utility>

#include "core/error.h"

namespace wasmquant {

/// A value or an Error; holds one of them inline. Read the value only after testing the result.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T&& value) : is_value_(true), value_(std::move(value)) {}
  Result(const T& value) : is_value_(true), value_(value) {}
  Result(Error&& error) : is_value_(false), error_(std::move(error)) {}
  Result(const Error& error) : is_value_(false), error_(error) {}
  Result(Result&& other) noexcept : is_value_(other.is_value_) {
    if (is_value_) {
      std::construct_at(&value_, std::move(other.value_));
    } else {
      std::construct_at(&error_, std::move(other.error_));
    }
  }
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      std::destroy_at(this);
      std::construct_at(this, std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (is_value_) {
      value_.~T();
    } else {
      error_.~Error();
    }
  }

  explicit operator bool() const noexcept { return is_value_; }
  T& operator*() noexcept { return assert(is_value_), value_; }
  const T& operator*() const noexcept { return assert(is_value_), value_; }
  T* operator->() noexcept { return assert(is_value_), &value_; }
  const T* operator->() const noexcept { return assert(is_value_), &value_; }
  Error& error() noexcept { return assert(!is_value_), error_; }
  const Error& error() const noexcept { return assert(!is_value_), error_; }

 private:
  // A bare union: std::variant's visitation tables cost kilobytes over all the types used here.
  bool is_value_;
  union {
    T value_;
    Error error_;
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  // Defined in error.cpp to keep the module small.
  Result(Error&& error);
  Result(const Error& error);
  Result(Result&& other) noexcept;
  Result& operator=(Result&& other) noexcept;
  ~Result();

  explicit operator bool() const noexcept { return !error_; }
  Error& error() noexcept { return *error_; }
  const Error& error() const noexcept { return *error_; }

 private:
  std::unique_ptr<Error> error_;  // null: success
};

using Status = Result<void>;

}  // namespace wasmquant

#define WASMQUANT_JOIN_(a, b) a##b
#define WASMQUANT_JOIN(a, b) WASMQUANT_JOIN_(a, b)
#define TRY(name, expression)                                                                          \
  auto WASMQUANT_JOIN(result_, __LINE__) = (expression);                                               \
  if (!WASMQUANT_JOIN(result_, __LINE__)) return std::move(WASMQUANT_JOIN(result_, __LINE__).error()); \
  auto& name = *WASMQUANT_JOIN(result_, __LINE__)
#define TRY_VOID(expression)                         \
  do {                                               \
    auto status_ = (expression);                     \
    if (!status_) return std::move(status_.error()); \
  } while (false)
