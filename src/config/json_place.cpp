#include "config/json_place.h"

#include <algorithm>
#include <charconv>

namespace wasmquant::config {
namespace {

constexpr std::string_view kByte = "byte ";
constexpr size_t kShown = 72;

bool starts_character(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t characters_of(std::string_view text) noexcept {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

}  // namespace

JsonPlace place_of(std::string_view text, std::string_view where) {
  size_t byte = 0;
  if (where.starts_with(kByte)) std::from_chars(where.data() + kByte.size(), where.data() + where.size(), byte);
  byte = std::min(byte, text.size());
  JsonPlace place;
  place.line += static_cast<uint64_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(byte), '\n'));
  const size_t before = text.substr(0, byte).rfind('\n');
  const size_t begin = before == std::string_view::npos ? 0 : before + 1;
  std::string_view line = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
  size_t at = std::min(byte - begin, line.size());
  place.column += characters_of(line.substr(0, at));
  size_t cut = at > kShown / 2 ? at - kShown / 2 : 0;
  while (cut < at && !starts_character(line[cut])) ++cut;
  line.remove_prefix(cut);
  at -= cut;
  size_t end = std::min(line.size(), kShown);
  while (end > at && end < line.size() && !starts_character(line[end])) --end;
  place.excerpt = line.substr(0, end);
  std::replace(place.excerpt.begin(), place.excerpt.end(), '\t', ' ');
  place.excerpt += '\n';
  place.excerpt.append(characters_of(line.substr(0, at)), ' ');
  place.excerpt += '^';
  return place;
}

}  // namespace wasmquant::config
