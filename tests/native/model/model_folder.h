// A model folder of the tests, read whole, and driven through a forward pass as a host does it.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "formats/read_file.h"
#include "kernels/arch.h"
#include "pipeline/forward/forward_plan.h"
#include "pipeline/forward/forward_session.h"
#include "pipeline/packed_task.h"

namespace wasmquant::testing {

/// Whole texts take minutes in xsimd's model of a register in plain code, and with sanitizers.
inline bool is_slow_build() {
#if defined(__SANITIZE_ADDRESS__)  // GCC
  return true;
#elif defined(__has_feature)  // Clang
#if __has_feature(address_sanitizer)
  return true;
#endif
#endif
  return kernels::active_arch() == kernels::Simd::emulated128;
}

/// Lengths of sequences that have the same one.
inline std::vector<uint32_t> sequences_of(std::span<const int32_t> tokens, size_t length) {
  return std::vector<uint32_t>(tokens.size() / length, static_cast<uint32_t>(length));
}

struct ModelFolder {
  ModelIndex index;
  std::vector<std::vector<uint8_t>> files;
  std::string config;

  /// `name` below the tests folder, with model.safetensors and config.json.
  explicit ModelFolder(const std::string& name) {
    add(name + "/model.safetensors");
    config = test_files::file_text(name + "/config.json");
  }
  ModelFolder() = default;

  void add(const std::string& file) {
    files.push_back(test_files::file_bytes(file));
    const uint32_t number = index.add_file(file, files.back().size());
    REQUIRE(bool(index.feed(number, files.back())));
    REQUIRE(bool(index.finish()));
  }

  /// A tensor's values; T is what is stored.
  template <class T>
  std::vector<T> tensor(const std::string& name) const {
    const ModelTensor* found = index.find(name);
    REQUIRE_MESSAGE(found, "no " << name);
    std::vector<T> values((found->stored.end - found->stored.begin) / sizeof(T));
    std::memcpy(values.data(), files[found->file].data() + found->stored.begin, values.size() * sizeof(T));
    return values;
  }

  void fill(const List<TileRead>& reads) const {
    for (const TileRead& read : reads)
      for (uint64_t row = 0; row < read.rows; ++row)
        std::memcpy(read.pointer + row * read.row_bytes, files[read.file].data() + read.begin + row * read.stride,
                    read.row_bytes);
  }
};

inline ModelFolder file_of(const std::string& name) {
  ModelFolder folder;
  folder.add(name);
  return folder;
}

/// Runs every step. `sink` may be null. `head` (optional) gets the rows of the head, [vocabulary, hidden].
inline std::unique_ptr<ForwardSession> run_forward(const ModelFolder& model, std::span<const int32_t> tokens,
                                                   size_t length, uint64_t tile_bytes = 1 << 20,
                                                   model::InputPrecision precision = model::InputPrecision::float32,
                                                   model::InputSink* sink = nullptr,
                                                   std::vector<float>* logits = nullptr,
                                                   ForwardUse use = ForwardUse::calibrate) {
  auto plan = plan_forward(model.index, *json::parse(model.config, json::kPython), {tile_bytes, tile_bytes}, use);
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().where + ": " + plan.error().message));
  auto session = std::make_unique<ForwardSession>(plan->architecture, precision);
  session->set_sink(sink);
  const Status set = session->pass().set_tokens(tokens, sequences_of(tokens, length));
  REQUIRE_MESSAGE(set, (set ? "" : set.error().message));
  const size_t portions = session->pass().portions();
  if (logits != nullptr) logits->resize(tokens.size() * plan->architecture.vocabulary);
  for (uint32_t step = 0; step < plan->steps.size(); ++step) {
    bool has_run = false;
    for (const ForwardTensor& tensor : plan->steps[step].tensors) {
      REQUIRE(bool(session->begin(step, tensor.slot, in_worker(tensor.task))));
      for (uint64_t tile = 0; tile < tensor.task.tiles; ++tile) {
        model.fill(session->reads(tile));
        REQUIRE(bool(session->load(tile)));
        if (!tensor.is_streamed) continue;
        has_run = true;
        if (logits != nullptr && tensor.slot == kHeadSlot) {
          const auto rows = session->rows();
          const size_t width = rows.size() / plan->architecture.hidden;
          size_t position = 0;
          for (size_t portion = 0; portion < portions; ++portion) {
            const std::span<float> part = session->pass().logits(portion, rows, session->first_row());
            for (size_t i = 0; i < part.size(); i += width, ++position)
              std::copy_n(part.data() + i, width,
                          logits->data() + position * plan->architecture.vocabulary + session->first_row());
          }
        }
        for (uint32_t portion = 0; portion < portions; ++portion) REQUIRE(bool(session->run(portion)));
      }
    }
    for (uint32_t portion = 0; !has_run && portion < portions; ++portion) REQUIRE(bool(session->run(portion)));
  }
  return session;
}

}  // namespace wasmquant::testing
