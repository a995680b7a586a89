// "Did you mean": the nearest known name to a misspelt one. Distance = insertions, deletions, substitutions and swaps
// of neighbours (optimal string alignment), upper and lower case counted as equal. A name is near when the distance is
// at most a third of the longer name, or when the known name begins with the given one ("group" for group_size).
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace wasmquant {

/// The distance if it is at most `limit`, else limit + 1. Takes O(a·b) time; bytes, not code points.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit);

/// The nearest candidate (first among equals), or "" when none is near. Names over 128 bytes have no neighbours.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

/// `did you mean "x"?`, or "" when nothing is near.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace wasmquant
