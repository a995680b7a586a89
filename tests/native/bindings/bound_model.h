// Handles made as JavaScript makes them: of bytes and texts, addressed by number.
#pragma once
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "border/reply.h"
#include "formats/onnx_bytes.h"
#include "formats/read_file.h"
#include "handles/plan.h"
#include "handles/work.h"
#include "pipeline/memory_model.h"

namespace wasmquant::testing {

using namespace bindings;

template <class T>
Address address_of(const T& values) {
  return reinterpret_cast<Address>(values.data());
}

/// "code where: message" of a result that has to be an error; "" if it is none.
template <class T>
std::string refusal(const Result<T>& result) {
  if (result) return "";
  const Error& error = result.error();
  return std::string(name_of(error.code)) + " " + error.where + ": " + error.message;
}

template <class T>
T taken(Result<T> result) {
  if (!result) {  // no exception ends a test
    std::fprintf(stderr, "%s\n", refusal(result).c_str());
    std::abort();
  }
  return std::move(*result);
}

inline std::string text_at(Region region) { return {reinterpret_cast<const char*>(region.data()), region.size()}; }

/// A region of a document's.
inline Region part_of(const Parts& parts, std::string_view name) {
  for (size_t i = 0; i < parts.names.size(); ++i)
    if (parts.names[i] == name) return parts.regions[i];
  FAIL("no ", std::string(name));
  return {};
}
template <class T>
std::vector<T> values_in(Region region) {
  std::vector<T> values(region.size() / sizeof(T));
  if (!region.empty()) std::memcpy(values.data(), region.data(), region.size());
  return values;
}

/// Feeds a file as a host does: what is asked for, until nothing is.
inline json::Value fed(BoundModelIndex& index, uint32_t number, const std::vector<uint8_t>& file) {
  for (uint64_t begin = 0, bytes = 8;;) {
    REQUIRE(begin + bytes <= file.size());
    const json::Value next = taken(index.feed(number, address_of(file) + begin, static_cast<uint32_t>(bytes)));
    begin = static_cast<uint64_t>(next["offset"].as_integer());
    bytes = static_cast<uint64_t>(next["bytes"].as_integer());
    if (bytes == 0) return next;
  }
}

inline std::unique_ptr<BoundModelIndex> index_of(const MemoryModel& model) {
  auto index = std::make_unique<BoundModelIndex>();
  for (size_t f = 0; f < model.files.size(); ++f)
    fed(*index, index->add_file(model.names[f], static_cast<double>(model.files[f].size())), model.files[f]);
  taken(index->finish());
  return index;
}

/// A folder of the tests with model.safetensors and config.json.
struct BoundModel {
  explicit BoundModel(const std::string& folder) {
    memory.names.push_back("model.safetensors");
    memory.files.push_back(test_files::file_bytes(folder + "/model.safetensors"));
    config = test_files::file_text(folder + "/config.json");
    index = index_of(memory);
  }
  explicit BoundModel(const std::vector<Tensor>& tensors) {
    memory.add_file("model.safetensors", tensors);
    index = index_of(memory);
  }

  MemoryModel memory;
  std::string config;
  std::unique_ptr<BoundModelIndex> index;
};

/// Two linear layers and a norm.
inline BoundModel small_model() {
  std::vector<float> up(64 * 32), down(32 * 64), norm(32, 1.0f);
  for (size_t i = 0; i < up.size(); ++i) up[i] = static_cast<float>((i * 37) % 101) / 50.0f - 1.0f;
  for (size_t i = 0; i < down.size(); ++i) down[i] = static_cast<float>((i * 53) % 97) / 48.0f - 1.0f;
  return BoundModel({{"a.up_proj.weight", StorageDtype::BF16, {64, 32}, up},
                     {"a.down_proj.weight", StorageDtype::BF16, {32, 64}, down},
                     {"a.norm.weight", StorageDtype::BF16, {32}, norm}});
}

/// An ONNX model of one MatMul.
inline std::unique_ptr<BoundModelIndex> onnx_index() {
  using namespace test_files;
  const std::string file = model_of(Message()
                                        .message(1, node_of("MatMul", {"x", "w"}, {"hidden"}, "fc"))
                                        .text(2, "g")
                                        .message(5, raw_tensor("w", {4, 2}))
                                        .message(11, value_of("x"))
                                        .message(12, value_of("hidden")));
  MemoryModel model;
  model.names.push_back("model.onnx");
  model.files.emplace_back(file.begin(), file.end());
  return index_of(model);
}

inline std::string int8_config(const std::string& rest = "") {
  return R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0}}, "exclude": ["lm_head"])" +
         rest + "}";
}

inline Made<BoundPlan> plan_made(const BoundModelIndex& index, const std::string& config, const std::string& options) {
  List<Diagnostic> diagnostics;
  BoundConfig given(config);
  return BoundPlan::make(index, given, options, {}, diagnostics);
}

inline std::unique_ptr<BoundWork> work_of(Region packed) {
  return taken(BoundWork::make(address_of(packed), static_cast<double>(packed.size())));
}

/// All tasks of a plan.
inline std::unique_ptr<BoundWork> work_for(const BoundModel& model, const std::string& config,
                                           const std::string& options = R"({"format": "compressed-tensors"})") {
  return work_of(taken(plan_made(*model.index, config, options))->pack(0, ~0u));
}

}  // namespace wasmquant::testing
