// Looks formats up by first bytes and by name; the list is formats.def.
#include "formats/format.h"

#include <algorithm>

#include "core/list.h"
#include "core/message.h"

namespace wasmquant {

#define WASMQUANT_FORMAT(format) const Format& format() noexcept;
#include "formats/formats.def"

namespace {

bool ends_with(std::string_view name, std::string_view extension) noexcept {
  return name.size() >= extension.size() && is_same_word(name.substr(name.size() - extension.size()), extension);
}

}  // namespace

Status HeaderReader::feed(std::span<const uint8_t> prefix) {
  TRY(bytes, wanted(prefix));
  wanted_ = bytes;
  if (wanted_ != 0) return {};
  TRY(index, read(prefix));
  index_ = std::move(index);
  return {};
}

std::span<const Format* const> formats() noexcept {
  static const Format* const all[] = {
#define WASMQUANT_FORMAT(format) &format(),
#include "formats/formats.def"
  };
  return all;
}

const Format& format_of(std::string_view name, std::span<const uint8_t> prefix) noexcept {
  for (const Format* const format : formats())
    if (format->looks_like(prefix)) return *format;
  for (const Format* const format : formats())
    for (const std::string_view extension : format->extensions)
      if (ends_with(name, extension)) return *format;
  return *formats().front();
}

}  // namespace wasmquant
