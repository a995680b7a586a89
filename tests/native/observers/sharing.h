// Specs of every observer, and one set of data shared among observers as pieces: the result has to be that of one
// observer that saw all.
#pragma once
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "observers/registry.h"

namespace observer_tests {

using namespace wasmquant;

struct Batch {
  std::vector<float> x;
  std::vector<uint64_t> shape;
};

/// Each observer with each kind of dtype that it serves; channels along the last axis, groups of 2 along it.
inline std::vector<QuantizationSpec> specs_of_all_observers() {
  std::vector<QuantizationSpec> specs;
  for (const ObserverInfo& row : kObservers)
    for (const Dtype dtype : {Dtype::int8, Dtype::uint8, Dtype::int4, Dtype::fp8_e4m3, Dtype::bfloat16})
      for (const bool symmetric : {true, false}) {
        if (!row.serves(info_of(dtype)) || (!symmetric && !info_of(dtype).is_integer)) continue;
        if (info_of(dtype).is_plain_cast() && row.dtypes != ObserverDtypes::casts) continue;
        QuantizationSpec spec;
        spec.dtype = dtype;
        spec.symmetric = symmetric;
        spec.observer = row.id;
        spec.qscheme = row.qscheme;
        spec.ch_axis = -1;
        spec.group_size = 2;
        spec.block_rows = spec.block_columns = 2;
        specs.push_back(spec);
      }
  return specs;
}

inline bool same(const Observation& a, const Observation& b) {
  const auto equal = [](const QParams& p, const QParams& q) {
    return p.scale == q.scale && p.zero_point == q.zero_point;
  };
  return std::equal(a.qparams.begin(), a.qparams.end(), b.qparams.begin(), b.qparams.end(), equal) && a.min == b.min &&
         a.max == b.max && a.candidates == b.candidates && a.errors == b.errors &&
         a.granularity.scale_shape == b.granularity.scale_shape;
}

/// One observer, whole batches.
inline Observation alone(const QuantizationSpec& spec, const std::vector<Batch>& batches) {
  const auto observer = make_observer(spec);
  for (uint32_t pass = 1; pass <= observer->passes(); ++pass) {
    if (pass == 2 && !observer->next_pass()) return {};
    for (size_t b = 0; b < batches.size(); ++b)
      if (!observe(*observer, b, batches[b].x, batches[b].shape)) return {};
  }
  auto found = observer->finish();
  return found ? *found : Observation{};
}

/// `workers` observers, each batch cut at random, every piece given to any of them in any order.
inline Observation shared(const QuantizationSpec& spec, const std::vector<Batch>& batches, size_t workers,
                          std::mt19937& random) {
  struct Piece {
    size_t batch, begin, end;
  };
  std::vector<Piece> pieces;
  for (size_t b = 0; b < batches.size(); ++b) {
    std::vector<size_t> cuts = {0, batches[b].x.size()};
    for (int i = 0; i < 4; ++i) cuts.push_back(random() % (batches[b].x.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) pieces.push_back({b, cuts[i], cuts[i + 1]});
  }
  std::vector<std::unique_ptr<Observer>> observers;
  for (size_t i = 0; i < workers; ++i) observers.push_back(make_observer(spec));
  const auto root = make_observer(spec);
  for (uint32_t pass = 1; pass <= root->passes(); ++pass) {
    if (pass == 2) {
      for (const auto& observer : observers)
        if (!observer->merge(*root) || !observer->next_pass()) return {};
      if (!root->next_pass()) return {};
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (const Piece& piece : pieces) {
      Observer& observer = *observers[random() % workers];
      const Batch& batch = batches[piece.batch];
      if (!observer.begin(piece.batch, batch.shape)) return {};
      observer.update({batch.x.data() + piece.begin, piece.end - piece.begin}, piece.begin);
    }
    std::shuffle(observers.begin(), observers.end(), random);
    for (const auto& observer : observers)
      if (!root->merge(*observer)) return {};
  }
  auto found = root->finish();
  return found ? *found : Observation{};
}

}  // namespace observer_tests
