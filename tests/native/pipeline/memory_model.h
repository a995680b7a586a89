// A model whose files are byte strings in memory: made from tensors, planned, run tile by tile, and decoded again.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors/safetensors.h"
#include "kernels/kernels.h"
#include "pipeline/checkpoint_plan/file_layout.h"
#include "pipeline/comparison/comparison.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/packed_task.h"
#include "pipeline/plan/plan.h"
#include "pipeline/session/session.h"
#include "pipeline/task/decoder.h"

namespace wasmquant::testing {

struct Tensor {
  std::string name;
  StorageDtype dtype;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

inline std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  std::vector<uint8_t> bytes(tensor.values.size() * info_of(tensor.dtype).bits / 8);
  if (tensor.dtype == StorageDtype::F32) {
    std::memcpy(bytes.data(), tensor.values.data(), bytes.size());
  } else if (tensor.dtype == StorageDtype::F64) {
    const std::vector<double> doubles(tensor.values.begin(), tensor.values.end());
    std::memcpy(bytes.data(), doubles.data(), bytes.size());
  } else {
    (tensor.dtype == StorageDtype::BF16 ? kernels::narrow_bf16 : kernels::narrow_f16)(
        tensor.values, reinterpret_cast<uint16_t*>(bytes.data()));
  }
  return bytes;
}

/// Files by number; grows as pieces are written.
struct MemoryModel {
  List<std::string> names;
  std::vector<std::vector<uint8_t>> files;

  void add_file(const std::string& name, const std::vector<Tensor>& tensors) {
    List<safetensors::TensorHeader> entries;
    for (const Tensor& tensor : tensors) entries.push_back({tensor.name, tensor.dtype, tensor.shape});
    auto header = safetensors::write_header(entries, {});
    REQUIRE(bool(header));
    std::vector<uint8_t> file(header->file_bytes);
    std::memcpy(file.data(), header->bytes.data(), header->bytes.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::vector<uint8_t> bytes = bytes_of(tensors[i]);
      if (!bytes.empty()) std::memcpy(file.data() + header->offsets[i], bytes.data(), bytes.size());
    }
    names.push_back(name);
    files.push_back(std::move(file));
  }

  ModelIndex index() const {
    ModelIndex index;
    for (size_t f = 0; f < files.size(); ++f) {
      const uint32_t number = index.add_file(names[f], files[f].size());
      REQUIRE(bool(index.feed(number, files[f])));
    }
    const Status finished = index.finish();
    REQUIRE(bool(finished));
    return index;
  }

  /// The index with the bytes of its inline tensors.
  ModelIndex read_index() const {
    ModelIndex index = this->index();
    for (const uint32_t tensor : index.inline_tensors()) {
      const ModelTensor& found = index.tensors()[tensor];
      const auto first = files[found.file].begin() + static_cast<std::ptrdiff_t>(found.stored.begin);
      const auto size = static_cast<std::ptrdiff_t>(found.stored.end - found.stored.begin);
      REQUIRE(bool(index.set_inline_bytes(tensor, std::string(first, first + size))));
    }
    return index;
  }

  void fill(const List<TileRead>& reads) const {
    for (const TileRead& read : reads)
      for (uint64_t row = 0; row < read.rows; ++row) {
        REQUIRE(read.begin + row * read.stride + read.row_bytes <= files[read.file].size());
        std::memcpy(read.pointer + row * read.row_bytes, files[read.file].data() + read.begin + row * read.stride,
                    read.row_bytes);
      }
  }
};

struct RunResult {
  MemoryModel model;
  std::vector<kernels::ErrorSums> sums;  // one per task, units in order
};

/// Runs every task of a plan through its packed form. `reverse` runs the tiles of each tensor last to first.
inline Result<RunResult> run_plan(const MemoryModel& source, const Plan& plan, bool reverse = false) {
  RunResult out;
  for (const PlannedFile& file : plan.files) {
    out.model.names.push_back(file.name);
    out.model.files.emplace_back(file.bytes, uint8_t{0xEE});
    uint8_t* const bytes = out.model.files.back().data();
    for (size_t piece = 0; piece < file.header.piece_count(); ++piece) {
      const std::string text = header_text(plan, file.header, piece);
      std::memcpy(bytes + file.header.marks[piece].text, text.data(), text.size());
    }
    if (file.literals.empty()) std::memcpy(bytes, file.prefix.data(), file.prefix.size());
    for (const Literal& literal : file.literals)
      std::memcpy(bytes + literal.offset, file.prefix.data() + literal.begin, literal.bytes);
  }
  for (size_t i = 0; i < plan.task_count(); ++i) {
    const size_t work = plan.work_of(i);
    TRY(task, read_in_worker(plan.task_of(work)));
    TensorSession session(task);
    const uint64_t tiles = session.task().tiles;
    if (session.observe_passes() != 0) {
      // Another worker observes the odd tiles, or all of them when that cannot be shared.
      const bool shared = TensorScales::shared(session.task().layout);
      TensorSession other(task);
      for (uint32_t pass = 1; pass <= session.observe_passes(); ++pass) {
        if (pass == 2) TRY_VOID(other.next_pass());
        const uint64_t observed = pass == 1 ? tiles + session.task().joined_tiles() : tiles;
        for (uint64_t t = 0; t < observed; ++t) {
          const uint64_t tile = reverse ? observed - 1 - t : t;
          TensorSession& who = shared && tile % 2 == 0 ? session : other;
          source.fill(who.reads(tile));
          TRY_VOID(who.observe(tile));
        }
      }
      TRY(state, other.state());
      TRY_VOID(session.take_state(std::vector<float>(state.begin(), state.end())));
    }
    std::vector<std::vector<kernels::ErrorSums>> sums(tiles);
    for (uint64_t t = 0; t < tiles; ++t) {
      const uint64_t tile = reverse ? tiles - 1 - t : t;
      source.fill(session.reads(tile));
      TRY(result, session.run(tile));
      for (const TileWrite& write : result.writes) {
        REQUIRE(write.offset + write.bytes <= out.model.files[write.file].size());
        std::memcpy(out.model.files[write.file].data() + write.offset, write.pointer, write.bytes);
      }
      sums[tile].assign(result.sums.begin(), result.sums.end());
    }
    kernels::ErrorSums total;
    for (const auto& tile : sums)
      for (const kernels::ErrorSums& unit : tile) total.append(unit);
    out.sums.push_back(total);
  }
  return out;
}

/// All values of a decoder's tensor in row order.
inline std::vector<float> decode_all(const MemoryModel& model, const TensorTask& task) {
  TensorDecoder decoder(in_worker(task));
  const WeightLayout& layout = decoder.task().layout;
  std::vector<float> values(layout.rows * layout.columns);
  for (uint64_t tile = 0; tile < decoder.task().tiles; ++tile) {
    model.fill(decoder.reads(tile));
    const std::span<const float> tile_values = decoder.decode(tile);
    const uint64_t first = tile * decoder.task().tile_lines;
    if (task.has_column_tiles()) {
      const uint64_t width = tile_values.size() / layout.rows;
      for (uint64_t row = 0; row < layout.rows; ++row)
        std::copy_n(tile_values.begin() + static_cast<ptrdiff_t>(row * width), width,
                    values.begin() + static_cast<ptrdiff_t>(row * layout.columns + first));
    } else {
      std::copy(tile_values.begin(), tile_values.end(),
                values.begin() + static_cast<ptrdiff_t>(first * layout.columns));
    }
  }
  return values;
}

}  // namespace wasmquant::testing
