// A reader that asks for the end of the archive, the directory, then the header of each entry.
#include "formats/numpy/npz.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/json.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/numpy/npy.h"
#include "formats/tensor_name.h"

namespace wasmquant::npz {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint64_t kMaxComment = 65535;
constexpr uint16_t kEncrypted = 1, kSizesFollow = 8;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint32_t kIn64 = 0xFFFFFFFF;
/// First read of an entry: local header, name, and the header of most arrays.
constexpr uint64_t kEntryGuess = 1024;

uint64_t number(std::span<const uint8_t> bytes, uint64_t at, uint64_t width) {
  uint64_t value = 0;
  for (uint64_t i = 0; i < width; ++i) value |= uint64_t{bytes[at + i]} << (8 * i);
  return value;
}
uint32_t u32(std::span<const uint8_t> bytes, uint64_t at) { return static_cast<uint32_t>(number(bytes, at, 4)); }
uint16_t u16(std::span<const uint8_t> bytes, uint64_t at) { return static_cast<uint16_t>(number(bytes, at, 2)); }

std::string_view text(std::span<const uint8_t> bytes, uint64_t at, uint64_t length) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, static_cast<size_t>(length)};
}

Error invalid(std::string_view where, std::string message) {
  return {ErrorCode::file_invalid, shown_name(where), std::move(message)};
}

// Replaces 32-bit fields that are all ones by the 64-bit values in extra field 1, which are in the same order.
bool read_zip64_sizes(std::span<const uint8_t> extra, std::initializer_list<uint64_t*> fields) {
  std::span<const uint8_t> wide;
  while (extra.size() >= 4) {
    const uint64_t length = u16(extra, 2);
    if (length > extra.size() - 4) return false;
    if (u16(extra, 0) == 1) {
      if (!wide.empty()) return false;
      wide = extra.subspan(4, length);
    }
    extra = extra.subspan(4 + length);
  }
  for (uint64_t* field : fields) {
    if (*field != kIn64) continue;
    if (wide.size() < 8) return false;
    *field = number(wide, 0, 8);
    wide = wide.subspan(8);
  }
  return true;
}

// Rejects names that could escape a folder if a program used them as paths.
Status check_name(std::string_view name) {
  if (!json::is_utf8(name) || name.find('\0') != std::string_view::npos) return invalid(name, "the name is not UTF-8");
  bool leaves = name.starts_with('/') || name.find('\\') != std::string_view::npos || name.find(':') == 1;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    leaves |= name.substr(at, end - at) == "..";
    at = end + 1;
  }
  if (leaves) return invalid(name, "the name is a path out of the archive, which numpy.savez does not write");
  if (name.size() > 4 && name.ends_with(".npy")) return {};
  return error_at(ErrorCode::format_unknown, shown_name(name),
                  "is not a .npy entry, so this zip file is not an .npz archive; for a PyTorch checkpoint, use its "
                  ".safetensors file or save it again with safetensors.torch.save_file");
}

}  // namespace

bool looks_like_zip(std::span<const uint8_t> prefix) noexcept {
  return prefix.size() >= 4 && (u32(prefix, 0) == kLocal || u32(prefix, 0) == kEnd);
}

Reader::Reader(uint64_t file_bytes) {
  need_.bytes = std::min(file_bytes, kEnd64Bytes + kLocator64Bytes + kEndBytes + kMaxComment);
  need_.offset = file_bytes - need_.bytes;
}

Status Reader::feed(std::span<const uint8_t> bytes) {
  if (bytes.size() < need_.bytes) return {};
  switch (stage_) {
    case Stage::end:
      return read_end(bytes.first(need_.bytes));
    case Stage::directory:
      return read_directory(bytes.first(need_.bytes));
    case Stage::entries:
      return read_entry(bytes.first(need_.bytes));
  }
  return {};
}

Status Reader::read_end(std::span<const uint8_t> bytes) {
  uint64_t at = bytes.size() < kEndBytes ? 0 : bytes.size() - kEndBytes + 1;
  while (at > 0 && (u32(bytes, at - 1) != kEnd || at - 1 + kEndBytes + u16(bytes, at + 19) != bytes.size())) --at;
  if (at == 0)
    return error_at(ErrorCode::file_truncated, "",
                    "the archive has no directory at its end; was it copied completely?");
  --at;
  uint64_t entries = u16(bytes, at + 10), size = u32(bytes, at + 12), begin = u32(bytes, at + 16);
  bool is_one = u16(bytes, at + 4) == 0 && u16(bytes, at + 6) == 0 && u16(bytes, at + 8) == entries;
  if (at >= kLocator64Bytes + kEnd64Bytes && u32(bytes, at - kLocator64Bytes) == kLocator64) {
    const uint64_t wide = at - kLocator64Bytes - kEnd64Bytes;
    if (u32(bytes, wide) != kEnd64 || number(bytes, at - 12, 8) != need_.offset + wide)
      return invalid("", "the end record of the zip64 directory is not before its locator");
    is_one = u32(bytes, wide + 16) == 0 && u32(bytes, wide + 20) == 0;
    entries = number(bytes, wide + 32, 8);
    is_one &= number(bytes, wide + 24, 8) == entries;
    size = number(bytes, wide + 40, 8);
    begin = number(bytes, wide + 48, 8);
    at = wide;
  }
  if (!is_one) return invalid("", "the archive spans several disks, which numpy.savez does not write");
  const uint64_t end = need_.offset + at;
  if (size > end || begin != end - size)
    return invalid("", text_of("the directory of {} bytes from byte {} does not end at byte {}", size, begin, end));
  if (size > kMaxDirectoryBytes)
    return error_at(ErrorCode::file_too_large, "", "the directory has {} bytes; the limit is {}", size,
                    kMaxDirectoryBytes);
  if (entries == 0 || entries > size / kCentralBytes)
    return invalid("", text_of("the directory of {} bytes says it has {} entries", size, entries));
  directory_begin_ = begin;
  entry_count_ = entries;
  stage_ = Stage::directory;
  need_ = {begin, size};
  return {};
}

Status Reader::read_directory(std::span<const uint8_t> bytes) {
  List<NpzMember> entries;
  uint64_t at = 0, inflated = 0;
  for (uint64_t e = 0; e < entry_count_; ++e) {
    if (bytes.size() - at < kCentralBytes || u32(bytes, at) != kCentral)
      return invalid(text_of("byte {}", directory_begin_ + at), text_of("entry {} of the directory is missing", e));
    const uint64_t name = u16(bytes, at + 28), extra = u16(bytes, at + 30), comment = u16(bytes, at + 32);
    if (name + extra + comment > bytes.size() - at - kCentralBytes)
      return invalid(text_of("byte {}", directory_begin_ + at), "an entry runs past the end of the directory");
    NpzMember& entry = entries.emplace_back();
    entry.name = text(bytes, at + kCentralBytes, name);
    TRY_VOID(check_name(entry.name));
    entry.flags = u16(bytes, at + 8);
    entry.method = u16(bytes, at + 10);
    entry.crc = u32(bytes, at + 16);
    entry.packed = u32(bytes, at + 20);
    entry.bytes = u32(bytes, at + 24);
    entry.begin = u32(bytes, at + 42);
    if (!read_zip64_sizes(bytes.subspan(at + kCentralBytes + name, extra), {&entry.bytes, &entry.packed, &entry.begin}))
      return invalid(entry.name, "its zip64 sizes are missing or appear twice");
    if ((entry.flags & kEncrypted) != 0) return invalid(entry.name, "is encrypted; save it without a password");
    if (entry.method != kStored && entry.method != kDeflated)
      return invalid(entry.name, text_of("is compressed by method {}; numpy writes 0, stored, and 8, deflated",
                                         uint32_t{entry.method}));
    if (entry.method == kStored ? entry.packed != entry.bytes : entry.bytes / kMaxRatio > entry.packed)
      return invalid(entry.name,
                     text_of("{} bytes in the archive cannot be {} bytes of an array", entry.packed, entry.bytes));
    if (entry.method == kDeflated) {
      if (entry.bytes > kMaxInflatedBytes - inflated)
        return error_at(ErrorCode::file_too_large, shown_name(entry.name),
                        "with this one, the archive's compressed arrays need more than {} bytes of memory; save them "
                        "with numpy.savez, without compression",
                        kMaxInflatedBytes);
      inflated += entry.bytes;
    }
    at += kCentralBytes + name + extra + comment;
  }
  if (at != bytes.size()) return invalid("", "the directory has more bytes than entries");
  if (const auto twice =
          first_repeated(entries.size(), [&](uint32_t e) -> std::string_view { return entries[e].name; }))
    return error_at(ErrorCode::tensor_duplicate, shown_name(entries[*twice].name), "appears twice in the archive");
  const auto before = [&](uint32_t a, uint32_t b) { return entries[a].begin < entries[b].begin; };
  for (const uint32_t e : sorted_order(entries.size(), before)) entries_.push_back(std::move(entries[e]));
  stage_ = Stage::entries;
  for (size_t e = 0; e < entries_.size(); ++e) {
    const uint64_t end = e + 1 < entries_.size() ? entries_[e + 1].begin : directory_begin_;
    const NpzMember& entry = entries_[e];
    if (entry.begin > end || end - entry.begin < kLocalBytes || end - entry.begin - kLocalBytes < entry.packed)
      return invalid(entry.name, "its bytes overlap those of the next entry, or the directory");
  }
  ask_for_entry();
  return {};
}

void Reader::ask_for_entry() {
  if (next_ == entries_.size()) {
    need_ = {};
    return;
  }
  const NpzMember& entry = entries_[next_];
  need_ = {entry.begin, std::min(directory_begin_ - entry.begin, kEntryGuess)};
}

Status Reader::read_entry(std::span<const uint8_t> bytes) {
  const NpzMember& entry = entries_[next_];
  if (bytes.size() < kLocalBytes || u32(bytes, 0) != kLocal) return invalid(entry.name, "has no local header");
  const uint64_t name = u16(bytes, 26), extra = u16(bytes, 28), begin = kLocalBytes + name + extra;
  const uint64_t limit = (next_ + 1 < entries_.size() ? entries_[next_ + 1].begin : directory_begin_) - entry.begin;
  if (begin > limit || entry.packed > limit - begin)
    return invalid(entry.name, "its bytes overlap those of the next entry, or the directory");
  if (bytes.size() < begin) {
    need_.bytes = begin;
    return {};
  }
  uint64_t packed = u32(bytes, 18), size = u32(bytes, 22);
  const bool has_sizes = read_zip64_sizes(bytes.subspan(kLocalBytes + name, extra), {&size, &packed});
  const bool sizes_follow = (u16(bytes, 6) & kSizesFollow) != 0;
  if (text(bytes, kLocalBytes, name) != entry.name || u16(bytes, 6) != entry.flags || u16(bytes, 8) != entry.method ||
      !has_sizes || (!sizes_follow && (packed != entry.packed || size != entry.bytes)))
    return invalid(entry.name, "its own header and the directory differ in name, sizes or method");
  const uint64_t data = entry.begin + begin;
  if (entry.method == kDeflated) {
    deflated_.push_back({entry.name, data, data + entry.packed, entry.bytes, entry.crc});
  } else {
    const auto array = bytes.subspan(begin, std::min<uint64_t>(bytes.size() - begin, entry.packed));
    const auto in_entry = [&](Error error) {
      error.where = text_of("{}: {}", shown_name(entry.name), error.where);
      return error;
    };
    // every .npy has at least 12 bytes, enough for the length field of version 2
    if (array.size() < entry.packed && array.size() < 12) {
      need_.bytes = begin + std::min<uint64_t>(entry.packed, 12);
      return {};
    }
    auto missing = npy::need(array, entry.packed);
    if (!missing) return in_entry(missing.error());
    if (*missing > 0) {
      need_.bytes = begin + *missing;
      return {};
    }
    auto tensor = npy::read_tensor(array, entry.packed);
    if (!tensor) return in_entry(tensor.error());
    tensor->name = entry.name.substr(0, entry.name.size() - 4);
    tensor->begin += data;
    tensor->end += data;
    tensors_.push_back(std::move(*tensor));
  }
  ++next_;
  ask_for_entry();
  return {};
}

}  // namespace wasmquant::npz
