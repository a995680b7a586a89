// Shortens tensor names in error messages: a file's names may be megabytes long.
#pragma once
#include <string>
#include <string_view>

namespace wasmquant {

/// The name, or its first 200 bytes (cut between UTF-8 sequences) and "…".
std::string shown_name(std::string_view name);

}  // namespace wasmquant
