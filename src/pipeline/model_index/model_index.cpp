// Feeding of headers, order and completeness of files, and the tables of tensors.
#include "pipeline/model_index/model_index.h"

#include <algorithm>

#include "config/match/layer_type.h"
#include "core/json_text.h"
#include "core/list.h"
#include "core/message.h"
#include "core/order.h"
#include "pipeline/model_index/source_names.h"

namespace wasmquant {
namespace {

constexpr std::string_view kConfigFile = "config.json";

Error in_file(Error error, const std::string& file) {
  error.where = error.where.empty() ? file : text_of("{}: {}", file, error.where);
  return error;
}

struct NameOfTensor {
  const List<ModelTensor>& tensors;
  std::string_view operator()(uint32_t index) const { return tensors[index].stored.name; }
};

}  // namespace

Result<List<std::string>> ModelIndex::read_shard_map(std::string_view text) {
  TRY(map, safetensors::read_shard_map(text));
  shard_map_ = std::move(map);
  shard_map_text_ = std::move(shard_map_->text);
  return shard_map_->files;
}

uint32_t ModelIndex::add_file(std::string name, uint64_t bytes) {
  files_.push_back({std::move(name), bytes, false});
  indexes_.emplace_back();
  return static_cast<uint32_t>(files_.size() - 1);
}

Result<Need> ModelIndex::feed(uint32_t file, std::span<const uint8_t> bytes) {
  auto next = feed_reader(file, bytes);
  if (next) return *next;
  reader_.reset();
  return in_file(std::move(next.error()), files_[file].name);
}

Result<Need> ModelIndex::feed_reader(uint32_t file, std::span<const uint8_t> bytes) {
  if (!reader_ || reading_ != file) {
    const Format& format = format_of(files_[file].name, bytes);
    if (file != 0 && &format != format_)
      return error_at(ErrorCode::format_unknown, "", "is not a {} file, but the other files are",
                      format_->extensions.front());
    reader_ = format.open({files_[file].name, files_[file].bytes, bytes});
    if (file != 0 && reader_->is_whole_model())
      return error_at(ErrorCode::format_unknown, "", "is a whole model; open it without other files");
    reading_ = file;
    format_ = &format;
    if (reader_->need().offset != 0) return reader_->need();  // the reader first needs other bytes
  }
  if (reader_->need().bytes != 0) TRY_VOID(reader_->feed(bytes));
  const Need next = reader_->need();
  if (next.bytes != 0) return next;
  TRY(index, reader_->finish());
  indexes_[file] = std::move(index);
  files_[file].is_read = true;
  reader_.reset();
  return next;
}

// The model's own file comes first, then one file per location.
Status ModelIndex::finish_graph() {
  onnx_ = std::make_unique<OnnxIndex>(indexes_.front().details);
  const onnx::Model& model = onnx_->model();
  for (uint32_t l = 0; l < model.locations.size(); ++l) {
    if (l + 1 >= files_.size())
      return error_at(ErrorCode::state_invalid, model.locations[l], "this file with external data was not added");
    if (Status inside = onnx::check_external(model, model.locations[l], files_[l + 1].bytes); !inside)
      return std::move(inside.error());
  }
  list_graph_tensors();
  if (model.quantized_nodes > 0)
    diagnostics_.push_back({Severity::note, "quantized-already", "",
                            text_of("{} nodes of this model quantize, dequantize or work on codes; weights are decoded "
                                    "and quantized again where their operators are known, activations stay",
                                    model.quantized_nodes),
                            ""});
  return {};
}

void ModelIndex::list_graph_tensors() {
  const onnx::Model& model = onnx_->model();
  onnx_tensors_ = onnx_->tensors();
  for (const OnnxTensor& listed : onnx_tensors_) {
    const onnx::Tensor& source = model.tensors[listed.tensor];
    ModelTensor& tensor = tensors_.emplace_back();
    const auto [file, begin] = model.place_of(source);
    tensor.file = file;
    tensor.stored = {std::string(source.name), listed.dtype, source.shape, begin, begin + (source.end - source.begin)};
    tensor.layer = listed.weight != nullptr ? listed.weight->layer : std::string(layer_name_of(source.name).layer);
    if (listed.weight != nullptr) tensor.layer_type = listed.weight->layer_type;
  }
  by_name_ = sorted_by_name(tensors_.size(), NameOfTensor{tensors_});
}

void ModelIndex::set_codes(uint32_t tensor, std::shared_ptr<const StoredWeight> codes, uint32_t file, uint64_t begin,
                           uint64_t end) {
  ModelTensor& own = tensors_[tensor];
  own.quantized = std::move(codes);
  own.file = file;
  own.stored.begin = begin;
  own.stored.end = end;
}

ModelIndex ModelIndex::with_graph(std::shared_ptr<const FileDetails> graph) const {
  ModelIndex out = with_tensors({});
  out.onnx_ = std::make_unique<OnnxIndex>(std::move(graph));
  out.list_graph_tensors();
  return out;
}

void ModelIndex::set_sibling_file(std::string name, std::string bytes) {
  if (name == kConfigFile) config_.reset();
  sibling_files_.emplace_back(std::move(name), std::move(bytes));
}

void ModelIndex::replace_config(std::string text) {
  config_.reset();
  for (auto& [name, bytes] : sibling_files_)
    if (name == kConfigFile) bytes = std::move(text);
}

void ModelIndex::forget_metadata(std::string_view key) {
  for (FileIndex& index : indexes_) {
    List<std::pair<std::string, std::string>> kept;
    for (auto& entry : index.metadata)
      if (entry.first != key) kept.push_back(std::move(entry));
    index.metadata = std::move(kept);
  }
}

const Result<json::Value>& ModelIndex::folder_config() const {
  if (config_ == nullptr) {
    const std::string_view text = folder_config_text();
    config_ = std::make_shared<const Result<json::Value>>(text.empty() ? Result<json::Value>(json::Value())
                                                                       : json::parse(text, json::kPython));
  }
  return *config_;
}

const Result<json::Value>& ModelIndex::config() const {
  static const Result<json::Value> none = json::Value();
  return format_->has_sibling_files ? folder_config() : none;
}

std::string_view ModelIndex::folder_config_text() const noexcept { return file_beside(kConfigFile); }

std::string_view ModelIndex::sibling_file(std::string_view name) const noexcept {
  return name == kConfigFile && !format_->has_sibling_files ? std::string_view() : file_beside(name);
}

std::string_view ModelIndex::file_beside(std::string_view name) const noexcept {
  for (const auto& [known, bytes] : sibling_files_)
    if (known == name) return bytes;
  return {};
}

List<NamedPart> ModelIndex::named_parts() const {
  List<NamedPart> parts;
  for (size_t f = 0; f < files_.size(); ++f) parts.push_back({files_[f].name, &indexes_[f].part});
  return parts;
}

List<std::string> ModelIndex::missing_parts() const {
  if (shard_map_) return {};
  const List<NamedPart> parts = named_parts();
  return wasmquant::missing_parts({parts.data(), parts.size()});
}

// An index file says which files there are, even if their names say otherwise.
Status ModelIndex::order_files() {
  for (uint32_t f = 0; f < files_.size(); ++f) file_order_.push_back(f);
  if (shard_map_) return {};
  const List<NamedPart> parts = named_parts();
  TRY(order, order_of_parts({parts.data(), parts.size()}));
  List<File> files;
  List<FileIndex> indexes;
  for (const uint32_t f : order) {
    files.push_back(std::move(files_[f]));
    indexes.push_back(std::move(indexes_[f]));
  }
  files_ = std::move(files);
  indexes_ = std::move(indexes);
  file_order_ = std::move(order);
  return {};
}

Status ModelIndex::finish() {
  if (format_->has_graph && files_.front().is_read) {
    for (uint32_t f = 0; f < files_.size(); ++f) file_order_.push_back(f);
    return finish_graph();
  }
  for (const File& file : files_)
    if (!file.is_read) return error_at(ErrorCode::state_invalid, file.name, "its header was not read");
  TRY_VOID(order_files());
  if (format_->check_files != nullptr) TRY_VOID(format_->check_files({indexes_.begin(), indexes_.end()}));
  if (shard_map_) {
    List<std::string> unmapped;
    TRY_VOID(safetensors::check_shards(*shard_map_, indexes_, unmapped));
    for (std::string& name : unmapped) {
      diagnostics_.push_back({Severity::warning, "tensor-unmapped", std::move(name),
                              "the index file does not mention this tensor", "it is kept, and the new index lists it"});
    }
  }
  size_t count = 0;
  for (const FileIndex& index : indexes_) count += index.tensors.size();
  tensors_.reserve(count);
  for (uint32_t f = 0; f < files_.size(); ++f) {
    for (StoredTensor& stored : indexes_[f].tensors) {
      if (strips_prefixes_) stored.name = unwrapped_name(stored.name);
      ModelTensor& tensor = tensors_.emplace_back();
      tensor.file = f;
      tensor.layer = layer_name_of(stored.name).layer;
      tensor.layer_type = layer_type_of(stored.name, stored.shape);
      tensor.stored = std::move(stored);
    }
    indexes_[f].tensors = List<StoredTensor>();
  }
  by_name_ = sorted_by_name(tensors_.size(), NameOfTensor{tensors_});
  for (size_t i = 1; i < by_name_.size(); ++i) {
    const ModelTensor &first = tensors_[by_name_[i - 1]], &second = tensors_[by_name_[i]];
    if (first.stored.name != second.stored.name) continue;
    return error_at(ErrorCode::tensor_duplicate, first.stored.name, "is in both {} and {}; open the files of one model",
                    files_[first.file].name, files_[second.file].name);
  }
  mark_input_major();
  for (uint32_t i = 0; i < tensors_.size() && !format_->carries_config; ++i)
    if (InlineTensors::is_one(tensors_[i].stored) && !tells_nothing_new(tensors_[i])) inline_tensors_.add(i);
  for (ModelTensor& tensor : tensors_) {  // a bias has its weight's class
    if (layer_name_of(tensor.stored.name).role != TensorRole::bias) continue;
    if (const ModelTensor* weight = find(text_of("{}.weight", tensor.layer))) tensor.layer_type = weight->layer_type;
  }
  return {};
}

// A shape stored with words of codes, at most 16 a word (int2): with 16 groups or more, one multiple of their number ends in the
// last word, which is the row's length. Large models have thousands of such tensors, each a read.
bool ModelIndex::tells_nothing_new(const ModelTensor& tensor) const {
  constexpr std::string_view kShape = ".weight_shape";
  const std::string_view name = tensor.stored.name;
  if (!name.ends_with(kShape)) return false;
  const ModelTensor* scale = find(text_of("{}.weight_scale", name.substr(0, name.size() - kShape.size())));
  return scale != nullptr && scale->stored.shape.size() == 2 && scale->stored.shape[1] >= 16;
}

// GPT-2's Conv1D stores [in, out], as the bias length shows; square matrices follow others of the same name.
void ModelIndex::mark_input_major() {
  const auto part_of = [](const ModelTensor& tensor) {
    return std::string_view(tensor.layer).substr(tensor.layer.rfind('.') + 1);
  };
  List<std::string> names;
  for (const ModelTensor& tensor : tensors_) {
    const std::vector<uint64_t>& shape = tensor.stored.shape;
    if (tensor.layer_type != "Linear" || shape[0] == shape[1] || !tensor.stored.name.ends_with(".weight")) continue;
    if (!is_quantizable(tensor.stored.dtype)) continue;  // axes of codes are not those of weights
    const ModelTensor* bias = find(text_of("{}.bias", tensor.layer));
    if (bias == nullptr || bias->stored.shape.size() != 1 || bias->stored.shape[0] != shape[1]) continue;
    const std::string_view part = part_of(tensor);
    if (std::find(names.begin(), names.end(), part) == names.end()) names.emplace_back(part);
  }
  for (ModelTensor& tensor : tensors_)
    if (tensor.layer_type == "Linear" && std::find(names.begin(), names.end(), part_of(tensor)) != names.end())
      tensor.layer_type = kConv1D;
}

ModelIndex ModelIndex::with_tensors(List<ModelTensor> tensors) const {
  ModelIndex out;
  out.files_ = files_;
  for (const FileIndex& index : indexes_) out.indexes_.emplace_back().metadata = index.metadata;
  out.sibling_files_ = sibling_files_;
  out.config_ = config_;
  out.is_sharded_ = is_sharded();
  out.shard_map_text_ = shard_map_text_;
  out.format_ = format_;
  out.tensors_ = std::move(tensors);
  out.by_name_ = sorted_by_name(out.tensors_.size(), NameOfTensor{out.tensors_});
  return out;
}

const ModelTensor* ModelIndex::find(std::string_view name) const noexcept {
  const size_t place = place_of(name, by_name_, NameOfTensor{tensors_});
  if (place == by_name_.size()) return nullptr;
  const ModelTensor& found = tensors_[by_name_[place]];
  return found.stored.name == name ? &found : nullptr;
}

List<const ModelTensor*> ModelIndex::named(std::string_view prefix) const {
  List<const ModelTensor*> found;
  for (size_t place = place_of(prefix, by_name_, NameOfTensor{tensors_}); place < by_name_.size(); ++place) {
    const ModelTensor& tensor = tensors_[by_name_[place]];
    if (!tensor.stored.name.starts_with(prefix)) break;
    found.push_back(&tensor);
  }
  return found;
}

Status ModelIndex::set_inline_bytes(uint32_t tensor, std::string bytes) {
  if (tensor >= tensors_.size()) return error_at(ErrorCode::argument_invalid, "tensor", "no such tensor");
  tensors_[tensor].value = InlineTensors::scalar_of(tensors_[tensor].stored, bytes);
  return inline_tensors_.set(tensor, tensors_[tensor].stored, std::move(bytes));
}

std::optional<std::string_view> ModelIndex::inline_bytes(std::string_view name) const noexcept {
  const ModelTensor* const tensor = find(name);
  if (tensor == nullptr) return std::nullopt;
  return inline_tensors_.bytes(static_cast<uint32_t>(tensor - tensors_.begin()));
}

std::string ModelIndex::tensors_json(size_t first, size_t last) const {
  std::string text;
  json::TextWriter out(text);
  out.begin('[');
  for (size_t i = first; i < std::min(last, tensors_.size()); ++i) {
    const ModelTensor& tensor = tensors_[i];
    out.begin('{');
    out.member("name", std::string_view(tensor.stored.name));
    out.member("dtype", info_of(tensor.stored.dtype).name);
    out.member("shape", std::span<const uint64_t>(tensor.stored.shape));
    out.member("bytes", tensor.stored.end - tensor.stored.begin);
    out.member("file", uint64_t{tensor.file});
    out.member("begin", tensor.stored.begin);
    out.member("end", tensor.stored.end);
    out.member("layer", std::string_view(tensor.layer));
    out.member("layerType", std::string_view(tensor.layer_type));
    out.end('}');
  }
  out.end(']');
  return text;
}

uint64_t ModelIndex::file_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.bytes;
  for (const FileIndex& archive : indexes_)
    for (const DeflatedFile& inflated : archive.deflated) bytes -= inflated.bytes;
  return bytes;
}

json::Value ModelIndex::to_json() const {
  json::Array metadata;  // of all parts
  for (const FileIndex& index : indexes_)
    for (const auto& [key, value] : index.metadata) {
      json::Array& pair = metadata.emplace_back(json::Array{}).items();
      pair.emplace_back(key);
      pair.emplace_back(value);
    }
  json::Value out;
  out.set("format", format_->name);
  json::Array files;
  for (const uint32_t file : file_order_) files.emplace_back(int64_t{file});
  out.set("files", std::move(files));
  out.set("bytes", file_bytes());
  out.set("tensors", static_cast<uint64_t>(tensors_.size()));
  out.set("metadata", std::move(metadata));  // pairs, because a key may be any text, even "__proto__"
  out.set("diagnostics", wasmquant::to_json(diagnostics_));
  json::Array wanted;
  for (const uint32_t tensor : inline_tensors_.wanted()) wanted.emplace_back(int64_t{tensor});
  out.set("inlineTensors", std::move(wanted));
  return out;
}

}  // namespace wasmquant
