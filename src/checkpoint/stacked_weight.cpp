#include "checkpoint/stacked_weight.h"

#include <algorithm>

namespace wasmquant {
namespace {

struct Sizes {
  uint64_t experts, rows, columns;  // of the stored tensor: [experts, rows, columns]
};

// The observer that does per group what the given one does per channel.
const ObserverInfo* group_observer(ObserverId per_channel) {
  const auto found = std::find_if(kObservers.begin(), kObservers.end(), [&](const ObserverInfo& row) {
    return row.qscheme == QScheme::per_group && row.method == info_of(per_channel).method;
  });
  return found == kObservers.end() ? nullptr : &*found;
}

Error straddles(const WeightDescription& weight, int64_t size, uint64_t length) {
  return error_at(ErrorCode::group_size_invalid, weight.layer,
                  "group size {} does not divide the {} inputs of an expert", size, length);
}

Error unsupported(const WeightDescription& weight, const QuantizationSpec& spec) {
  return error_at(ErrorCode::format_unsupported, weight.layer,
                  "the experts are in one tensor as [inputs, outputs], where {} with this scale layout cannot be "
                  "simulated. Use a spec per channel or per group, exclude the layer, or write quark",
                  info_of(spec.dtype).name);
}

// Scales along the inputs, which are the rows here.
Status along_rows(const WeightDescription& weight, const Sizes& sizes, QuantizationSpec& spec) {
  const bool is_stacked = sizes.experts > 1;
  switch (spec.qscheme) {
    case QScheme::per_tensor:
      return {};
    case QScheme::per_block:
      std::swap(spec.block_rows, spec.block_columns);
      if (is_stacked && (spec.block_rows == 0 || sizes.rows % spec.block_rows != 0))
        return straddles(weight, spec.block_rows, sizes.rows);
      return {};
    case QScheme::per_group:
      if (is_stacked && spec.group_size > 0 && sizes.rows % static_cast<uint64_t>(spec.group_size) != 0)
        return straddles(weight, spec.group_size, sizes.rows);
      spec.ch_axis = 0;
      if (is_stacked && spec.group_size <= 0) spec.group_size = static_cast<int64_t>(sizes.rows);
      return {};
    case QScheme::per_channel:
      break;
  }
  if (!is_stacked) {
    spec.ch_axis = 1;
    return {};
  }
  const ObserverInfo* const observer = group_observer(spec.observer);
  if (observer == nullptr) return unsupported(weight, spec);
  spec.qscheme = QScheme::per_group;
  spec.observer = observer->id;
  spec.ch_axis = 0;
  spec.group_size = static_cast<int64_t>(sizes.rows);
  return {};
}

Status along_columns(const WeightDescription& weight, const Sizes& sizes, QuantizationSpec& spec) {
  if (spec.qscheme == QScheme::per_block && spec.block_rows != 0 && sizes.rows % spec.block_rows != 0)
    return straddles(weight, spec.block_rows, sizes.rows);
  if (spec.qscheme == QScheme::per_group && spec.ch_axis == 2) spec.ch_axis = 1;
  return {};
}

}  // namespace

Result<StackedWeight> stacked_weight(const WeightDescription& weight, const Stages& stages) {
  StackedWeight out{weight, stages};
  if (weight.experts == 0 && !weight.is_input_major) return out;
  const size_t first = weight.experts == 0 ? 0 : 1;
  const Sizes sizes{std::max<uint64_t>(weight.experts, 1), weight.shape[first], weight.shape[first + 1]};
  if (info_of(stages.front().dtype).is_plain_cast()) {
    out.weight.shape = {sizes.experts * sizes.rows, sizes.columns};
    return out;
  }
  const bool one_scale_each = sizes.experts > 1 && stages.front().qscheme == QScheme::per_tensor;
  for (QuantizationSpec& spec : out.stages) {
    const bool is_last_or_rows = spec.ch_axis == -1 || spec.ch_axis == 0 || spec.ch_axis == 1;
    if (weight.is_input_major && (info_of(spec.dtype).is_block() || !is_last_or_rows)) return unsupported(weight, spec);
    if (one_scale_each) {
      spec.qscheme = QScheme::per_channel;
      spec.ch_axis = 0;
      for (const ObserverInfo& row : kObservers)
        if (row.qscheme == QScheme::per_channel && row.method == info_of(spec.observer).method) spec.observer = row.id;
      if (info_of(spec.observer).qscheme != QScheme::per_channel) return unsupported(weight, spec);
    } else {
      TRY_VOID(weight.is_input_major ? along_rows(weight, sizes, spec) : along_columns(weight, sizes, spec));
    }
  }
  out.weight.shape = one_scale_each ? std::vector<uint64_t>{sizes.experts, sizes.rows * sizes.columns}
                                    : std::vector<uint64_t>{sizes.experts * sizes.rows, sizes.columns};
  return out;
}

}  // namespace wasmquant
