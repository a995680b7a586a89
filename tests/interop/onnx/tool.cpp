// ONNX models from the command line, for tests against ONNX Runtime: what the reader sees, and models whose weights
// are all quantized one way, beside the same model with the dequantized weights in float (dynamic and static: and
// inputs and outputs that went through eight bits and back).
//   onnx_tool list FILE                        a line for each weight, then "quantized N"
//   onnx_tool quantize IN OUT REFERENCE SPEC   SPEC: key=value words
//     style=weight_only|dequantize_linear|dynamic  dtype=int4…  scheme=per_tensor|per_channel|per_group  group=32
//     symmetric=0|1  only=Linear,Conv2d (layer types)  tensor=NAME  inline=BYTES (largest model without external data)
//     version=TEXT (that the model says it was written by)
//     scales=FILE (static inputs and outputs of layers, with style=dequantize_linear)
// Weights that a form cannot hold are named on stderr and stay.
#include "tool.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "onnx_graph/onnx_weights.h"
#include "pipeline/plan/plan.h"

namespace {

using namespace wasmquant;
using namespace wasmquant::onnx_tool;
namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read " + path.string());
  std::string bytes(fs::file_size(path), '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text;
  for (const uint64_t dimension : shape) text += (text.empty() ? "" : "x") + std::to_string(dimension);
  return text;
}

void list(const std::string& path) {
  const std::string file = read_file(path);
  const onnx::Model model = read_model(file);
  for (const auto& weight : conversion::list_weights(model)) {
    const onnx::Tensor& tensor = model.tensors[weight.tensor];
    std::printf("%s %s %s %s%s%s\n", std::string(tensor.name).c_str(), weight.layer.c_str(), weight.layer_type,
                shape_text(tensor.shape).c_str(), tensor.graph > 0 ? " nested" : "",
                weight.kept != nullptr ? " kept" : "");
  }
  std::printf("quantized %u\n", model.quantized_nodes);
}

// Lines "layer role int8|uint8 scale zero_point".
std::map<std::string, conversion::StaticScale> read_scales(const std::string& path) {
  std::map<std::string, conversion::StaticScale> scales;
  std::ifstream in(path);
  std::string layer, role, dtype, scale;
  int zero_point = 0;
  while (in >> layer >> role >> dtype >> scale >> zero_point)
    scales[layer + " " + role] = {std::strtof(scale.c_str(), nullptr), static_cast<int16_t>(zero_point),
                                  dtype == "int8"};
  return scales;
}

using Words = std::map<std::string, std::string>;

QuantizationSpec spec_of(const Words& words) {
  QuantizationSpec spec;
  const auto word = [&](const char* key, const char* otherwise) {
    return words.contains(key) ? words.at(key) : std::string(otherwise);
  };
  const std::string dtype = word("dtype", "int8"), scheme = word("scheme", "per_tensor");
  const auto row = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeInfo& d) { return d.name == dtype; });
  if (row == kDtypes.end()) fail("no such dtype: " + dtype);
  spec.dtype = row->dtype;
  spec.symmetric = word("symmetric", "1") == "1";
  spec.group_size = std::strtoll(word("group", "32").c_str(), nullptr, 10);
  spec.grid.smallest_scale = 0;  // as plans of ONNX files have it
  if (scheme == "per_channel") spec.qscheme = QScheme::per_channel;
  if (scheme == "per_group") spec.qscheme = QScheme::per_group, spec.ch_axis = 1;
  return spec;
}

void quantize_model(const std::string& in, const std::string& to, const std::string& reference, const Words& words) {
  Files files{read_file(in), {}};
  const onnx::Model model = read_model(files.model);
  for (const std::string_view location : model.locations) {
    files.external.push_back(read_file(fs::path(in).parent_path() / location));
    check(onnx::check_external(model, location, files.external.back().size()));
  }
  const QuantizationSpec spec = spec_of(words);
  const std::string style_name = words.contains("style") ? words.at("style") : "weight_only";
  const auto style = style_name == "dynamic"             ? conversion::OnnxStyle::dynamic
                     : style_name == "dequantize_linear" ? conversion::OnnxStyle::dequantize_linear
                                                         : conversion::OnnxStyle::weight_only;
  const auto scales = read_scales(words.contains("scales") ? words.at("scales") : std::string());
  std::vector<conversion::OnnxChoice> choices;
  std::vector<std::unique_ptr<WeightLayout>> layouts;
  std::map<std::string, int> forms;
  uint64_t before = 0, after = 0;
  const auto weights = conversion::list_weights(model);
  for (const auto& weight : weights) {
    if (words.contains("only") &&
        ("," + words.at("only") + ",").find(std::string(",") + weight.layer_type + ",") == std::string::npos)
      continue;
    if (words.contains("tensor") && model.tensors[weight.tensor].name != words.at("tensor")) continue;
    const auto form = conversion::onnx_form_of(model, weight, spec, style);
    auto layout = form ? onnx_layout(*form, conversion::describe(model, weight, *form), spec)
                       : Result<WeightLayout>(form.error());
    if (!layout) {
      std::fprintf(stderr, "%s: %s\n", layout.error().where.c_str(), layout.error().message.c_str());
      continue;
    }
    layouts.push_back(std::make_unique<WeightLayout>(std::move(*layout)));
    const auto scale_of = [&](const char* role) {
      const auto found = scales.find(weight.layer + role);
      return found == scales.end() ? std::nullopt : std::optional(found->second);
    };
    choices.push_back({weight.tensor, *form, layouts.back().get(), &weight, scale_of(" input"), scale_of(" output")});
    ++forms[std::string(name_of(*form))];
    before += model.tensors[weight.tensor].end - model.tensors[weight.tensor].begin;
    for (const Component& component : layouts.back()->components) after += component.bytes;
  }
  conversion::OnnxOptions options;
  options.data_file = fs::path(to).filename().string() + "_data";
  if (words.contains("inline")) options.largest_model = std::strtoull(words.at("inline").c_str(), nullptr, 10);
  if (words.contains("version")) options.properties.emplace_back(kVersionKey, words.at("version"));
  DiagnosticList diagnostics;
  const auto rewrite = take(conversion::rewrite_onnx(model, choices, options, diagnostics));
  for (const Diagnostic& diagnostic : diagnostics.items())
    std::fprintf(stderr, "%s: %s: %s\n", std::string(diagnostic.code.name()).c_str(), diagnostic.where.c_str(),
                 diagnostic.message.c_str());

  std::vector<Quantized> quantized;
  std::string floats = files.model;
  for (const auto& choice : choices) {
    const onnx::Tensor& tensor = model.tensors[choice.tensor];
    quantized.push_back(onnx_tool::quantize(*choice.layout, values_of(tensor, files.of(model, tensor))));
    if (reference != "-" && !tensor.is_external()) overwrite(tensor, quantized.back().values, floats);
  }
  if (style == conversion::OnnxStyle::dynamic || !scales.empty()) floats = with_quantized_values(floats, choices);
  if (reference != "-") std::ofstream(reference, std::ios::binary) << floats;
  std::ofstream(to, std::ios::binary) << bytes_of(rewrite.model, rewrite, files, quantized);
  if (rewrite.data.bytes > 0)
    std::ofstream(to + "_data", std::ios::binary) << bytes_of(rewrite.data, rewrite, files, quantized);
  std::printf("weights %zu nodes %u opset %u bytes %llu -> %llu", choices.size(), rewrite.replaced, rewrite.opset,
              static_cast<unsigned long long>(before), static_cast<unsigned long long>(after));
  for (const auto& [form, count] : forms) std::printf(" %s=%d", form.substr(0, form.find(' ')).c_str(), count);
  std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() == 2 && words[0] == "list") {
    list(words[1]);
  } else if (words.size() >= 4 && words[0] == "quantize") {
    Words spec;
    for (size_t i = 4; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      if (equals == std::string::npos) fail("no key=value: " + words[i]);
      spec[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    quantize_model(words[1], words[2], words[3], spec);
  } else {
    fail("onnx_tool list FILE | quantize IN OUT REFERENCE|- [key=value]...");
  }
}
