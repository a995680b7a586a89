// x^y in float64 from additions, multiplications and divisions, so that native and WebAssembly builds agree to the bit;
// C libraries may differ in the last one. Relative error below 1e-12 where |y log2 x| <= 1000.
#pragma once

namespace wasmquant {

/// base finite and >= 0, exponent finite. 0^0 is 1, 0^negative infinity. Results below 2^-1021 are 0, from 2^1024 on
/// infinity.
double power(double base, double exponent) noexcept;

}  // namespace wasmquant
