// The table of algorithms, from tables/algorithms.def. A config names them, calibration applies them.
#pragma once
#include <cstdint>
#include <string_view>

namespace wasmquant {

/// In the order in which they can follow each other.
enum class CalibrationMethod : uint8_t {
#define WASMQUANT_ALGORITHM(method, ...) method,
#include "tables/algorithms.def"
};
/// What a calibration method does (algorithms.def).
enum class AlgorithmKind : uint8_t { rotates, equalizes, scales, rounds, corrects };
/// What a calibration method sees of inputs (algorithms.def).
enum class AlgorithmSees : uint8_t { nothing, ranges, sample, hessian, reference };

/// What calibration needs to know about a method.
struct CalibrationInfo {
  AlgorithmKind kind;
  AlgorithmSees sees;
};
inline constexpr CalibrationInfo kCalibrations[] = {
#define WASMQUANT_ALGORITHM(method, kind, sees, ...) {AlgorithmKind::kind, AlgorithmSees::sees},
#include "tables/algorithms.def"
};
constexpr const CalibrationInfo& info_of(CalibrationMethod method) {
  return kCalibrations[static_cast<size_t>(method)];
}

/// One field of an algorithm.
struct AlgorithmField {
  char kind = 0;  // b bool, i integer, n number, s string, a array, o object
  bool has_effect = true;
  std::string_view name;
};
/// The first of `fields` (AlgorithmInfo), which is taken from it.
constexpr AlgorithmField next_field(std::string_view& fields) {
  std::string_view text = fields.substr(0, fields.find('|'));
  fields.remove_prefix(text.size() == fields.size() ? text.size() : text.size() + 1);
  const bool has_effect = !text.starts_with('-');
  if (!has_effect) text.remove_prefix(1);
  return {text[0], has_effect, text.substr(1)};
}

/// One row of algorithms.def.
struct AlgorithmInfo {
  std::string_view names;   // allowed values of `name`, a|b
  std::string_view fields;  // for next_field()
  bool is_applied;
  bool is_calibrated;
  CalibrationMethod method;  // of what is calibrated
};
inline constexpr AlgorithmInfo kAlgorithms[] = {
#define WASMQUANT_ALGORITHM(method, kind, sees, names, fields) {names, fields, true, true, CalibrationMethod::method},
#define WASMQUANT_VARIANT(method, names, fields) {names, fields, true, true, CalibrationMethod::method},
#define WASMQUANT_OTHER(names, fields, is_applied) {names, fields, is_applied, false, {}},
#include "tables/algorithms.def"
};

}  // namespace wasmquant
