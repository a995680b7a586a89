// Reproducible test data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace wasmquant {

/// Normally distributed, as weights are; libraries differ in how they make them.
inline std::vector<float> normal_values(size_t count, uint32_t seed, float mean = 0, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// The same values on every platform.
class RandomValues {
 public:
  explicit RandomValues(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  /// Uniform in [-1, 1).
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state_ >> 8) - (1 << 23)) * 0x1p-23f;
  }
  std::vector<float> vector(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = next();
    return values;
  }
  /// [tokens, columns] whose neighbouring columns are correlated and whose columns differ in size.
  std::vector<float> inputs(size_t tokens, size_t columns) {
    std::vector<float> x(tokens * columns);
    for (size_t t = 0; t < tokens; ++t) {
      float carried = 0;
      for (size_t j = 0; j < columns; ++j) {
        carried = 0.8f * carried + next();
        x[t * columns + j] = carried * static_cast<float>(1 + j * 7 % 5);
      }
    }
    return x;
  }

 private:
  uint32_t state_;
};

}  // namespace wasmquant
