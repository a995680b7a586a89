#include "pipeline/plan/group_size_fallback.h"

#include "core/message.h"

namespace wasmquant {
namespace {

// Names the spec's group size in messages: "group size 128".
std::string group_text(int64_t size) { return text_of("group size {}", size); }

QuantizationSpec with_fitting_groups(const QuantizationSpec& spec, uint64_t axis_length) {
  QuantizationSpec fitting = spec;
  for (const int64_t size : {int64_t{128}, int64_t{64}, int64_t{32}}) {
    if (size < spec.group_size && axis_length % static_cast<uint64_t>(size) == 0) {
      fitting.group_size = size;
      return fitting;
    }
  }
  fitting.qscheme = QScheme::per_channel;
  fitting.observer = ObserverId::PerChannelMinMaxObserver;
  fitting.ch_axis = 0;
  fitting.group_size = 0;
  return fitting;
}

}  // namespace

QuantizationSpec fall_back(const QuantizationSpec& spec, uint64_t axis_length, const std::string& tensor,
                           Reason& reason, List<Diagnostic>& diagnostics) {
  const QuantizationSpec fitting = with_fitting_groups(spec, axis_length);
  const std::string instead =
      fitting.qscheme == QScheme::per_channel ? "one scale per channel" : group_text(fitting.group_size);
  reason.text += text_of("; {} does not divide {}, so {}", group_text(spec.group_size), axis_length, instead);
  diagnostics.push_back(
      {Severity::note, "group-fallback", tensor,
       text_of("{} does not divide {}; {} is used here", group_text(spec.group_size), axis_length, instead),
       "set \"indivisible_groups\": \"error\" to refuse instead"});
  return fitting;
}

}  // namespace wasmquant
