// Packs values to bytes or back: one pass over the fields in packed_fields.h, in the encoding of packed_tasks.h.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "core/message.h"
#include "core/result.h"
#include "pipeline/task/packed_fields.h"
#include "pipeline/task/packed_tasks.h"

namespace wasmquant {

class PackStream {
 public:
  /// Appends to `out`. `tables`: gets the specs and layouts, which are written by number; null: they are written inline.
  PackStream(std::string& out, PackTables* tables) : out_(&out), tables_(tables) {}
  /// Reads bytes [at, end) of `in`; specs and layouts as written. After the first problem all values are 0.
  PackStream(std::string_view in, size_t at, size_t end, PackTables* tables)
      : in_(in), at_(at), end_(end), tables_(tables) {}

  /// Writes the value, or reads it.
  template <class T>
  void pack(T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      bytes(&value, sizeof(T));
    } else if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
      const auto last = static_cast<uint64_t>(std::get<T>(kLastValues));
      value = static_cast<T>(at_most(last, number(static_cast<uint64_t>(value)), "a choice is not one of its list"));
    } else if constexpr (std::is_integral_v<T>) {
      const uint64_t read = number(static_cast<uint64_t>(value));
      value = static_cast<T>(read);
      if (static_cast<uint64_t>(value) != read) fail("a number is out of its range");
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<float>>) {
      value.resize(count(value.size(), sizeof(value[0])));
      bytes(value.data(), value.size() * sizeof(value[0]));
    } else if constexpr (std::is_same_v<T, std::shared_ptr<const StoredWeight>>) {
      source(value);
    } else if constexpr (std::is_same_v<T, std::shared_ptr<const TensorTask>>) {
      joined(value);
    } else if constexpr (requires { value.edit([](auto&) {}); }) {
      if constexpr (std::is_same_v<T, SharedValue<WeightLayout>>)
        if (tables_ != nullptr) return numbered(value, tables_->layouts, "the number of a layout is not in the list");
      value.edit([&](auto& own) { pack(own); });
    } else if constexpr (requires { value.begin(); }) {
      value.resize(count(value.size(), 1));
      for (auto& item : value) pack(item);
    } else {
      if constexpr (std::is_same_v<T, QuantizationSpec>)
        if (tables_ != nullptr) return numbered(value, tables_->specs, "the number of a spec is not in the list");
      if constexpr (requires { fields_of(value); })
        std::apply([&](auto&... field) { (pack(field), ...); }, fields_of(value));
      else
        each_field(value, [&](auto& field) { pack(field); });
    }
  }

  /// A list's size (items of at least `item_bytes`): writes `size`, or returns the size read; 0 if bytes are missing.
  size_t count(size_t size, size_t item_bytes) {
    const uint64_t count = number(size);
    return out_ ? size : static_cast<size_t>(at_most((end_ - at_) / item_bytes, count, "a list is cut off"));
  }
  size_t at() const noexcept { return at_; }
  void skip(size_t bytes) noexcept { at_ += bytes; }
  /// Checks that everything was read. Errors: argument-invalid.
  Status finish(std::string_view what) {
    if (at_ != end_) fail("bytes are left");
    if (problem_ == nullptr) return {};
    return error_at(ErrorCode::argument_invalid, text_of("byte {}", failed_at_), "{} cannot be read: {}", what,
                    std::string_view(problem_));
  }

 private:
  static constexpr size_t kSought = 64;
  static constexpr uint32_t kDeepest = 2;  // a stored weight, and the parts that it is made of

  void source(std::shared_ptr<const StoredWeight>& source) {
    bool is_given = source != nullptr;
    pack(is_given);
    if (!is_given) return;
    if (nested_ == kDeepest) return fail("a stored weight is made of others that are made of others");
    ++nested_;
    auto weight = out_ ? std::make_shared<StoredWeight>(*source) : std::make_shared<StoredWeight>();
    pack(weight->task);
    source = std::move(weight);
    --nested_;
  }
  void joined(std::shared_ptr<const TensorTask>& other) {
    if (std::exchange(is_joined_, true)) return fail("a joined weight has joined weights");
    auto task = out_ ? std::make_shared<TensorTask>(*other) : std::make_shared<TensorTask>();
    pack(*task);
    other = std::move(task);
    is_joined_ = false;
  }
  // Equal values are sought among the last few: in a whole model with calibration, layouts may be many.
  template <class T>
  void numbered(T& value, List<T>& table, const char* problem) {
    size_t place = table.size();
    for (size_t back = 1; out_ && back <= std::min(table.size(), kSought); ++back)
      if (table[table.size() - back] == value) {
        place = table.size() - back;
        break;
      }
    if (out_ && place == table.size()) table.push_back(value);
    const uint64_t read = number(place);
    if (read >= table.size()) return fail(problem);
    if (!out_) value = table[static_cast<size_t>(read)];
  }
  uint64_t number(uint64_t value) {
    if (out_) {
      for (uint64_t left = value;; left >>= 7) {
        *out_ += static_cast<char>(left < 0x80 ? left : left | 0x80);
        if (left < 0x80) return value;
      }
    }
    value = 0;
    for (unsigned shift = 0; shift < 64 && at_ < end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(in_[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail("a number is cut off, or has more than 64 bits");
    return 0;
  }
  void bytes(void* at, size_t size) {
    if (out_) {
      out_->append(static_cast<const char*>(at), size);
    } else if (end_ - at_ < size) {
      fail("a float is cut off");
    } else if (size != 0) {
      std::memcpy(at, in_.data() + at_, size);
      at_ += size;
    }
  }
  uint64_t at_most(uint64_t last, uint64_t value, const char* problem) noexcept {
    if (value <= last) return value;
    fail(problem);
    return 0;
  }
  void fail(const char* problem) noexcept {
    if (problem_ == nullptr) {
      problem_ = problem;
      failed_at_ = at_;
    }
    at_ = end_;
  }

  std::string* out_ = nullptr;
  std::string_view in_;
  size_t at_ = 0, end_ = 0, failed_at_ = 0;
  PackTables* tables_;
  const char* problem_ = nullptr;
  uint32_t nested_ = 0;
  bool is_joined_ = false;
};

}  // namespace wasmquant
