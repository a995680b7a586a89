// Every spec as compressed-tensors' arguments: what its own validator accepts.
#include "tools/compressed_tensors/compressed_tensors_arguments.h"

#include <doctest/doctest.h>

using namespace wasmquant;

TEST_CASE("compressed-tensors arguments: strategy and sizes agree for every spec") {
  for (const Dtype dtype : {Dtype::int4, Dtype::uint4, Dtype::int8, Dtype::fp8_e4m3, Dtype::fp4})
    for (const QScheme qscheme : {QScheme::per_tensor, QScheme::per_channel, QScheme::per_group, QScheme::per_block})
      for (const int64_t group_size : {int64_t{-1}, int64_t{16}, int64_t{32}})
        for (const ScaleFormat format : {ScaleFormat::float32, ScaleFormat::e8m0, ScaleFormat::e4m3})
          for (const bool is_activation : {false, true}) {
            QuantizationSpec spec;
            spec.dtype = dtype;
            spec.qscheme = qscheme;
            spec.group_size = group_size;
            spec.block_rows = spec.block_columns = 128;
            spec.scale_format = format;
            spec.is_dynamic = is_activation;
            const json::Value block = config::compressed_tensors_arguments(spec, is_activation);
            const std::string& strategy = block["strategy"].as_string();
            const bool has_group = strategy == "group" || strategy == "tensor_group";
            CHECK(has_group == (qscheme == QScheme::per_group && group_size > 0));
            CHECK(block["group_size"].is_null() == !has_group);
            if (has_group) CHECK(block["group_size"].as_integer() == group_size);
            CHECK(block["block_structure"].is_null() == (strategy != "block"));
            CHECK((strategy == "token") <= is_activation);
            CHECK((strategy == "channel") <= !is_activation);
            CHECK(block["observer"].is_null() == is_activation);
            CHECK(block["symmetric"].as_bool() == !config::has_stored_zero_point(spec));
          }
}
