// The readable model formats: each has a folder with a reader and a function for its Format, and a formats.def row.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant {

/// Bytes of a file that its reader requests. 0 bytes: done.
struct Need {
  uint64_t offset = 0, bytes = 0;
};

/// Finds the tensors of one file, sans-I/O: requests bytes and is fed with them until it needs no more.
class IndexReader {
 public:
  virtual ~IndexReader() = default;
  virtual Need need() const = 0;
  /// Bytes of the file from need().offset on; if fewer than need().bytes, the rest is requested again.
  virtual Status feed(std::span<const uint8_t> bytes) = 0;
  /// Call once, after need() is 0 bytes.
  virtual Result<FileIndex> finish() = 0;
  /// Whether the file is a whole model, so that no other file belongs to it.
  virtual bool is_whole_model() const noexcept { return false; }
};

/// Reader of files that start with everything it needs. It is fed from byte 0 on, more with each call.
class HeaderReader : public IndexReader {
 public:
  explicit HeaderReader(uint64_t file_bytes) : file_bytes_(file_bytes) {}
  Need need() const final { return {0, wanted_}; }
  Status feed(std::span<const uint8_t> prefix) final;
  Result<FileIndex> finish() final { return std::move(index_); }

 protected:
  uint64_t file_bytes() const noexcept { return file_bytes_; }
  /// Bytes from the start that read() needs, judging by `prefix`, at most the file; 0: the prefix is enough.
  virtual Result<uint64_t> wanted(std::span<const uint8_t> prefix) const = 0;
  virtual Result<FileIndex> read(std::span<const uint8_t> prefix) const = 0;

 private:
  const uint64_t file_bytes_;
  uint64_t wanted_ = 1;
  FileIndex index_;
};

/// What a reader is chosen by. `prefix` and `name` are the caller's.
struct FileStart {
  std::string_view name;
  uint64_t bytes = 0;               // total
  std::span<const uint8_t> prefix;  // its first bytes
};

/// A readable format: its name, its extensions, its reader, and what its models are like.
struct Format {
  std::string_view name;
  std::string_view title;                        // display name
  std::span<const std::string_view> extensions;  // ".gguf"; the usual one first
  /// Extensions of companion files that only have values.
  std::span<const std::string_view> data_extensions = {};

  bool (*looks_like)(std::span<const uint8_t> prefix) noexcept;
  std::unique_ptr<IndexReader> (*open)(const FileStart& file);
  /// Checks that several files, in the order of their parts, are one model; null: any are. Errors: file-invalid,
  /// tensor-missing, tensor-duplicate.
  Status (*check_files)(std::span<const FileIndex> files) = nullptr;

  // ---- properties of its models; formats with tensors under Hugging Face names keep the defaults

  /// A graph of operators: outputs keep the graph with other nodes, and a runtime computes layers.
  bool has_graph = false;
  /// Tensor names and head order are llama.cpp's.
  bool has_ggml_names = false;
  /// Its metadata replaces config.json; weights are never in a checkpoint format's layout.
  bool carries_config = false;
  /// config.json and tokenizer next to the weights belong to the model.
  bool has_sibling_files = true;
  /// Matrices get ".weight" behind their name if it does not tell what they are.
  bool adds_weight_suffix = false;
};

/// All formats, in the order of formats.def.
std::span<const Format* const> formats() noexcept;

/// The format of a file by its first bytes, else by extension, else the first one, whose reader reports the error.
const Format& format_of(std::string_view name, std::span<const uint8_t> prefix) noexcept;

}  // namespace wasmquant
