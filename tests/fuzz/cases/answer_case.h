// What readers, config and patterns say about arbitrary bytes: the whole answer, errors to the letter.
#pragma once
#include <cstdint>
#include <span>

namespace wasmquant::fuzz {

/// Gives the bytes to every reader, as config of every dialect, and as a pattern. The digest of all answers.
uint64_t run_answer_case(std::span<const uint8_t> input);

}  // namespace wasmquant::fuzz
