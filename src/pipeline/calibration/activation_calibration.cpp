// Requests of a plan become observers; results become texts for the next plan.
#include "pipeline/calibration/activation_calibration.h"

#include <algorithm>
#include <utility>

#include "config/config_text.h"
#include "config/dialects/write.h"
#include "core/message.h"
#include "kernels/kernels.h"
#include "observers/registry.h"

namespace wasmquant {
namespace {

// 128 MiB of floats.
constexpr uint64_t kMaxKeptElements = uint64_t{1} << 25;
constexpr size_t kNamesInMessage = 8;

ActivationRole role_of(const json::Value& row) noexcept { return activation_role_named(row["role"].as_string()); }

}  // namespace

std::string write_requests(const List<ActivationRequest>& requests) {
  if (requests.empty()) return {};
  json::Array rows;
  for (const ActivationRequest& request : requests) {
    json::Value row;
    row.set("layer", request.layer);
    row.set("role", name_of(request.role));
    row.set("features", request.features);
    row.set("scales", request.scales);
    if (request.spec) row.set("spec", config::to_json(*request.spec));
    row.set("importance", request.importance);
    if (request.may_be_unseen) row.set("mayBeUnseen", true);
    rows.push_back(std::move(row));
  }
  return json::write(rows);
}

const json::Value& found_for(const ActivationRequest& request, const json::Value& found) noexcept {
  static const json::Value kNone;
  for (const json::Value& row : found.items())
    if (row["layer"].as_string() == request.layer && row["role"].as_string() == name_of(request.role)) return row;
  return kNone;
}

std::string expert_layer(std::string_view layer, uint64_t expert) { return text_of("{}#{}", layer, expert); }

std::vector<float> importance_in(const json::Value& found) {
  std::vector<float> means;
  const auto count = static_cast<float>(found["count"].as_number());
  for (const json::Value& sum : found["squares"].items()) means.push_back(static_cast<float>(sum.as_number()) / count);
  return means;
}

std::string ActivationCalibration::ObservedActivation::where() const { return text_of("{}.{}", layer, name_of(role)); }

Result<ActivationCalibration> ActivationCalibration::create(std::string_view text) {
  TRY(in, json::parse(text));
  ActivationCalibration out;
  for (const json::Value& row : in.items()) {
    ObservedActivation& entry = out.entries_.emplace_back();
    entry.layer = row["layer"].as_string();
    entry.role = role_of(row);
    entry.features = static_cast<uint64_t>(row["features"].as_integer());
    entry.scales = static_cast<uint64_t>(row["scales"].as_integer());
    if (row["importance"].as_bool()) entry.squares.resize(entry.features);
    entry.may_be_unseen = row["mayBeUnseen"].as_bool();
    if (row["spec"].is_null()) continue;
    TRY(spec, config::parse_spec_value(row["spec"]));
    entry.observer = make_observer(spec);
    out.is_twice_ |= entry.observes(2);
  }
  return out;
}

std::string ActivationCalibration::needs_two_passes() const {
  for (const ObservedActivation& entry : entries_)
    if (entry.observes(2)) return text_of("{} of {}", info_of(entry.observer->spec().observer).name, entry.where());
  return {};
}

std::string_view ActivationCalibration::layer_ending_with(std::string_view ending, ActivationRole role) noexcept {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const size_t at = (latest_ + i) % entries_.size();
    const std::string_view layer = entries_[at].layer;
    const bool fits = entries_[at].role == role && layer.ends_with(ending);
    if (!fits || (layer.size() != ending.size() && layer[layer.size() - ending.size() - 1] != '.')) continue;
    latest_ = at;
    return layer;
  }
  return {};
}

Status ActivationCalibration::check_complete() const {
  if (current_ == nullptr || at_ == count_) return {};
  return error_at(ErrorCode::shape_mismatch, current_->where(), "its shape has {} elements, the data {}", count_, at_);
}

Status ActivationCalibration::begin(std::string_view layer, ActivationRole role, const std::vector<uint64_t>& shape) {
  TRY_VOID(check_complete());
  current_ = nullptr;
  at_ = 0;
  for (size_t i = 0; i < entries_.size() && current_ == nullptr; ++i) {
    ObservedActivation& entry = entries_[(latest_ + i) % entries_.size()];
    if (entry.layer == layer && entry.role == role) current_ = &entry;
  }
  if (current_ == nullptr) {
    ++unused_;
    return {};
  }
  ObservedActivation& entry = *current_;
  const uint64_t features = entry.features;
  count_ = 1;
  for (const uint64_t length : shape)
    if (__builtin_mul_overflow(count_, length, &count_)) count_ = 0;
  current_ = nullptr;  // set only after all checks passed
  if (count_ == 0 || shape.empty())
    return error_at(ErrorCode::shape_mismatch, entry.where(), "batch {} is empty", entry.batches);
  if (features != 0 && shape.back() != features)
    return error_at(ErrorCode::shape_mismatch, entry.where(), "batch {} has {} features, but the layer has {}",
                    entry.batches, shape.back(), features);
  if (entry.observes(pass_)) {
    const uint64_t kept = (entry.observer->keeps_all_data() ? entry.elements : 0) + count_;
    if (entry.observer->keeps_data() && kept > kMaxKeptElements)
      return error_at(ErrorCode::argument_invalid, entry.where(),
                      "{} keeps all values in memory, at most {}; give less data",
                      info_of(entry.observer->spec().observer).name, kMaxKeptElements);
    if (Status begun = entry.observer->begin(entry.batches, shape); !begun)
      return error_at(begun.error().code, entry.where(), "batch {}{}: {}", entry.batches,
                      pass_ == 1 ? "" : " of the second pass", begun.error().message);
  }
  ++entry.batches;
  entry.elements += count_;
  current_ = &entry;
  return {};
}

Status ActivationCalibration::update(std::span<const float> x) {
  if (current_ == nullptr) return {};
  ObservedActivation& entry = *current_;
  if (x.size() > count_ - at_)
    return error_at(ErrorCode::shape_mismatch, entry.where(), "its shape has {} elements, the data {}", count_,
                    at_ + x.size());
  if (const int64_t index = kernels::find_non_finite(x); index >= 0)
    return error_at(ErrorCode::value_not_finite, entry.where(), "element {} of batch {} is NaN or infinite",
                    at_ + static_cast<uint64_t>(index), entry.batches - 1);
  if (entry.observes(pass_)) entry.observer->update(x, at_);
  if (pass_ == 1 && !entry.squares.empty()) {
    const size_t features = entry.squares.size();
    size_t feature = at_ % features;
    for (const float value : x) {
      entry.squares[feature] += double{value} * double{value};
      if (++feature == features) feature = 0;
    }
  }
  at_ += x.size();
  return {};
}

Status ActivationCalibration::next_pass() {
  TRY_VOID(check_complete());
  current_ = nullptr;
  if (pass_ == 2 || !is_twice_) return error_at(ErrorCode::state_invalid, "calibration", "all passes are done");
  ++pass_;
  for (ObservedActivation& entry : entries_) {
    entry.batches = 0;
    entry.elements_before = std::exchange(entry.elements, 0);
    if (entry.elements_before != 0 && entry.observes(2)) TRY_VOID(entry.observer->next_pass());
  }
  unused_ = 0;
  return {};
}

Result<json::Value> ActivationCalibration::finish() {
  TRY_VOID(check_complete());
  if (is_twice_ && pass_ == 1) return error_at(ErrorCode::state_invalid, "calibration", "a second pass is needed");
  std::string missing;
  size_t missing_count = 0;
  for (const ObservedActivation& entry : entries_) {
    if (pass_ == 2 && entry.elements != entry.elements_before)
      return error_at(ErrorCode::state_invalid, entry.where(), "gave {} values in the first pass and {} in the second",
                      entry.elements_before, entry.elements);
    if (entry.elements == 0 && !entry.may_be_unseen && missing_count++ < kNamesInMessage)
      missing += text_of("{}{}", missing.empty() ? "" : ", ", entry.where());
  }
  if (missing_count > kNamesInMessage) missing += text_of(" and {} more", missing_count - kNamesInMessage);
  if (missing_count != 0)
    return error_at(ErrorCode::argument_invalid, "calibration",
                    "there is no data for {}; give it, exclude these layers, or set is_dynamic", missing);
  json::Array rows;
  for (ObservedActivation& entry : entries_) {
    json::Value row;
    row.set("layer", entry.layer);
    row.set("role", name_of(entry.role));
    if (entry.observer) TRY_VOID(finish_scales(entry, row));
    row.set("count", entry.elements / std::max<uint64_t>(entry.features, 1));
    json::Array squares;
    for (const double sum : entry.squares) squares.emplace_back(double{static_cast<float>(sum)});
    row.set("squares", std::move(squares));
    rows.push_back(std::move(row));
  }
  json::Value out;
  out.set("found", std::move(rows));
  out.set("unused", unused_);
  return out;
}

Status ActivationCalibration::finish_scales(const ObservedActivation& entry, json::Value& row) {
  const QuantizationSpec& spec = entry.observer->spec();
  auto found = entry.observer->finish();
  if (!found) return error_at(found.error().code, entry.where(), "{}", found.error().message);
  if (found->spec.dtype != spec.dtype)
    return error_at(ErrorCode::format_unsupported, entry.where(),
                    "no value is below zero, so this dialect uses {}; make the spec asymmetric",
                    info_of(found->spec.dtype).name);
  if (found->qparams.size() != entry.scales)
    return error_at(ErrorCode::shape_mismatch, entry.where(),
                    "ch_axis {} gives {} scales, but {} are needed; -1 is the axis of features", spec.ch_axis,
                    found->qparams.size(), entry.scales);
  json::Array scale, zero_point;
  for (const QParams& q : found->qparams) {
    scale.emplace_back(double{q.scale});
    zero_point.emplace_back(double{q.zero_point});
  }
  row.set("scale", std::move(scale));
  row.set("zeroPoint", std::move(zero_point));
  return {};
}

}  // namespace wasmquant
