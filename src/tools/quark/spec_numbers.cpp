// The keys of `grid` and of `observer_options`: one reader and one writer go over the rows of spec_fields.def.
#include "tools/quark/spec_numbers.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "config/spec/vocabulary.h"

namespace wasmquant::config {
namespace {

// Histograms and candidate tables are kept in memory, one per scale.
constexpr int64_t kMaxBins = 1 << 16, kMaxCandidates = 1 << 12;
// For floors and margins, which are no larger than weights.
constexpr int64_t kMaxMagnitude = int64_t{1} << 40;

enum class FieldType : uint8_t { word, flag, float32, float64, uint32, int64 };

template <class T>
constexpr FieldType type_of() {
  if constexpr (std::is_enum_v<T>) return FieldType::word;
  if constexpr (std::is_same_v<T, bool>) return FieldType::flag;
  if constexpr (std::is_same_v<T, float>) return FieldType::float32;
  if constexpr (std::is_same_v<T, double>) return FieldType::float64;
  return std::is_same_v<T, uint32_t> ? FieldType::uint32 : FieldType::int64;
}
template <class T>
constexpr uint16_t kinds_of() {
  if constexpr (std::is_enum_v<T>) return kString;
  if constexpr (std::is_same_v<T, bool>) return kBool;
  return std::is_floating_point_v<T> ? kNumber : kInteger;
}

// Where a key's value lies in its struct, and what it may be.
struct Field {
  FieldType type;
  uint8_t offset;
  std::span<const std::string_view> words;
  float lowest, highest;
};

constexpr Key kGridKeys[] = {
#define WASMQUANT_GRID_FIELD(type, name, ...) {#name, kinds_of<type>()},
#include "config/spec/spec_fields.def"
};
constexpr Field kGridFields[] = {
#define WASMQUANT_GRID_FIELD(type, name, standard, lowest, highest) \
  {type_of<type>(), offsetof(RoundingGrid, name), words_of(type()), float(lowest), float(highest)},
#include "config/spec/spec_fields.def"
};
constexpr Key kOptionKeys[] = {
#define WASMQUANT_OPTION_FIELD(type, name, ...) {#name, kinds_of<type>()},
#include "config/spec/spec_fields.def"
};
constexpr Field kOptionFields[] = {
#define WASMQUANT_OPTION_FIELD(type, name, standard, lowest, highest) \
  {type_of<type>(), offsetof(ObserverOptions, name), words_of(type()), float(lowest), float(highest)},
#include "config/spec/spec_fields.def"
};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

json::Value value_at(const std::byte* at, const Field& field) {
  switch (field.type) {
    case FieldType::word:
      return field.words[load<uint8_t>(at)];
    case FieldType::flag:
      return load<bool>(at);
    case FieldType::float32:
      return static_cast<double>(load<float>(at));
    case FieldType::float64:
      return load<double>(at);
    case FieldType::uint32:
      return int64_t{load<uint32_t>(at)};
    case FieldType::int64:
      return load<int64_t>(at);
  }
  return nullptr;
}

void store_number(std::byte* at, FieldType type, double number) {
  switch (type) {
    case FieldType::float32:
      return store(at, static_cast<float>(number));
    case FieldType::float64:
      return store(at, number);
    case FieldType::uint32:
      return store(at, static_cast<uint32_t>(number));
    default:
      return store(at, static_cast<int64_t>(number));
  }
}

json::Value write(const void* from, const Keys& keys, std::span<const Field> fields) {
  json::Value out;
  for (size_t i = 0; i < fields.size(); ++i)
    out.set(keys.rows[i].name, value_at(static_cast<const std::byte*>(from) + fields[i].offset, fields[i]));
  return out;
}

// `into` has the defaults.
void read(void* into, const ObjectReader& in, const Keys& keys, std::span<const Field> fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const char* const name = keys.rows[i].name;
    const Field& field = fields[i];
    std::byte* const at = static_cast<std::byte*>(into) + field.offset;
    const json::Value* const given = in.find(name);
    if (given == nullptr) continue;
    if (field.type == FieldType::word) {
      if (const int index = in.word(name, field.words); index >= 0) store(at, static_cast<uint8_t>(index));
    } else if (field.type == FieldType::flag) {
      store(at, given->as_bool());
    } else if (const double number = given->as_number(); number >= field.lowest && number <= field.highest) {
      store_number(at, field.type, number);
    } else {
      in.out().error_in("value-invalid", in.at(name), nullptr, nullptr, "expected a number from {} to {}",
                        static_cast<int64_t>(field.lowest), static_cast<int64_t>(field.highest));
    }
  }
}

}  // namespace

constexpr Keys kGrid{kGridKeys, "Grid", [] { return to_json(RoundingGrid()); }};
constexpr Keys kOptions{kOptionKeys, "ObserverOptions", [] { return to_json(ObserverOptions()); }};

json::Value to_json(const RoundingGrid& grid) { return write(&grid, kGrid, kGridFields); }
json::Value to_json(const ObserverOptions& options) { return write(&options, kOptions, kOptionFields); }

RoundingGrid read_grid(const json::Value& value, const std::string& where, DiagnosticList& out) {
  RoundingGrid grid;
  read(&grid, ObjectReader(value, where, kGrid, out), kGrid, kGridFields);
  return grid;
}

ObserverOptions read_observer_options(const json::Value& value, const std::string& where, DiagnosticList& out) {
  ObserverOptions options;
  read(&options, ObjectReader(value, where, kOptions, out), kOptions, kOptionFields);
  return options;
}

}  // namespace wasmquant::config
