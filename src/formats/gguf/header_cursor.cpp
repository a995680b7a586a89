#include "formats/gguf/header_cursor.h"

#include <algorithm>

#include "core/message.h"

namespace wasmquant::gguf {

HeaderCursor::HeaderCursor(std::span<const uint8_t> prefix, uint64_t file_bytes)
    : data_(reinterpret_cast<const char*>(prefix.data())),
      prefix_bytes_(std::min<uint64_t>(prefix.size(), file_bytes)),
      file_bytes_(file_bytes) {}

void HeaderCursor::name_byte() { where_ = text_of("byte {}", at_); }

bool HeaderCursor::fail(ErrorCode code, const char* pattern, uint64_t a, uint64_t b, uint64_t c) {
  error_ = error_at(code, where_, pattern, a, b, c);
  return false;
}

const char* HeaderCursor::take(uint64_t bytes) {
  if (bytes > left()) {
    fail(ErrorCode::file_truncated, "the header needs {} more bytes, but the file has {} (byte {})", bytes, left(),
         at_);
    return nullptr;
  }
  const uint64_t end = at_ + bytes;
  if (end > kMaxHeaderBytes) {
    fail(ErrorCode::file_too_large, "the header needs more than {} bytes", kMaxHeaderBytes);
    return nullptr;
  }
  if (end > prefix_bytes_) {
    wanted_ = end;
    return nullptr;
  }
  const char* here = data_ + at_;
  at_ = end;
  return here;
}

bool HeaderCursor::take_text(std::string_view& text, uint64_t max_bytes) {
  const uint64_t begin = at_;
  uint64_t length = 0;
  if (!take_number(length)) return false;
  if (length > max_bytes)
    return fail(ErrorCode::file_too_large, "a text of {} bytes; the limit is {} (byte {})", length, max_bytes, begin);
  if (length > left())
    return fail(ErrorCode::file_truncated, "a text of {} bytes, but the file ends after {} (byte {})", length, left(),
                begin);
  const char* here = take(length);
  text = {here, here == nullptr ? 0 : static_cast<size_t>(length)};
  return here != nullptr;
}

bool HeaderCursor::take_type(ValueType& type) {
  const uint64_t begin = at_;
  uint32_t number = 0;
  if (!take_number(number)) return false;
  if (number >= kValueTypeCount)
    return fail(ErrorCode::file_invalid, "value type {} does not exist; the last is {} (byte {})", number,
                kValueTypeCount - 1, begin);
  type = static_cast<ValueType>(number);
  return true;
}

bool HeaderCursor::take_count(uint64_t& count, uint64_t limit, uint64_t least_bytes) {
  name_byte();
  if (!take_number(count)) return false;
  if (static_cast<int64_t>(count) < 0) return fail(ErrorCode::file_invalid, "a count is negative");
  if (count > limit) return fail(ErrorCode::file_too_large, "a count of {}; the limit is {}", count, limit);
  if (count > left() / least_bytes)
    return fail(ErrorCode::file_truncated, "a count of {} does not fit the {} bytes that follow", count, left());
  return true;
}

bool HeaderCursor::take_array_count(ValueType element, uint64_t& count) {
  const uint64_t begin = at_;
  if (element == ValueType::array) return fail(ErrorCode::file_invalid, "an array of arrays (byte {})", begin - 4);
  if (!take_number(count)) return false;
  if (count > kMaxArrayItems)
    return fail(ErrorCode::file_too_large, "an array of {} items; the limit is {} (byte {})", count, kMaxArrayItems,
                begin);
  const uint64_t least_bytes = element == ValueType::text ? 8 : fixed_bytes(element);
  if (count > left() / least_bytes)
    return fail(ErrorCode::file_truncated, "an array of {} items does not fit the {} bytes that follow (byte {})",
                count, left(), begin);
  return true;
}

}  // namespace wasmquant::gguf
