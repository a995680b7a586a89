// Codes of errors: the rows of error.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wasmquant {

/// One per row of error.def that the core reports.
enum class ErrorCode : uint8_t {
#define WASMQUANT_ERROR(code, name, meaning, advice) code,
#include "core/codes/error.def"
#undef WASMQUANT_ERROR
};

/// Kebab-case names, in the order of ErrorCode.
inline constexpr std::string_view kErrorNames[] = {
#define WASMQUANT_ERROR(code, name, meaning, advice) name,
#include "core/codes/error.def"
#undef WASMQUANT_ERROR
};

/// Kebab-case name of a code, which JavaScript sees as `QuantizationError.code`.
constexpr std::string_view name_of(ErrorCode code) noexcept { return kErrorNames[static_cast<size_t>(code)]; }

}  // namespace wasmquant
