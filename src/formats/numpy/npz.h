// NumPy's .npz files, sans-I/O: a zip archive of .npy files. Reads the central directory and each array's header, never
// values. Stored entries are ranges of the file; deflated ones are returned for inflation.
// Source: PKWARE's APPNOTE 6.3 (4.3.7 local header, 4.3.12 central directory, 4.3.14 to 4.3.16 its end, zip64).
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/list.h"
#include "core/result.h"
#include "formats/format.h"

namespace wasmquant::npz {

inline constexpr uint64_t kMaxDirectoryBytes = 64 * 1024 * 1024;
/// Limit for all inflated arrays together, which are kept in memory.
inline constexpr uint64_t kMaxInflatedBytes = 1024ull * 1024 * 1024;
/// The highest compression ratio deflate can reach.
inline constexpr uint64_t kMaxRatio = 1032;

bool looks_like_zip(std::span<const uint8_t> prefix) noexcept;

/// Reads an archive: asks for its end, its directory, then each entry.
class Reader {
 public:
  explicit Reader(uint64_t file_bytes);

  Need need() const noexcept { return need_; }
  /// Bytes from need().offset on, need().bytes or more; if fewer, the rest is requested again. Errors: file-truncated,
  /// file-invalid, file-too-large, tensor-duplicate, and those of npy::read_tensor.
  Status feed(std::span<const uint8_t> bytes);

  /// When complete: stored arrays, named without ".npy", in file order.
  List<StoredTensor>& tensors() noexcept { return tensors_; }
  /// Deflated entries; they keep ".npy" because they are read as files.
  const List<DeflatedFile>& deflated() const noexcept { return deflated_; }

 private:
  struct NpzMember {
    std::string name;
    uint64_t begin = 0, packed = 0, bytes = 0;  // local header; compressed and uncompressed size
    uint32_t crc = 0;
    uint16_t method = 0, flags = 0;
  };
  Status read_end(std::span<const uint8_t> bytes);
  Status read_directory(std::span<const uint8_t> bytes);
  Status read_entry(std::span<const uint8_t> bytes);
  /// Called after entry `next_ - 1`.
  void ask_for_entry();

  uint64_t directory_begin_ = 0, entry_count_ = 0;
  Need need_;
  enum class Stage : uint8_t { end, directory, entries } stage_ = Stage::end;
  List<NpzMember> entries_;  // in order of offset
  size_t next_ = 0;
  List<StoredTensor> tensors_;
  List<DeflatedFile> deflated_;
};

}  // namespace wasmquant::npz
