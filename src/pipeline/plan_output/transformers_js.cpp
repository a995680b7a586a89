#include "pipeline/plan_output/transformers_js.h"

#include "core/json_edit.h"
#include "pipeline/plan/onnx_file_name.h"

namespace wasmquant {
namespace {

constexpr const char* kTransformersJs = "transformers.js_config";
constexpr const char* kDevices = "device_config";
constexpr const char* kExternalData = "use_external_data_format";
constexpr const char* kDtype = "dtype";
constexpr const char* kCache = "kv_cache_dtype";

class FileDescription {
 public:
  FileDescription(std::string text, const json::Value& config, const OnnxOutput& output)
      : text_(std::move(text)),
        block_(config[kTransformersJs]),
        output_(output),
        name_(output.file.substr(output.file.rfind('/') + 1)),
        own_(read_onnx_file_name(name_)) {}

  Result<std::string> run() {
    const std::string_view top[] = {kTransformersJs};
    TRY_VOID(set_external_data());
    TRY_VOID(set_choices(top, block_, output_.present["declared"]));
    for (const auto& [device, block] : block_[kDevices].members()) {
      const std::string_view path[] = {kTransformersJs, kDevices, device};
      // The map of all files is true on every device.
      if (!block[kExternalData].is_null()) TRY_VOID(remove(path, kExternalData));
      TRY_VOID(set_choices(path, block, output_.present["declared"][kDevices][device.c_str()]));
    }
    return std::move(text_);
  }

 private:
  using Path = json::Path;

  static List<std::string_view> joined(Path path, std::string_view key) {
    List<std::string_view> all(path.begin(), path.end());
    all.push_back(key);
    return all;
  }
  Status set(Path path, std::string_view key, const json::Value& value) {
    const List<std::string_view> all = joined(path, key);
    TRY(edited, json::set_member(text_, {all.data(), all.size()}, json::write(value, 2)));
    text_ = std::move(edited);
    return {};
  }
  Status remove(Path path, std::string_view key) {
    const List<std::string_view> all = joined(path, key);
    TRY(edited, json::remove_member(text_, {all.data(), all.size()}));
    text_ = std::move(edited);
    return {};
  }

  const json::Value& files() const { return output_.present["files"]; }

  Status set_external_data() {
    json::Value counts;
    for (const auto& [file, count] : files().members())
      if (file != name_ && count.as_integer() > 0) counts.set(file.c_str(), count);
    if (output_.data_files > 0) counts.set(name_, static_cast<int64_t>(output_.data_files));
    const std::string_view top[] = {kTransformersJs};
    if (counts.is_null()) return block_[kExternalData].is_null() ? Status() : remove(top, kExternalData);
    if (block_.is_object() || block_.is_null()) return set(top, kExternalData, counts);
    json::Value outer;
    outer.set(kExternalData, std::move(counts));
    return set({}, kTransformersJs, outer);
  }

  // Keys that the source has, for the files that are there now. `declared`: what the folder says already.
  Status set_choices(Path path, const json::Value& block, const json::Value& declared) {
    if (!block[kDtype].is_null())
      TRY_VOID(set(path, kDtype, dtypes(declared[kDtype].is_null() ? block[kDtype] : declared[kDtype])));
    if (block[kCache].is_null()) return {};
    const json::Value types = cache_types(declared[kCache]);
    return types.is_null() ? remove(path, kCache) : set(path, kCache, types);
  }

  bool is_there(std::string_view part, std::string_view dtype) const {
    if (part == own_.stem && dtype == own_.dtype) return true;
    for (const auto& [file, count] : files().members()) {
      const OnnxFileName name = read_onnx_file_name(file);
      if (name.stem == part && name.dtype == dtype) return true;
    }
    return false;
  }

  // The first dtype of each part stays the one that is loaded.
  json::Value dtypes(const json::Value& before) const {
    if (before.is_string() && is_there(own_.stem, before.as_string())) return before;
    json::Value out;
    for (const auto& [part, dtype] : before.members())
      if (dtype.is_string() && is_there(part, dtype.as_string())) out.set(part.c_str(), dtype);
    if (out[std::string(own_.stem).c_str()].is_null()) out.set(std::string(own_.stem), std::string(own_.dtype));
    return out;
  }

  json::Value cache_types(const json::Value& declared) const {
    json::Value out = declared.is_object() ? declared : json::Value();
    if (!output_.cache_type.empty()) out.set(std::string(own_.dtype), std::string(output_.cache_type));
    return out;
  }

  std::string text_;
  const json::Value& block_;
  const OnnxOutput& output_;
  const std::string name_;
  const OnnxFileName own_;
};

}  // namespace

Result<std::string> describe_onnx_files(std::string text, const json::Value& config, const OnnxOutput& output) {
  return FileDescription(std::move(text), config, output).run();
}

}  // namespace wasmquant
