#include "config/spec/vocabulary.h"

namespace wasmquant::config {

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace wasmquant::config
