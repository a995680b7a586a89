#pragma once
#include "observers/registry.h"

namespace test_observers {

/// A spec for the observer, with the scales that it finds.
inline wasmquant::QuantizationSpec spec_of(wasmquant::ObserverId observer, wasmquant::Dtype dtype, bool symmetric) {
  wasmquant::QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  spec.observer = observer;
  spec.qscheme = wasmquant::info_of(observer).qscheme;
  return spec;
}

}  // namespace test_observers
