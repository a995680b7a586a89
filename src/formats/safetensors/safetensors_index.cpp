// model.safetensors.index.json, parsed event by event (the largest known has half a million names), and its check
// against the files. Shard names become paths or URLs, so only plain file names are allowed.
#include "formats/safetensors/safetensors_index.h"

#include <algorithm>

#include "core/json_edit.h"
#include "core/json_events.h"
#include "core/list.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/safetensors/safetensors.h"
#include "formats/tensor_name.h"

namespace wasmquant::safetensors {
namespace {

using json::Event;
using json::EventKind;

constexpr json::Limits kLimits{.max_bytes = kMaxHeaderBytes, .max_depth = 64, .max_nodes = ~uint64_t{0}};
constexpr size_t kMaxShards = 10'000;
constexpr size_t kMaxFileNameBytes = 255;  // common file system limit

Error invalid(std::string_view where, std::string message) {
  return {ErrorCode::file_invalid, where, std::move(message)};
}

// A colon would make a drive letter, an NTFS stream or a URL scheme.
bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxFileNameBytes || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

class ShardMapListener final : public json::Listener {
 public:
  Status on(const Event& event) override {
    if (event.depth == 0) {
      if (event.kind == EventKind::object_begin || event.kind == EventKind::object_end) return {};
      return invalid(text_of("byte {}", event.byte), text_of("an index must be a JSON object, found {}", found(event)));
    }
    if (event.depth == 1 && event.kind == EventKind::key) {
      in_weight_map_ = event.text == "weight_map";
      if (in_weight_map_ && has_weight_map_) return invalid("weight_map", "appears twice in the index; keep one");
      has_weight_map_ |= in_weight_map_;
      return {};
    }
    if (!in_weight_map_) return {};
    if (event.depth == 1) {
      if (event.kind == EventKind::object_begin) begin_ = static_cast<size_t>(event.byte) + 1;
      if (event.kind == EventKind::object_end) end_ = static_cast<size_t>(event.byte);
      if (event.kind == EventKind::object_begin || event.kind == EventKind::object_end) return {};
      return invalid("weight_map", text_of("must be an object of tensor names and file names, found {}", found(event)));
    }
    if (event.kind == EventKind::key) {
      map_.tensors.emplace_back(event.text, 0);
      return {};
    }
    if (event.kind != EventKind::string)
      return invalid(shown_name(map_.tensors.back().first),
                     text_of("its file must be a string, found {}", found(event)));
    return add_file(event.text);
  }

  Result<ShardMap> finish(std::string_view text) {
    if (!has_weight_map_) return invalid("weight_map", "is missing; it maps tensor names to file names");
    const auto& tensors = map_.tensors;
    if (const auto twice =
            first_repeated(tensors.size(), [&](uint32_t i) -> std::string_view { return tensors[i].first; }))
      return error_at(ErrorCode::tensor_duplicate, shown_name(tensors[*twice].first),
                      "this name appears twice in the weight_map");
    // Shards sorted by name, which is their order in the model.
    List<std::string> files(sorted_.size());
    List<uint32_t> place(sorted_.size());
    for (uint32_t i = 0; i < sorted_.size(); ++i) {
      place[sorted_[i]] = i;
      files[i] = std::move(map_.files[sorted_[i]]);
    }
    map_.files = std::move(files);
    for (auto& [tensor, file] : map_.tensors) file = place[file];
    map_.text = text.substr(0, begin_);
    map_.text += text.substr(end_);
    return std::move(map_);
  }

 private:
  static std::string_view found(const Event& event) { return json::describe(event.kind); }

  Status add_file(std::string_view file) {
    auto& [tensor, number] = map_.tensors.back();
    // Adjacent entries usually share a file; otherwise search `sorted_`.
    if (map_.tensors.size() > 1) {
      const uint32_t last = map_.tensors[map_.tensors.size() - 2].second;
      if (map_.files[last] == file) {
        number = last;
        return {};
      }
    }
    const size_t place = place_of(file, sorted_, [&](uint32_t i) -> std::string_view { return map_.files[i]; });
    if (place < sorted_.size() && map_.files[sorted_[place]] == file) {
      number = sorted_[place];
      return {};
    }
    if (!is_plain_file_name(file))
      return invalid(
          shown_name(tensor),
          text_of("'{}' is not a plain file name: no folders, '..', colons or control characters, 1 to 255 bytes",
                  shown_name(file)));
    if (map_.files.size() == kMaxShards)
      return invalid(shown_name(tensor), text_of("the index names more than {} files", kMaxShards));
    number = static_cast<uint32_t>(map_.files.size());
    sorted_.insert(place, number);
    map_.files.emplace_back(file);
    return {};
  }

  ShardMap map_;
  List<uint32_t> sorted_;       // indices into map_.files, by name
  size_t begin_ = 0, end_ = 0;  // of the text between weight_map's braces
  bool in_weight_map_ = false;
  bool has_weight_map_ = false;
};

struct Place {
  std::string_view name;
  uint32_t file;
};

}  // namespace

Result<ShardMap> read_shard_map(std::string_view text) {
  ShardMapListener listener;
  TRY_VOID(json::parse_events(text, kLimits, listener));
  return listener.finish(text);
}

Status check_shards(const ShardMap& map, const List<FileIndex>& files, List<std::string>& unmapped) {
  if (files.size() != map.files.size())
    return error_at(ErrorCode::argument_invalid, "", "the index names {} files, {} were opened", map.files.size(),
                    files.size());
  List<Place> places;
  for (uint32_t file = 0; file < files.size(); ++file)
    for (const StoredTensor& tensor : files[file].tensors) places.push_back({tensor.name, file});
  const auto name_of = [&places](uint32_t i) { return places[i].name; };
  const List<uint32_t> order = sorted_by_name(places.size(), name_of);
  for (size_t i = 1; i < order.size(); ++i) {
    const Place &a = places[order[i - 1]], &b = places[order[i]];
    if (a.name == b.name)
      return error_at(ErrorCode::tensor_duplicate, shown_name(a.name), "this tensor is in {} and in {}",
                      map.files[a.file], map.files[b.file]);
  }

  List<bool> is_mapped(places.size());
  for (const auto& [name, file] : map.tensors) {
    const size_t place = place_of(name, order, name_of);
    const bool is_stored = place < order.size() && places[order[place]].name == name;
    if (!is_stored || places[order[place]].file != file)
      return error_at(
          ErrorCode::tensor_missing, shown_name(name), "the index maps it to {}{}", map.files[file],
          is_stored ? text_of(", but it is in {}", map.files[places[order[place]].file]) : ", which does not hold it");
    is_mapped[order[place]] = true;
  }
  for (size_t i = 0; i < places.size(); ++i)
    if (!is_mapped[i]) unmapped.emplace_back(places[i].name);
  return {};
}

std::string write_shard_map(const List<std::pair<std::string, std::string>>& tensor_to_file, uint64_t total_bytes,
                            std::string_view original) {
  constexpr std::string_view kMetadata[] = {"metadata"}, kTotalSize[] = {"metadata", "total_size"},
                             kWeightMap[] = {"weight_map"};
  const std::string total = text_of("{}", total_bytes);
  std::string map = "{";
  for (const auto& entry : tensor_to_file) {
    map += &entry == tensor_to_file.data() ? "\n  " : ",\n  ";
    json::append_quoted(map, entry.first);
    map += ": ";
    json::append_quoted(map, entry.second);
  }
  map += tensor_to_file.empty() ? "}" : "\n}";
  auto text = json::set_member(original.empty() ? "{}\n" : original, kTotalSize, total, kLimits);
  if (!text) {  // ignore metadata that is not an object
    json::Value metadata;
    metadata.set("total_size", total_bytes);
    text = json::set_member(original, kMetadata, json::write(metadata, 2), kLimits);
  }
  return std::move(*json::set_member(*text, kWeightMap, map, kLimits));
}

}  // namespace wasmquant::safetensors
