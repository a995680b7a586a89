// The table of keys, and one reader and one writer for `grid` and for `observer_options`.
#include "tools/quark/spec_numbers.h"

#include "config/reading/object_reader.h"

namespace wasmquant::config {
namespace {

constexpr const char* kDivisors = "half_range|largest_code|smallest_code|code_count";
constexpr const char* kThresholdRoundings = "none|floor|ceil|ceil_unfloored";
constexpr const char* kZeroPointOrders = "by_path|before_rounding|after_rounding";
constexpr const char* kArithmetics = "by_format|float32|weight|bfloat16|float16";
constexpr const char* kVotes = "every_batch|last_batch";
constexpr const char* kSearches = "grid|sections|interval";

// In the order in which they are read and written below. Defaults are those of the structs.
constexpr Key kGridRows[] = {
    {"divisor", kString, nullptr, "\"half_range\"", kDivisors},
    {"threshold_rounding", kString, nullptr, "\"none\"", kThresholdRoundings},
    {"zero_point_order", kString, nullptr, "\"by_path\"", kZeroPointOrders},
    {"arithmetic", kString, nullptr, "\"by_format\"", kArithmetics},
    {"narrow", kBool, nullptr, "false"},
    {"sign_by_data", kBool, nullptr, "false"},
    {"divides", kBool, nullptr, "false"},
    {"max_includes_zero", kBool, nullptr, "true"},
    {"zero_point_of_unfloored", kBool, nullptr, "false"},
    {"pads_groups", kBool, nullptr, "false"},
    {"smallest_scale", kNumber, nullptr, "1.1920928955078125e-7"},
    {"smallest_threshold", kNumber, nullptr, "0"},
    {"smallest_max", kNumber, nullptr, "0"},
};
constexpr Key kOptionRows[] = {
    {"bins", kInteger, nullptr, "0"},
    {"percentile", kNumber, nullptr, "0"},
    {"first_candidate", kInteger, nullptr, "-3"},
    {"votes", kString, nullptr, "\"every_batch\"", kVotes},
    {"tail_percent", kNumber, nullptr, "0"},
    {"momentum", kNumber, nullptr, "0.9"},
    {"search", kString, nullptr, "\"sections\"", kSearches},
    {"candidates", kInteger, nullptr, "100"},
    {"range_margin", kNumber, nullptr, "0.5"},
    {"norm", kNumber, nullptr, "0.7"},
    {"iterations", kInteger, nullptr, "20"},
    {"weighted", kBool, nullptr, "false"},
    {"relative_margin", kBool, nullptr, "false"},
};

// Histograms and candidate tables are kept in memory, one per scale.
constexpr int64_t kMaxBins = 1 << 16, kMaxCandidates = 1 << 12;
// For floors and margins, which are no larger than weights.
constexpr int64_t kMaxMagnitude = int64_t{1} << 40;

// Members of a completed object, by name.
class Members {
 public:
  Members(const json::Value& value, const std::string& where, const Keys& keys, DiagnosticList& out)
      : object_(apply_defaults(value, where, keys, out)), where_(where), out_(out) {}

  template <class Enum>
  void read(const char* name, const char* words, Enum& target) {
    const int index = index_in(object_[name].as_string(), words);
    if (index >= 0) target = static_cast<Enum>(index);
  }
  void read(const char* name, bool& target) { target = object_[name].as_bool(); }
  double read(const char* name, int64_t lowest, int64_t highest) {
    const double number = object_[name].as_number();
    if (number >= static_cast<double>(lowest) && number <= static_cast<double>(highest)) return number;
    out_.error_in("value-invalid", pointer_to(where_, name), nullptr, nullptr, "expected a number from {} to {}",
                  lowest, highest);
    return static_cast<double>(lowest);
  }

 private:
  json::Value object_;
  const std::string& where_;
  DiagnosticList& out_;
};

}  // namespace

constexpr Keys kGrid{kGridRows, "Grid"}, kOptions{kOptionRows, "ObserverOptions"};

json::Value to_json(const RoundingGrid& grid) {
  json::Value out;
  out.set("divisor", word_at(kDivisors, static_cast<size_t>(grid.divisor)));
  out.set("threshold_rounding", word_at(kThresholdRoundings, static_cast<size_t>(grid.threshold_rounding)));
  out.set("zero_point_order", word_at(kZeroPointOrders, static_cast<size_t>(grid.zero_point_order)));
  out.set("arithmetic", word_at(kArithmetics, static_cast<size_t>(grid.arithmetic)));
  out.set("narrow", grid.narrow);
  out.set("sign_by_data", grid.sign_by_data);
  out.set("divides", grid.divides);
  out.set("max_includes_zero", grid.max_includes_zero);
  out.set("zero_point_of_unfloored", grid.zero_point_of_unfloored);
  out.set("pads_groups", grid.pads_groups);
  out.set("smallest_scale", static_cast<double>(grid.smallest_scale));
  out.set("smallest_threshold", static_cast<double>(grid.smallest_threshold));
  out.set("smallest_max", static_cast<double>(grid.smallest_max));
  return out;
}

json::Value to_json(const ObserverOptions& options) {
  json::Value out;
  out.set("bins", static_cast<int64_t>(options.bins));
  out.set("percentile", options.percentile);
  out.set("first_candidate", options.first_candidate);
  out.set("votes", word_at(kVotes, static_cast<size_t>(options.votes)));
  out.set("tail_percent", options.tail_percent);
  out.set("momentum", options.momentum);
  out.set("search", word_at(kSearches, static_cast<size_t>(options.search)));
  out.set("candidates", static_cast<int64_t>(options.candidates));
  out.set("range_margin", options.range_margin);
  out.set("norm", options.norm);
  out.set("iterations", static_cast<int64_t>(options.iterations));
  out.set("weighted", options.weighted);
  out.set("relative_margin", options.relative_margin);
  return out;
}

RoundingGrid read_grid(const json::Value& value, const std::string& where, DiagnosticList& out) {
  Members in(value, where, kGrid, out);
  RoundingGrid grid;
  in.read("divisor", kDivisors, grid.divisor);
  in.read("threshold_rounding", kThresholdRoundings, grid.threshold_rounding);
  in.read("zero_point_order", kZeroPointOrders, grid.zero_point_order);
  in.read("arithmetic", kArithmetics, grid.arithmetic);
  in.read("narrow", grid.narrow);
  in.read("sign_by_data", grid.sign_by_data);
  in.read("divides", grid.divides);
  in.read("max_includes_zero", grid.max_includes_zero);
  in.read("zero_point_of_unfloored", grid.zero_point_of_unfloored);
  in.read("pads_groups", grid.pads_groups);
  grid.smallest_scale = static_cast<float>(in.read("smallest_scale", 0, kMaxMagnitude));
  grid.smallest_threshold = static_cast<float>(in.read("smallest_threshold", 0, kMaxMagnitude));
  grid.smallest_max = static_cast<float>(in.read("smallest_max", 0, kMaxMagnitude));
  return grid;
}

ObserverOptions read_observer_options(const json::Value& value, const std::string& where, DiagnosticList& out) {
  Members in(value, where, kOptions, out);
  ObserverOptions options;
  options.bins = static_cast<uint32_t>(in.read("bins", 0, kMaxBins));
  options.percentile = in.read("percentile", 0, 100);
  options.first_candidate = static_cast<int64_t>(in.read("first_candidate", -kMaxBins, kMaxBins));
  in.read("votes", kVotes, options.votes);
  options.tail_percent = in.read("tail_percent", 0, 100);
  options.momentum = in.read("momentum", 0, 1);
  in.read("search", kSearches, options.search);
  options.candidates = static_cast<uint32_t>(in.read("candidates", 1, kMaxCandidates));
  options.range_margin = in.read("range_margin", 0, kMaxMagnitude);
  options.norm = in.read("norm", 0, 1);
  options.iterations = static_cast<uint32_t>(in.read("iterations", 1, kMaxCandidates));
  in.read("weighted", options.weighted);
  in.read("relative_margin", options.relative_margin);
  return options;
}

}  // namespace wasmquant::config
