// What people are told of vLLM: {} are filled in by text_of and error_at.
#pragma once

namespace wasmquant::vllm {

// ---- layers that it joins
inline constexpr char kWillNotLoad[] = "vLLM will not load this file: {}";
inline constexpr char kJoinsBlocks[] = "vLLM joins this layer with others, and its {} rows do not fill blocks of {}";
inline constexpr char kJoinsBlocksHint[] =
    "use blocks that divide the rows, or exclude the layers that vLLM joins; transformers loads it";
inline constexpr char kLeftWithOthers[] =
    "is the first of {} tensors left as they are because vLLM joins their layers with others that the format cannot "
    "hold";
inline constexpr char kJoinsScales[] =
    "vLLM will read this file wrong: it joins this layer with {}, keeps the larger of their second scales for both, "
    "and "
    "each has its own";
inline constexpr char kGroupsOutOfOrder[] =
    "with desc_act, false groups columns out of order, and vLLM no longer loads such files";

// ---- scales of the key-value cache
inline constexpr char kCacheByOne[] = "runtimes can also scale the cache by 1: vLLM's --kv-cache-dtype fp8";
inline constexpr char kCacheOfOutputs[] =
    "the scales of the key-value cache are those of the outputs of these layers; vLLM reads them with --kv-cache-dtype "
    "fp8";
inline constexpr char kCacheOfAttention[] =
    "vLLM quantizes the key-value cache with the scales in this file; transformers keeps the cache as it is";
inline constexpr char kCacheDtypeHint[] =
    "give the runtime its dtype, such as --kv-cache-dtype fp8 of vLLM; files of the source's own format keep the "
    "scheme";

}  // namespace wasmquant::vllm
