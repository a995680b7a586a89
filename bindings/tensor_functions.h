// One tensor in memory: quantize, dequantize, fake-quantize, observe. Contracts: web/lib/module.ts.
#pragma once
#include <optional>
#include <string>

#include "core/list.h"
#include "marshal.h"
#include "observers/batch_observer.h"

namespace wasmquant::bindings {

std::string quantize_tensor(Address values, std::string dtype, std::string shape, std::string spec);
std::string fake_quantize_tensor(Address values, std::string dtype, std::string shape, std::string spec);
std::string dequantize_tensor(Address codes, Address scale, Address zero_point, std::string shape, std::string spec);

/// An observer that JavaScript holds. A spec that is none is reported by every call.
class BoundObserver : Counted {
 public:
  explicit BoundObserver(std::string spec);
  std::string update(Address values, std::string dtype, std::string shape);
  std::string finish();
  std::string merge(BoundObserver& other);
  void reset();

 private:
  std::optional<BatchObserver> observer_;
  Error error_;
  List<Diagnostic> diagnostics_;
};

}  // namespace wasmquant::bindings
