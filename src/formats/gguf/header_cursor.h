// A position in the first bytes of a GGUF file. Each step either reads, or fails, or says how many bytes it lacks.
#pragma once
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/gguf/gguf.h"

namespace wasmquant::gguf {

class HeaderCursor {
 public:
  HeaderCursor(std::span<const uint8_t> prefix, uint64_t file_bytes);

  std::optional<Error>& error() noexcept { return error_; }
  /// Bytes from the start of the file that the last step needs; 0: they were there.
  uint64_t missing() const noexcept { return wanted_; }
  uint64_t at() const noexcept { return at_; }
  uint64_t file_bytes() const noexcept { return file_bytes_; }
  uint64_t left() const noexcept { return file_bytes_ - at_; }
  /// The bytes from `begin` to here.
  std::string_view since(uint64_t begin) const noexcept { return {data_ + begin, static_cast<size_t>(at_ - begin)}; }

  /// What is read next, for errors: a key or tensor, or the byte it begins at.
  void name(std::string_view where) { where_ = where; }
  void name_byte();
  /// Always false. Formatting numbers of one type makes each call a tenth of the WebAssembly code.
  bool fail(ErrorCode code, const char* pattern, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0);

  /// The next `bytes` bytes; null if they are not in the prefix, or not in the file.
  const char* take(uint64_t bytes);
  template <class T>
  bool take_number(T& value) {
    const char* here = take(sizeof(T));
    if (here != nullptr) std::memcpy(&value, here, sizeof(T));
    return here != nullptr;
  }
  bool take_text(std::string_view& text, uint64_t max_bytes);
  bool take_type(ValueType& type);
  /// Counts are checked against the rest of the file, so that nothing large is allocated for a small file.
  bool take_count(uint64_t& count, uint64_t limit, uint64_t least_bytes);
  bool take_array_count(ValueType element, uint64_t& count);

 private:
  const char* data_;
  uint64_t prefix_bytes_, file_bytes_, at_ = 0, wanted_ = 0;
  std::string where_;
  std::optional<Error> error_;
};

}  // namespace wasmquant::gguf
