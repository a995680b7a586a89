#include "pipeline/plan_output/text_numbers.h"

namespace wasmquant {
namespace {

// FNV-1a.
uint64_t hash_of(std::string_view text) noexcept {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash ^ hash >> 32;
}

}  // namespace

void TextNumbers::grow() {
  List<uint32_t> slots(slots_.empty() ? 16 : 2 * slots_.size());
  for (uint32_t& slot : slots) slot = 0;
  for (uint32_t number = 0; number < texts_.size(); ++number) {
    size_t at = hashes_[number] & (slots.size() - 1);
    while (slots[at] != 0) at = (at + 1) & (slots.size() - 1);
    slots[at] = number + 1;
  }
  slots_ = std::move(slots);
}

TextNumbers::Found TextNumbers::find_or_add(std::string_view text) {
  if (2 * texts_.size() >= slots_.size()) grow();
  const uint64_t hash = hash_of(text);
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    const uint32_t number = slots_[at] - 1;
    if (hashes_[number] == hash && texts_[number] == text) return {number, false};
  }
  const auto number = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  hashes_.push_back(hash);
  slots_[at] = number + 1;
  return {number, true};
}

}  // namespace wasmquant
