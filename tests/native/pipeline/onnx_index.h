// The index of an ONNX model in memory, fed as the library feeds one.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "pipeline/model_index/model_index.h"

namespace wasmquant {

inline ModelIndex onnx_index_of(const std::string& file) {
  ModelIndex index;
  index.add_file("model.onnx", file.size());
  for (Need need{0, file.size()}; need.bytes > 0;) {
    const auto next =
        index.feed(0, {reinterpret_cast<const uint8_t*>(file.data()) + need.offset, static_cast<size_t>(need.bytes)});
    REQUIRE(bool(next));
    need = *next;
  }
  const Status finished = index.finish();
  REQUIRE(bool(finished));
  return index;
}

}  // namespace wasmquant
