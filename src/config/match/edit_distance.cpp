#include "config/match/edit_distance.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/message.h"

namespace wasmquant {
namespace {

constexpr size_t kLongest = 128;

bool begins_with(std::string_view text, std::string_view prefix) {
  return is_same_word(text.substr(0, prefix.size()), prefix);
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > limit || a.size() > kLongest || b.size() > kLongest) return limit + 1;
  // Rows i-2, i-1 and i of the distance matrix.
  std::array<std::array<uint16_t, kLongest + 1>, 3> rows;
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<uint16_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& above2 = rows[(i + 1) % 3];
    row[0] = static_cast<uint16_t>(i);
    uint16_t smallest = row[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      int best = std::min(above[j], row[j - 1]) + 1;
      best = std::min(best, above[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        best = std::min(best, above2[j - 2] + 1);
      row[j] = static_cast<uint16_t>(best);
      smallest = std::min(smallest, row[j]);
    }
    // One row over the limit is not enough to stop: a swap reaches back two rows.
    if (smallest > limit + 1) return limit + 1;
  }
  return std::min<size_t>(rows[a.size() % 3][b.size()], limit + 1);
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  if (name.empty() || name.size() > kLongest) return best;
  size_t best_distance = SIZE_MAX;
  for (std::string_view candidate : candidates) {
    const size_t limit = std::min(std::max(name.size(), candidate.size()) / 3, best_distance);
    const size_t distance = edit_distance(name, candidate, limit);
    if (distance <= limit && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || name.size() < 3) return best;
  for (std::string_view candidate : candidates)
    if (begins_with(candidate, name)) return candidate;
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view found = nearest(name, candidates);
  if (found.empty()) return {};
  return text_of("did you mean \"{}\"?", found);
}

}  // namespace wasmquant
