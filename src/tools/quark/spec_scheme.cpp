// Dtype, plain casts, observer, qscheme, axis and group size of a tensor spec.
#include "config/match/edit_distance.h"
#include "config/spec/vocabulary.h"
#include "core/list.h"
#include "core/message.h"
#include "tools/quark/spec_parser.h"

namespace wasmquant::config {
namespace {

// More axes than any layer's weight has; keeps the numbers small enough to negate.
constexpr int64_t kMaxAxes = 8;
constexpr int64_t kMaxGroupSize = int64_t{1} << 31;

std::string supported_dtypes() {
  std::string text = "mx";
  for (const DtypeInfo& row : kDtypes) {
    if (row.dtype == Dtype::uint16) continue;
    text += ", ";
    text += row.name;
  }
  return text;
}

std::string observers_serving(QScheme qscheme, const DtypeInfo& dtype) {
  std::string text;
  for (const ObserverInfo& row : kObservers) {
    if (row.qscheme != qscheme || !row.serves(dtype)) continue;
    if (!text.empty()) text += ", ";
    text += row.name;
  }
  return text;
}

}  // namespace

bool SpecParser::read_dtype() {
  const json::Value* value = in_.find("dtype");
  if (value == nullptr) {
    if (in_.is_object())
      in_.out().error(
          "key-missing", in_.where(), "a tensor spec needs a dtype",
          text_of("one of: {}. Quark's Brevitas extension has none: for it, add \"dialect\": \"brevitas\" to "
                  "the config",
                  supported_dtypes()));
    return false;
  }
  std::string name(python_name(value->as_string()));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  if (name == "mx") return read_mx_element();
  // Other tools have it, and plans show their numbers as `grid`.
  if (name == info_of(Dtype::uint16).name && in_.find("grid") == nullptr) {
    unsupported("dtype-unsupported", "dtype", "uint16 has no quantized range", "use int16 or uint8");
    dtype_unsupported_ = true;
    return false;
  }
  if (const auto dtype = dtype_named(name)) {
    spec_.dtype = *dtype;
    return true;
  }
  const std::string hint = name == "nf4"
                               ? std::string("NF4 can be read but not written; fp4, mxfp4 and int4 are similar")
                               : did_you_mean(name, kDtypeWords);
  in_.error("value-unknown", "dtype", text_of("there is no dtype {q}", value->as_string()),
            text_of("{}{}", hint.empty() ? "supported: " : "", hint.empty() ? supported_dtypes() : hint));
  return false;
}

void SpecParser::read_plain_cast() {
  std::string others;
  for (const Key& key : kSpecKeys) {
    const json::Value* value = in_.find(key.name);
    const std::string_view name = key.name;
    if (value == nullptr || name == "dtype" || name == "max_input_numel") continue;
    if ((key.kinds & kBool) != 0 && !value->as_bool()) continue;
    if (name == "observer_cls" && observer_named(python_name(value->as_string())) == ObserverId::PlaceholderObserver)
      continue;
    if (name == "zero_point_type" && value->as_string() == kZeroPointTypes[0]) continue;
    if (!others.empty()) others += ", ";
    others += name;
  }
  const std::string_view dtype = info_of(spec_.dtype).name;
  if (!others.empty())
    in_.out().warning("key-ignored", in_.where(), text_of("{} is a plain cast and ignores: {}", dtype, others),
                      "give only the dtype");
}

const ObserverInfo* SpecParser::read_observer() {
  const json::Value* value = in_.find("observer_cls");
  if (value == nullptr) return nullptr;
  if (const auto id = observer_named(python_name(value->as_string()))) {
    spec_.observer = *id;
    return &info_of(*id);
  }
  List<std::string_view> ours;
  for (const ObserverInfo& row : kObservers) ours.push_back(row.name);
  const std::string hint = did_you_mean(python_name(value->as_string()), ours);
  in_.error("value-unknown", "observer_cls", text_of("there is no observer {q}", value->as_string()),
            text_of("{}{}", hint.empty() ? "use one of: " : "", hint.empty() ? joined(ours) : hint));
  return nullptr;
}

void SpecParser::read_qscheme() {
  const ObserverInfo* observer = read_observer();
  const bool in_blocks = is_mx_ || info_of(spec_.dtype).is_block();
  if (in_.find("qscheme") != nullptr) {
    const int index = in_.word("qscheme", kQSchemes);
    if (index < 0) {
      known_scheme_ = false;
      return;
    }
    spec_.qscheme = static_cast<QScheme>(index);
  } else if (observer != nullptr) {
    spec_.qscheme = observer->qscheme;
  } else if (in_blocks) {
    spec_.qscheme = QScheme::per_group;
  } else if (in_.find("group_size") != nullptr || in_.find("ch_axis") != nullptr) {
    const bool group = in_.find("group_size") != nullptr;
    in_.out().error("key-missing", in_.where(),
                    text_of("qscheme is missing, though {} is given", (group ? "group_size" : "ch_axis")),
                    group ? "add \"qscheme\": \"per_group\"" : "add \"qscheme\": \"per_channel\"");
    known_scheme_ = false;
    return;
  }
  if (in_blocks && spec_.qscheme != QScheme::per_group) {
    in_.error("value-invalid", "qscheme",
              text_of("{} is made of blocks along one axis, not {}", in_.find("dtype")->as_string(),
                      word_of(spec_.qscheme, kQSchemes)),
              "use per_group, or leave the key out");
    known_scheme_ = false;
    return;
  }
  choose_observer(observer);
}

void SpecParser::choose_observer(const ObserverInfo* named) {
  const DtypeInfo& dtype = info_of(spec_.dtype);
  if (named == nullptr) {
    const bool is_bfp = spec_.qscheme == QScheme::per_group && spec_.dtype == Dtype::bfp16;
    spec_.observer =
        is_bfp ? ObserverId::PerBlockBFPObserver : default_observer_for(spec_.qscheme, dtype.is_integer && !is_mx_);
    return;
  }
  // LSQ and HQQ name methods, regardless of the qscheme.
  if (named->qscheme != spec_.qscheme && !named->name.starts_with("Per"))
    for (const ObserverInfo& row : kObservers)
      if (row.method == named->method && row.qscheme == spec_.qscheme) {
        named = &row;
        spec_.observer = row.id;
      }
  if (const bool by_scheme = named->serves(dtype) || is_mx_ || !dtype_known_;
      !by_scheme || named->qscheme != spec_.qscheme) {
    in_.error("observer-mismatch", "observer_cls",
              text_of("{} does not support {}{}", in_.find("observer_cls")->as_string(),
                      by_scheme ? "qscheme " : "dtype ", by_scheme ? word_of(spec_.qscheme, kQSchemes) : dtype.name),
              text_of("these do: {}", observers_serving(spec_.qscheme, dtype)));
  }
}

void SpecParser::read_axis_and_group() {
  const json::Value* axis = in_.find("ch_axis");
  const json::Value* group = in_.find("group_size");
  if (axis != nullptr && (axis->as_integer() < -kMaxAxes || axis->as_integer() >= kMaxAxes)) {
    in_.error("value-invalid", "ch_axis", text_of("axis {} is outside -8..7", axis->as_integer()),
              "0 is the output axis of a Linear, -1 the last axis");
    axis = nullptr;
  }
  if (group != nullptr &&
      (group->as_integer() == 0 || group->as_integer() < -1 || group->as_integer() > kMaxGroupSize)) {
    in_.error("value-invalid", "group_size", text_of("group_size {} is not a valid group size", group->as_integer()),
              "a positive number, or -1 for the whole axis");
    group = nullptr;
  } else if (group != nullptr && known_scheme_ && spec_.qscheme != QScheme::per_group) {
    ignored("group_size", text_of("group_size has no effect with qscheme {}", word_of(spec_.qscheme, kQSchemes)));
  }
  if (!known_scheme_) return;

  switch (spec_.qscheme) {
    case QScheme::per_tensor:
      if (axis != nullptr) ignored("ch_axis", "ch_axis has no effect with qscheme per_tensor");
      return;
    case QScheme::per_channel:
      if (axis != nullptr) {
        spec_.ch_axis = axis->as_integer();
      } else if (use_ != TensorSlot::weight && in_.find("ch_axis") == nullptr) {
        in_.out().error("key-missing", in_.where(), "per_channel activations and biases need a ch_axis");
      }
      return;
    case QScheme::per_group:
      spec_.ch_axis = axis != nullptr ? axis->as_integer() : -1;
      read_group_size(group);
      return;
    case QScheme::per_block:
      read_block_size();
      return;
  }
}

}  // namespace wasmquant::config
