#include "onnx_graph/onnx_names.h"

#include <utility>

namespace wasmquant::conversion {
namespace {

// FNV-1a; never 0.
uint64_t hash_of(const std::string& name) noexcept {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash | 1;
}

}  // namespace

bool OnnxNames::add(uint64_t hash) {
  if (2 * count_ >= table_.size()) {
    const List<uint64_t> old = std::exchange(table_, List<uint64_t>(table_.empty() ? 64 : 2 * table_.size()));
    count_ = 0;
    for (const uint64_t known : old)
      if (known != 0) add(known);
  }
  const size_t mask = table_.size() - 1;
  size_t at = static_cast<size_t>(hash >> 8) & mask;
  for (; table_[at] != 0; at = (at + 1) & mask)
    if (table_[at] == hash) return false;
  table_[at] = hash;
  ++count_;
  return true;
}

std::string OnnxNames::fresh(std::string name) {
  while (model_.has_name(name) || !add(hash_of(name))) name += '_';
  return name;
}

}  // namespace wasmquant::conversion
