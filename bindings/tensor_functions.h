// One tensor in memory: quantize, dequantize, fake-quantize, observe. Contracts: web/lib/engine/module.ts.
#pragma once
#include <memory>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "observers/registry.h"

namespace wasmquant::bindings {

std::string quantize_tensor(Address values, std::string dtype, std::string shape, std::string spec);
std::string fake_quantize_tensor(Address values, std::string dtype, std::string shape, std::string spec);
std::string dequantize_tensor(Address codes, Address scale, Address zero_point, Address shifts, std::string shape,
                              std::string spec);

// ---- stage_functions.cpp: the same with a list of two specs
std::string quantize_stages(Address values, std::string dtype, std::string shape, std::string specs);
std::string fake_quantize_stages(Address values, std::string dtype, std::string shape, std::string specs);
std::string dequantize_stages(Address codes, Address scale, Address zero_point, double second_scale, std::string shape,
                              std::string specs);

/// An observer that JavaScript holds. A spec that is none is reported by every call.
class BoundObserver : Counted {
 public:
  explicit BoundObserver(std::string spec);
  std::string update(Address values, std::string dtype, std::string shape);
  /// Times that the data has to be seen; 1 when the spec is none.
  uint32_t passes() const noexcept { return observer_ ? observer_->passes() : 1; }
  std::string next_pass();
  std::string finish();
  std::string merge(BoundObserver& other);
  void reset();

 private:
  std::unique_ptr<Observer> observer_;
  uint64_t batch_ = 0;  // the next one of this pass
  Error error_;
  List<Diagnostic> diagnostics_;
};

}  // namespace wasmquant::bindings
