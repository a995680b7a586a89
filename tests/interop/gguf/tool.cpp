// GGUF files from the command line, for tests against llama.cpp's tools: what the reader sees, which types a recipe
// chooses, models of Hugging Face's layout converted without quantization, files split into parts.
//   gguf_tool dump FILE                    a line for each key and tensor
//   gguf_tool types FILE RECIPE [pure]     name and type a line; "-" for tensors that keep theirs
//   gguf_tool convert FOLDER OUT TYPE      f32, f16 or bf16; notes and warnings go to stderr
//   gguf_tool split FILE STEM MAX_BYTES    writes STEM-00001-of-0000N.gguf …
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <string>
#include <vector>

#include "core/message.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_split.h"
#include "formats/part_name.h"
#include "formats/safetensors/safetensors.h"
#include "gguf_conversion/conversion.h"
#include "gguf_conversion/recipe.h"
#include "kernels/kernels.h"

namespace {

using namespace wasmquant;
namespace fs = std::filesystem;

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "%s at %s: %s\n", std::string(name_of(error.code)).c_str(), error.where.c_str(),
               error.message.c_str());
  std::exit(1);
}
[[noreturn]] void fail(const std::string& message) { fail(Error(ErrorCode::argument_invalid, "", message)); }
template <class T>
T take(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}

// Its first `most` bytes; empty if there is no such file.
std::string read_file(const fs::path& path, uint64_t most = UINT64_MAX) {
  std::error_code missing;
  const uint64_t size = fs::file_size(path, missing);
  std::string bytes(missing ? 0 : std::min(size, most), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}
std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// As a host does it: more and more of the file's beginning.
gguf::Index read_index(const fs::path& path) {
  const uint64_t size = fs::file_size(path);
  for (std::string beginning;;) {
    const auto need = take(gguf::need(bytes_of(beginning), size));
    if (need.bytes == 0) return take(gguf::read_index(bytes_of(beginning), size));
    beginning = read_file(path, need.bytes);
  }
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text;
  for (const uint64_t dimension : shape) text += (text.empty() ? "" : "x") + std::to_string(dimension);
  return text;
}

void dump(const std::string& path) {
  const gguf::Index index = read_index(path);
  for (const gguf::KeyValue& entry : index.metadata.entries()) {
    std::printf("key %s %s ", entry.key.c_str(), std::string(name_of(entry.type)).c_str());
    if (entry.type == gguf::ValueType::text) {
      std::printf("%s\n", std::string(*index.metadata.find_text(entry.key)).c_str());
    } else if (entry.type == gguf::ValueType::array) {
      gguf::ArrayView array(&entry);
      std::printf("%s x %llu\n", std::string(name_of(array.element_type())).c_str(),
                  static_cast<unsigned long long>(array.count()));
    } else {
      std::printf("%g\n", *index.metadata.find_number(entry.key));
    }
  }
  for (const gguf::Tensor& tensor : index.tensors)
    std::printf("tensor %s %s %s %llu\n", tensor.name.c_str(), std::string(info_of(tensor.type).name).c_str(),
                shape_text(tensor.shape).c_str(), static_cast<unsigned long long>(tensor.begin));
}

List<conversion::TypeChoice> choose(conversion::Recipe recipe, bool pure, const gguf::Metadata& metadata,
                                    std::span<const conversion::RecipeTensor> tensors) {
  conversion::RecipeOptions options;
  options.pure = pure;
  return conversion::choose_types(recipe, conversion::facts_of(metadata), options, tensors);
}

conversion::Recipe recipe_of(const std::string& name) {
  const auto recipe = conversion::recipe_named(name);
  if (!recipe) fail("no such recipe: " + name);
  return *recipe;
}

void types(const std::string& path, const std::string& recipe, bool pure) {
  const gguf::Index index = read_index(path);
  std::vector<conversion::RecipeTensor> tensors;
  for (const gguf::Tensor& tensor : index.tensors) tensors.push_back({tensor.name, tensor.shape, {}});
  const auto choices = choose(recipe_of(recipe), pure, index.metadata, tensors);
  for (size_t i = 0; i < choices.size(); ++i) {
    const bool kept = choices[i].reason == conversion::TypeReason::kept;
    std::printf("%s %s\n", index.tensors[i].name.c_str(),
                kept ? "-" : std::string(info_of(choices[i].type).name).c_str());
  }
}

struct Model {
  std::vector<std::string> files;  // bytes
  std::vector<std::pair<size_t, StoredTensor>> tensors;
};

Model read_model(const fs::path& folder) {
  Model model;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors" && entry.path().filename().string().starts_with("model"))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    model.files.push_back(read_file(path));
    FileIndex index = take(safetensors::read_index(bytes_of(model.files.back()), model.files.back().size()));
    for (StoredTensor& tensor : index.tensors) model.tensors.emplace_back(model.files.size() - 1, std::move(tensor));
  }
  return model;
}

std::vector<float> widened(const char* bytes, StorageDtype dtype, size_t count) {
  std::vector<float> values(count);
  std::vector<uint16_t> halves(dtype == StorageDtype::F32 ? 0 : count);
  std::memcpy(halves.empty() ? static_cast<void*>(values.data()) : halves.data(), bytes,
              count * (halves.empty() ? sizeof(float) : sizeof(uint16_t)));
  if (dtype == StorageDtype::F16) kernels::widen_f16(halves, values.data());
  if (dtype == StorageDtype::BF16) kernels::widen_bf16(halves, values.data());
  return values;
}

std::string narrowed(const std::vector<float>& values, GgmlType type) {
  if (type == GgmlType::f32) return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  std::vector<uint16_t> halves(values.size());
  if (type == GgmlType::f16)
    kernels::narrow_f16(values, halves.data());
  else
    kernels::narrow_bf16(values, halves.data());
  return {reinterpret_cast<const char*>(halves.data()), halves.size() * sizeof(uint16_t)};
}

std::vector<float> converted_values(const conversion::ConvertedTensor& tensor, const Model& model) {
  if (tensor.source == conversion::ConvertedTensor::kGenerated)
    return widened(tensor.data.data(), StorageDtype::F32, tensor.data.size() / sizeof(float));
  const auto& [file, stored] = model.tensors[tensor.source];
  uint64_t count = 1;
  for (const uint64_t dimension : tensor.shape) count *= dimension;
  const std::vector<float> source = widened(model.files[file].data() + stored.begin, stored.dtype, count);
  std::vector<float> values(count);
  const uint64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0], columns = rows == 0 ? 0 : count / rows;
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t column = 0; column < columns; ++column) {
      const uint64_t from = tensor.rearrangement == conversion::Rearrangement::transpose
                                ? column * rows + row
                                : tensor.source_row(row) * columns + column;
      values[row * columns + column] = source[from] + (tensor.plus_one ? 1.0f : 0.0f);
    }
  return values;
}

void write_file(const std::string& path, const gguf::Header& header, std::span<const std::string> data) {
  std::string out(header.file_bytes, '\0');
  std::copy(header.bytes.begin(), header.bytes.end(), out.begin());
  for (size_t i = 0; i < data.size(); ++i) std::memcpy(out.data() + header.offsets[i], data[i].data(), data[i].size());
  std::ofstream(path, std::ios::binary) << out;
}

// The files that are asked for, as they are read.
class FolderFiles final : public families::SiblingFiles {
 public:
  explicit FolderFiles(const fs::path& folder) : folder_(folder) {}
  std::string_view sibling_file(std::string_view name) const noexcept override {
    return texts_.emplace_back(read_file(folder_ / name));
  }

 private:
  const fs::path& folder_;
  mutable std::list<std::string> texts_;
};

void convert(const fs::path& folder, const std::string& out, const std::string& type) {
  const Model model = read_model(folder);
  std::vector<conversion::SourceTensor> sources;
  for (const auto& [file, tensor] : model.tensors) sources.push_back({tensor.name, tensor.shape});
  const std::string config = read_file(folder / "config.json"), tokenizer = read_file(folder / "tokenizer.json"),
                    settings = read_file(folder / "tokenizer_config.json"),
                    chat_template = read_file(folder / "chat_template.jinja"),
                    pieces = read_file(folder / "tokenizer.model"), name = folder.filename().string();
  const auto parsed = json::parse(config, json::kPython);
  const conversion::ModelFiles files{
      .name = name,
      .config = &parsed,
      .modules = take(families::sentence_modules(FolderFiles(folder))),
      .tokenizer = {tokenizer, settings, {chat_template, "", {}}, bytes_of(pieces)},
  };
  DiagnosticList diagnostics;
  conversion::GgufConversion converted = take(conversion::convert(files, sources, diagnostics));
  for (const Diagnostic& diagnostic : diagnostics.items())
    std::fprintf(stderr, "%s: %s\n", std::string(diagnostic.code.name()).c_str(), diagnostic.message.c_str());

  const conversion::Recipe recipe = recipe_of(type);
  std::vector<conversion::RecipeTensor> tensors;
  for (const auto& tensor : converted.tensors) tensors.push_back({tensor.name, tensor.shape, {}});
  const auto choices = choose(recipe, false, converted.metadata, tensors);
  conversion::describe_recipe(recipe, converted.metadata);
  std::vector<gguf::NewTensor> entries;
  std::vector<std::string> data;
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto& tensor = converted.tensors[i];
    const GgmlType kind = choices[i].reason == conversion::TypeReason::kept ? GgmlType::f32 : choices[i].type;
    entries.push_back({tensor.name, kind, tensor.shape});
    data.push_back(narrowed(converted_values(tensor, model), kind));
  }
  write_file(out, take(gguf::write_header(converted.metadata, entries)), data);
}

void split(const std::string& path, const std::string& stem, uint64_t max_bytes) {
  const std::string file = read_file(path);
  const gguf::Index index = read_index(path);
  std::vector<gguf::NewTensor> entries;
  std::vector<std::string> data;
  for (const gguf::Tensor& tensor : index.tensors) {
    entries.push_back({tensor.name, tensor.type, tensor.shape});
    data.push_back(file.substr(tensor.begin, tensor.end - tensor.begin));
  }
  const auto first = take(gguf::split_by_size(entries, index.alignment, max_bytes));
  const auto count = static_cast<uint32_t>(first.size());
  for (uint32_t part = 0; part < count; ++part) {
    const size_t begin = first[part], end = part + 1 < count ? first[part + 1] : entries.size();
    const gguf::Metadata metadata =
        gguf::part_metadata(index.metadata, part, count, static_cast<uint32_t>(entries.size()));
    const auto header = take(gguf::write_header(metadata, std::span(entries).subspan(begin, end - begin)));
    write_file(part_name({stem + "-", part + 1, count, ".gguf"}), header, std::span(data).subspan(begin, end - begin));
  }
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  const auto is = [&](const char* command, size_t least) {
    return arguments.size() >= least && arguments[0] == command;
  };
  if (is("dump", 2)) {
    dump(arguments[1]);
  } else if (is("types", 3)) {
    types(arguments[1], arguments[2], arguments.size() > 3);
  } else if (is("convert", 4)) {
    convert(arguments[1], arguments[2], arguments[3]);
  } else if (is("split", 4)) {
    split(arguments[1], arguments[2], std::strtoull(arguments[3].c_str(), nullptr, 10));
  } else {
    fail("gguf_tool dump FILE | types FILE RECIPE [pure] | convert FOLDER OUT TYPE | split FILE STEM MAX_BYTES");
  }
}
