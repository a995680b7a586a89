// Header JSON to tensors, event by event: a header may hold half a million tensors in 100 MB, so no tree is built.
//   {"__metadata__": {"key": "text", …} | null,
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24], …ignored…}, …}
#include "formats/safetensors/safetensors_header.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_events.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/safetensors/safetensors.h"
#include "formats/tensor_name.h"

namespace wasmquant::safetensors {
namespace {

using json::Event;
using json::EventKind;

// Array libraries stop at 64 dimensions; keeps a header of "[1,1,1,…]" from growing to four times its size.
constexpr size_t kMaxRank = 255;

enum Field : uint8_t { dtype, shape, data_offsets, unknown };
constexpr std::string_view kFieldNames[] = {"dtype", "shape", "data_offsets"};

// Old spellings, read but never written.
std::optional<StorageDtype> dtype_of(std::string_view name) {
  if (name == "E8M0") return StorageDtype::F8_E8M0;
  if (name == "FP4") return StorageDtype::F4;
  return storage_dtype_named(name);
}

std::string_view found(const Event& event) { return json::describe(event.kind); }

Error invalid_header(std::string_view where, std::string message) {
  return {ErrorCode::file_invalid, where, std::move(message)};
}

Error invalid_tensor(const StoredTensor& tensor, std::string message) {
  return invalid_header(shown_name(tensor.name), std::move(message));
}

// One tensor of the header; it may also be the array [dtype, shape, data_offsets], which the safetensors crate accepts.
class TensorEntry {
 public:
  // Whether the event belongs to an ignored value, up to the end of its container.
  bool skips(const Event& event) noexcept {
    if (skip_depth_ == 0) return false;
    if ((event.kind == EventKind::object_end || event.kind == EventKind::array_end) && event.depth < skip_depth_)
      skip_depth_ = 0;
    return true;
  }

  // The value itself: opens and closes.
  Status whole(const Event& event, const StoredTensor& tensor) {
    switch (event.kind) {
      case EventKind::object_begin:
      case EventKind::array_begin:
        is_array_ = event.kind == EventKind::array_begin;
        return {};
      case EventKind::object_end:
      case EventKind::array_end:
        for (uint8_t i = 0; i < unknown; ++i)
          if (!(seen_ & (1 << i))) return invalid_tensor(tensor, text_of("the field {} is missing", kFieldNames[i]));
        return {};
      default:
        return invalid_tensor(
            tensor, text_of("a tensor must be an object with dtype, shape and data_offsets, found {}", found(event)));
    }
  }

  // A key or value in it.
  Status member(const Event& event, StoredTensor& tensor) {
    if (event.kind == EventKind::key) {
      const auto name = std::find(std::begin(kFieldNames), std::end(kFieldNames), event.text);
      field_ = static_cast<Field>(name - std::begin(kFieldNames));
      return field_ == unknown ? Status() : see_field(tensor);
    }
    const bool closes = event.kind == EventKind::object_end || event.kind == EventKind::array_end;
    if (is_array_ && !closes) {
      if (item_ >= unknown) return invalid_tensor(tensor, "a tensor written as an array has 3 items, found more");
      field_ = static_cast<Field>(item_++);
      TRY_VOID(see_field(tensor));
    }
    if (field_ == unknown) {
      if (event.kind == EventKind::object_begin || event.kind == EventKind::array_begin) skip_depth_ = event.depth + 1;
      return {};
    }
    if (field_ == dtype) {
      if (event.kind != EventKind::string)
        return invalid_tensor(tensor, text_of("dtype must be a string, found {}", found(event)));
      const auto known = dtype_of(event.text);
      if (!known)
        return error_at(ErrorCode::dtype_unsupported, shown_name(tensor.name),
                        "dtype '{}' is not one of safetensors (names are case-sensitive)", shown_name(event.text));
      tensor.dtype = *known;
      return {};
    }
    if (event.kind == EventKind::array_begin) {
      offset_count_ = 0;
      return {};
    }
    if (event.kind != EventKind::array_end)
      return invalid_tensor(tensor,
                            text_of("{} must be an array of integers, found {}", kFieldNames[field_], found(event)));
    if (field_ == data_offsets && offset_count_ != 2)
      return invalid_tensor(tensor, text_of("data_offsets must have 2 items, found {}", uint32_t{offset_count_}));
    return {};
  }

  // A number of its shape or data_offsets.
  Status item(const Event& event, StoredTensor& tensor) {
    if (event.kind != EventKind::integer || event.is_negative)
      return invalid_tensor(tensor, text_of("{} must hold integers from 0 to 2^64 - 1, found {}", kFieldNames[field_],
                                            event.kind == EventKind::integer ? text_of("-{}", event.magnitude)
                                                                             : std::string(found(event))));
    if (field_ == shape) {
      if (tensor.shape.size() == kMaxRank)
        return invalid_tensor(tensor, text_of("shape has more than {} dimensions", kMaxRank));
      tensor.shape.push_back(event.magnitude);
      return {};
    }
    if (offset_count_ == 2) return invalid_tensor(tensor, "data_offsets must have 2 items, found more");
    (offset_count_++ == 0 ? tensor.begin : tensor.end) = event.magnitude;
    return {};
  }

 private:
  Status see_field(const StoredTensor& tensor) {
    const auto bit = static_cast<uint8_t>(1 << field_);
    if (seen_ & bit)
      return invalid_tensor(tensor, text_of("{} appears twice in this tensor; keep one", kFieldNames[field_]));
    seen_ |= bit;
    return {};
  }

  bool is_array_ = false;
  uint8_t seen_ = 0;          // one bit per Field
  uint8_t item_ = 0;          // items read of the array
  uint8_t offset_count_ = 0;  // items of the open data_offsets
  Field field_ = unknown;
  uint32_t skip_depth_ = 0;  // > 0: inside an ignored container, at this depth or deeper
};

class HeaderListener final : public json::Listener {
 public:
  Status on(const Event& event) override {
    if (entry_.skips(event)) return {};
    switch (event.depth) {
      case 0:
        if (event.kind == EventKind::object_begin || event.kind == EventKind::object_end) return {};
        return invalid_header(text_of("byte {}", event.byte),
                              text_of("the header must be a JSON object, found {}", found(event)));
      case 1:
        return in_metadata_ ? top_of_metadata(event) : top(event);
      case 2:
        return in_metadata_ ? metadata(event) : entry_.member(event, index_.tensors.back());
      default:
        return entry_.item(event, index_.tensors.back());
    }
  }

  Result<FileIndex> finish() {
    TRY_VOID(check_unique_names());
    TRY_VOID(check_unique_metadata());
    return std::move(index_);
  }

 private:
  // Depth 1: names and the values that open or replace a tensor.
  Status top(const Event& event) {
    if (event.kind != EventKind::key) return entry_.whole(event, index_.tensors.back());
    if (event.text != kMetadataName) {
      index_.tensors.emplace_back().name = event.text;
      entry_ = {};
      return {};
    }
    if (has_metadata_) return invalid_header(kMetadataName, "appears twice in the header; keep one");
    in_metadata_ = has_metadata_ = true;
    return {};
  }

  Status top_of_metadata(const Event& event) {
    if (event.kind == EventKind::object_begin) return {};
    if (event.kind != EventKind::object_end && event.kind != EventKind::null)
      return invalid_header(kMetadataName, text_of("must be an object of strings or null, found {}", found(event)));
    in_metadata_ = false;
    return {};
  }

  Status metadata(const Event& event) {
    auto& entries = index_.metadata;
    if (event.kind == EventKind::key) {
      entries.emplace_back(event.text, std::string());
    } else if (event.kind == EventKind::string) {
      entries.back().second = event.text;
    } else {
      return invalid_header(kMetadataName, text_of("the value of '{}' must be a string, found {}",
                                                   shown_name(entries.back().first), found(event)));
    }
    return {};
  }

  // Sorted once at the end: checking each name would be quadratic or need a second copy of every name.
  Status check_unique_names() const {
    const auto& tensors = index_.tensors;
    if (const auto twice =
            first_repeated(tensors.size(), [&](uint32_t i) -> std::string_view { return tensors[i].name; }))
      return error_at(ErrorCode::tensor_duplicate, shown_name(tensors[*twice].name),
                      "this name appears twice in the header (compared after unescaping)");
    return {};
  }
  Status check_unique_metadata() const {
    const auto& entries = index_.metadata;
    if (const auto twice =
            first_repeated(entries.size(), [&](uint32_t i) -> std::string_view { return entries[i].first; }))
      return invalid_header(kMetadataName,
                            text_of("the key '{}' appears twice; keep one", shown_name(entries[*twice].first)));
    return {};
  }

  FileIndex index_;
  bool has_metadata_ = false;
  bool in_metadata_ = false;
  TensorEntry entry_;  // of the last tensor
};

}  // namespace

Result<FileIndex> parse_header(std::string_view text, uint64_t first_byte) {
  // The header has a byte limit, so 2^32 nodes are out of reach. Ignored fields may nest as deep as serde allows.
  const json::Limits limits{.max_bytes = kMaxHeaderBytes, .max_depth = 128, .max_nodes = ~uint64_t{0}};
  HeaderListener listener;
  auto status = json::parse_events(text, limits, listener, first_byte);
  if (!status) {
    if (status.error().code == ErrorCode::json_invalid) status.error().code = ErrorCode::file_invalid;
    return std::move(status.error());
  }
  return listener.finish();
}

}  // namespace wasmquant::safetensors
