// A model of arbitrary tensors (safetensors or GGUF) under an arbitrary config, planned for every kind of output.
#pragma once
#include <cstdint>
#include <span>

namespace wasmquant::fuzz {

/// Plans, and aborts unless what came out holds together: parts of files lie in them and do not overlap, safetensors
/// files are covered to the byte, tasks survive being written and read, tiles cover their tensor. The digest of the
/// plan, or of the error and the diagnostics.
uint64_t run_plan_case(std::span<const uint8_t> input);

}  // namespace wasmquant::fuzz
