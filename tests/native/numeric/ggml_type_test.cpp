#include "numeric/ggml_type.h"

#include <doctest/doctest.h>

#include <string>

namespace wasmquant {
namespace {

TEST_CASE("types are found by number and by name") {
  for (const GgmlTypeInfo& info : kGgmlTypes) {
    CHECK(info_of(info.type).name == info.name);
    CHECK(ggml_type_of(info.file_id) == info.type);
    CHECK(ggml_type_named(info.name) == info.type);
    CHECK(info.block > 0);
    CHECK(info.block_bytes > 0);
  }
  for (const uint32_t withdrawn : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 256u + 2u, 0xFFFFFFFFu})
    CHECK_FALSE(ggml_type_of(withdrawn));
  CHECK_FALSE(ggml_type_named("Q4_K"));
  CHECK(ggml_type_of(12) == GgmlType::q4_k);
}

TEST_CASE("sizes of rows") {
  CHECK(info_of(GgmlType::q4_0).bytes_of(4096) == 2304);
  CHECK(info_of(GgmlType::q4_k).bytes_of(4096) == 2304);
  CHECK(info_of(GgmlType::q6_k).bytes_of(256) == 210);
  CHECK(info_of(GgmlType::mxfp4).bytes_of(uint64_t{1} << 40) == (uint64_t{1} << 35) * 17);
  CHECK(info_of(GgmlType::i64).bytes_of(3) == 24);
}

TEST_CASE("operations that a type supports") {
  CHECK(info_of(GgmlType::q4_k).can_quantize());
  CHECK_FALSE(info_of(GgmlType::q8_k).can_quantize());
  CHECK_FALSE(info_of(GgmlType::q8_k).can_dequantize());
}

}  // namespace
}  // namespace wasmquant
