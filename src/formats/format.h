// The formats that models are read from. A format is a folder here with its reader and a function that returns its
// Format, plus its row in formats.def.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant {

/// Bytes of a file that its reader asks for. 0 bytes: it has all that it needs.
struct Need {
  uint64_t offset = 0, bytes = 0;
};

/// Finds the tensors of one file, sans-I/O: it says which bytes it wants and is fed with them, until it wants none.
class IndexReader {
 public:
  virtual ~IndexReader() = default;
  virtual Need need() const = 0;
  /// Bytes of the file from need().offset on; fewer than need().bytes are asked for again. Errors: the format's.
  virtual Status feed(std::span<const uint8_t> bytes) = 0;
  /// To be called once, when need() is of 0 bytes.
  virtual Result<FileIndex> finish() = 0;
  /// Whether the file is a whole model, beside which no other is opened.
  virtual bool is_whole_model() const noexcept { return false; }
};

/// A reader of files that begin with all that is to be known of them. It is fed from byte 0 on, more with each call.
class HeaderReader : public IndexReader {
 public:
  explicit HeaderReader(uint64_t file_bytes) : file_bytes_(file_bytes) {}
  Need need() const final { return {0, wanted_}; }
  Status feed(std::span<const uint8_t> prefix) final;
  Result<FileIndex> finish() final { return std::move(index_); }

 protected:
  uint64_t file_bytes() const noexcept { return file_bytes_; }
  /// Bytes from the start that read() needs, judged from `prefix`, and never beyond the file; 0: these are enough.
  virtual Result<uint64_t> wanted(std::span<const uint8_t> prefix) const = 0;
  virtual Result<FileIndex> read(std::span<const uint8_t> prefix) const = 0;

 private:
  const uint64_t file_bytes_;
  uint64_t wanted_ = 1;
  FileIndex index_;
};

/// A file whose reading begins.
struct FileStart {
  std::string_view name;
  uint64_t bytes = 0;               // in all
  std::span<const uint8_t> prefix;  // its first bytes
  bool is_inflated = false;         // it was inside another file of the model
};

struct Format {
  std::string_view name;
  std::string_view title;                        // as people write it
  std::span<const std::string_view> extensions;  // of its files, ".gguf"; the usual one first
  /// Of files beside them that hold values only.
  std::span<const std::string_view> data_extensions = {};

  bool (*looks_like)(std::span<const uint8_t> prefix) noexcept;
  std::unique_ptr<IndexReader> (*open)(const FileStart& file);
  /// Whether several files are one model; null: any are. Errors: file-invalid, tensor-missing, tensor-duplicate.
  Status (*check_files)(std::span<const FileIndex> files) = nullptr;

  // ---- what its models are like. A format of tensors under Hugging Face's names says nothing here.

  /// Operators stand between the tensors: outputs are the same graph with other nodes, and a runtime computes layers.
  bool has_graph = false;
  /// Tensors are named, and heads ordered, as llama.cpp has them.
  bool has_ggml_names = false;
  /// Its metadata says what config.json says of other models; weights never lie as a checkpoint format says.
  bool carries_config = false;
  /// config.json and tokenizer stand beside the weights and belong to the model.
  bool has_sibling_files = true;
  /// Its blocks can be calibrated: changed weights go back to where they were read.
  bool can_calibrate = true;
};

/// All of them, in the order of formats.def.
std::span<const Format* const> formats() noexcept;

/// The format of a file by its first bytes, else by the extension of its name. What is neither is taken for the first
/// format, whose reader says what is wrong with it.
const Format& format_of(std::string_view name, std::span<const uint8_t> prefix) noexcept;

}  // namespace wasmquant
