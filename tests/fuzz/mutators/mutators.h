// Mutators that keep what plain bytes lose at the first change: lengths, counts and offsets. Each takes the file apart
// as far as it is one, changes one thing in a way that readers do not expect, and puts it together again with the
// lengths that follow; the bytes inside are left to libFuzzer's own mutator.
#pragma once
#include <cstddef>
#include <cstdint>

/// libFuzzer's.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace wasmquant::fuzz {

// As LLVMFuzzerCustomMutator: changes data in place, returns its new size, at most max_size.

/// A tree of protobuf fields.
size_t mutate_protobuf(uint8_t* data, size_t size, size_t max_size, unsigned seed);
/// Keys and tensors of a GGUF file.
size_t mutate_gguf(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace wasmquant::fuzz
