#include "formats/tensor_name.h"

#include "core/message.h"

namespace wasmquant {

std::string shown_name(std::string_view name) {
  constexpr size_t kMaxBytes = 200;
  if (name.size() <= kMaxBytes) return std::string(name);
  size_t end = kMaxBytes;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return text_of("{}…", name.substr(0, end));
}

}  // namespace wasmquant
