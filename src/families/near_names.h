// Names for messages that refuse another one.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace wasmquant::families {

/// "82 types can, such as qwen3, qwen2 (all are in GUIDE)": how many there are, and the few that begin most like `name`.
std::string names_near(std::span<const std::string_view> names, std::string_view name, const char* guide);

}  // namespace wasmquant::families
