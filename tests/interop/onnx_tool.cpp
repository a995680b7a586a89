// ONNX models from the command line, for tests against ONNX Runtime: what the reader sees, and models whose weights
// are all quantized one way, beside the same model with the dequantized weights in float (dynamic and static: and
// inputs and outputs that went through eight bits and back).
//   onnx_tool list FILE                        a line for each weight, then "quantized N"
//   onnx_tool quantize IN OUT REFERENCE SPEC   SPEC: key=value words
//     style=weight_only|dequantize_linear|dynamic  dtype=int4…  scheme=per_tensor|per_channel|per_group  group=32
//     symmetric=0|1  only=Linear,Conv2d (layer types)  tensor=NAME  inline=BYTES (largest model without external data)
//     scales=FILE (static inputs and outputs of layers, with style=dequantize_linear)
// Weights that a form cannot hold are named on stderr and stay.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "conversion/onnx_edits.h"
#include "conversion/onnx_rewrite.h"
#include "conversion/onnx_weights.h"
#include "core/message.h"
#include "formats/protobuf.h"
#include "kernels/kernels.h"
#include "quantize/quantize.h"

namespace {

using namespace wasmquant;
using conversion::Segment;
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
void check(Status status) {
  if (!status) fail(status.error());
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

// As a host does it: the ranges that are asked for, no others.
onnx::Model read_model(const std::string& file) {
  auto skeleton = std::make_unique<onnx::Skeleton>(file.size());
  for (auto need = skeleton->need(); need.bytes > 0; need = skeleton->need())
    check(skeleton->feed({reinterpret_cast<const uint8_t*>(file.data()) + need.offset, need.bytes}));
  return take(onnx::read_model(std::move(skeleton)));
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

struct Files {
  std::string model;
  std::vector<std::string> external;
  const std::string& of(const onnx::Model& index, const onnx::Tensor& tensor) const {
    if (!tensor.is_external()) return model;
    const auto& all = index.locations;
    return external[static_cast<size_t>(std::find(all.begin(), all.end(), tensor.location) - all.begin())];
  }
};

std::vector<float> values_of(const onnx::Tensor& tensor, const std::string& file) {
  size_t count = 1;
  for (const uint64_t dimension : tensor.shape) count *= dimension;
  const StorageDtype dtype = *onnx::weight_dtype_of(tensor.data_type);
  std::vector<float> values(count);
  std::vector<uint16_t> halves(dtype == StorageDtype::F32 ? 0 : count);
  const char* bytes = file.data() + tensor.begin;
  if (tensor.encoding == onnx::Encoding::varints)
    check(onnx::decode_varints({reinterpret_cast<const uint8_t*>(bytes), tensor.end - tensor.begin}, halves,
                               tensor.name));
  else
    std::memcpy(halves.empty() ? static_cast<void*>(values.data()) : halves.data(), bytes, tensor.end - tensor.begin);
  if (dtype == StorageDtype::F16) kernels::widen_f16(halves, values.data());
  if (dtype == StorageDtype::BF16) kernels::widen_bf16(halves, values.data());
  return values;
}

std::vector<float> transposed(const std::vector<float>& in, size_t rows, size_t columns) {
  std::vector<float> out(in.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) out[c * rows + r] = in[r * columns + c];
  return out;
}

struct Quantized {
  std::vector<std::string> components;
  std::vector<float> values;  // of the codes, as the model has the weight
};

// Tiles of a few lines, packed as a session does it; the values come from the packed bytes.
Quantized quantize(const WeightLayout& layout, std::vector<float> x) {
  if (layout.source_transposed) x = transposed(x, layout.columns, layout.rows);
  const Granularity& g = layout.granularity;
  const size_t scales = g.scale_count();
  std::vector<float> low(scales, std::numeric_limits<float>::infinity()), high(scales, -low[0]);
  for_each_run(g, 0, x.size(), [&](const Run& run) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const uint64_t scale = run.scale + i * run.scale_stride;
      low[scale] = std::min(low[scale], x[run.begin + i]);
      high[scale] = std::max(high[scale], x[run.begin + i]);
    }
  });
  std::vector<QParams> qparams(scales), read(scales);
  qparams_of_ranges(low, high, layout.spec, qparams);
  std::vector<uint8_t> codes(x.size()), again(x.size()), scratch(x.size());
  quantize(g, layout.spec, qparams, kernels::Path::real, x, 0, codes.data());

  Quantized out;
  for (const Component& component : layout.components) out.components.emplace_back(component.bytes, '\0');
  const uint64_t step = 5 * layout.line_multiple();
  for (uint64_t begin = 0; begin < layout.rows; begin += step) {
    const TileRange tile{begin, std::min(begin + step, layout.rows)};
    std::vector<uint8_t*> slices;
    for (size_t c = 0; c < out.components.size(); ++c)
      slices.push_back(reinterpret_cast<uint8_t*>(out.components[c].data()) +
                       slice_of(layout, layout.components[c], tile).offset);
    const uint64_t count = tile_scale_count(layout, tile);
    const uint64_t first = layout.scales_in_tiles() ? tile_scale_count(layout, {0, begin}) : 0;
    const std::span<QParams> of_tile = std::span(qparams).subspan(first, count);
    pack_tile(layout, tile, codes.data() + begin * layout.columns, of_tile, 1.0f, scratch.data(), slices);
  }
  for (uint64_t begin = 0; begin < layout.rows; begin += step) {
    const TileRange tile{begin, std::min(begin + step, layout.rows)};
    std::vector<const uint8_t*> slices;
    for (size_t c = 0; c < out.components.size(); ++c)
      slices.push_back(reinterpret_cast<const uint8_t*>(out.components[c].data()) +
                       slice_to_read(layout, layout.components[c], tile).offset);
    const uint64_t count = tile_scale_count(layout, tile);
    const uint64_t first = layout.scales_in_tiles() ? tile_scale_count(layout, {0, begin}) : 0;
    unpack_tile(layout, tile, slices, scratch.data(), again.data() + begin * layout.columns,
                std::span(read).subspan(first, count));
  }
  for (size_t i = 0; i < scales; ++i)
    if (read[i].scale != qparams[i].scale || read[i].zero_point != qparams[i].zero_point) fail("scales differ");
  if (again != codes) fail("codes differ");
  out.values.resize(x.size());
  dequantize(g, layout.spec, read, again.data(), x.size(), 0, out.values.data());
  if (layout.source_transposed) out.values = transposed(out.values, layout.rows, layout.columns);
  return out;
}

// The float model with other values in place of a weight.
void overwrite(const onnx::Tensor& tensor, const std::vector<float>& values, std::string& file) {
  if (tensor.encoding != onnx::Encoding::bytes) fail("no reference for weights in varints");
  char* to = file.data() + tensor.begin;
  const StorageDtype dtype = *onnx::weight_dtype_of(tensor.data_type);
  if (dtype == StorageDtype::F32) {
    std::memcpy(to, values.data(), tensor.end - tensor.begin);
    return;
  }
  std::vector<uint16_t> halves(values.size());
  (dtype == StorageDtype::F16 ? kernels::narrow_f16 : kernels::narrow_bf16)(values, halves.data());
  std::memcpy(to, halves.data(), tensor.end - tensor.begin);
}

std::string bytes_of(const conversion::OnnxFile& file, const conversion::OnnxRewrite& rewrite, const Files& files,
                     const std::vector<Quantized>& quantized) {
  std::string out;
  for (const Segment& segment : file.segments) {
    switch (segment.kind) {
      case Segment::Kind::literal:
        out.append(rewrite.literals, segment.begin, segment.bytes);
        break;
      case Segment::Kind::model:
        out.append(files.model, segment.begin, segment.bytes);
        break;
      case Segment::Kind::external:
        out.append(files.external[segment.source], segment.begin, segment.bytes);
        break;
      case Segment::Kind::component:
        out += quantized[segment.source].components[segment.component];
        break;
      case Segment::Kind::zeros:
        out.append(segment.bytes, '\0');
        break;
    }
  }
  if (out.size() != file.bytes) fail("a file has another size than was said");
  return out;
}

// A model whose nodes are being put between others.
class Around {
 public:
  explicit Around(const onnx::Model& model) : model_(model), edits_(*model.skeleton) {}

  void add(conversion::Pieces& to, const std::string& message) {
    conversion::Pieces inner;
    inner.add(literals_, message);
    to.add_field(literals_, 1, inner);
  }
  // The node with other names for its first input and its output, between what goes before and behind it.
  void replace(const onnx::Node& node, std::string_view input, std::string_view output,
               const conversion::Pieces& before, const conversion::Pieces& behind) {
    std::string names;
    for (size_t i = 0; i < node.inputs.size(); ++i) protobuf::append_field(names, 1, i == 0 ? input : node.inputs[i]);
    protobuf::append_field(names, 2, output);
    conversion::Pieces nodes = before, message;
    for (onnx::Fields f(*model_.skeleton, model_.skeleton->field(node.whole.begin).payload); f.next();)
      if (f.field.number > 2) message.add(f.field.whole);
    message.add(literals_, names);
    nodes.add_field(literals_, 1, message);
    nodes.add(behind);
    edits_.replace(node.whole, std::move(nodes));
    for (uint32_t g = node.graph;; g = model_.graphs[g].parent) {
      edits_.open(model_.graphs[g].whole);
      if (model_.graphs[g].parent == onnx::kNone) break;
      edits_.open(model_.graphs[g].attribute);
      edits_.open(model_.nodes[model_.graphs[g].parent_node].whole);
    }
  }
  std::string bytes(const std::string& file) {
    const conversion::Pieces pieces = edits_.apply(literals_);
    conversion::OnnxRewrite rewrite;
    rewrite.literals = literals_;
    rewrite.model = {pieces.segments(), pieces.bytes()};
    return bytes_of(rewrite.model, rewrite, {file, {}}, {});
  }

 private:
  const onnx::Model& model_;
  conversion::Edits edits_;
  std::string literals_;
};

using conversion::NodeBytes;

// Through DynamicQuantizeLinear and back.
void add_dynamic(Around& around, std::string_view from, const std::string& to, conversion::Pieces& nodes) {
  around.add(nodes, NodeBytes("DynamicQuantizeLinear", "", to, "_q")
                        .input(from)
                        .output(to + "_codes")
                        .output(to + "_scale")
                        .output(to + "_zero")
                        .bytes());
  around.add(nodes, NodeBytes("DequantizeLinear", "", to, "_d")
                        .input(to + "_codes")
                        .input(to + "_scale")
                        .input(to + "_zero")
                        .output(to)
                        .bytes());
}

// clip(round(x / scale) + zero_point, low, high), and back, in floats.
void add_static(Around& around, std::string_view from, const std::string& to, const conversion::StaticScale& scale,
                conversion::Pieces& nodes) {
  std::string last(from);
  const std::string base = to + "_static";
  int number = 0;
  const auto constant = [&](float value) {
    const std::string name = base + std::to_string(++number);
    std::string tensor = conversion::tensor_head(name, 1, {}), attribute, node;
    protobuf::append_field(tensor, 9, std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
    protobuf::append_field(attribute, 1, "value");
    protobuf::append_field(attribute, 5, tensor);
    protobuf::append_field(attribute, 20, uint64_t{4});
    node = NodeBytes("Constant", "", name, "_c").output(name).bytes();
    protobuf::append_field(node, 5, attribute);
    around.add(nodes, node);
    return name;
  };
  const auto step = [&](const char* op_type, const std::vector<std::string>& others, bool is_last = false) {
    const std::string name = is_last ? to : base + std::to_string(++number);
    NodeBytes node(op_type, "", base + std::to_string(number), op_type);
    node.input(last);
    for (const std::string& other : others) node.input(other);
    around.add(nodes, node.output(name).bytes());
    last = name;
  };
  const std::string by = constant(scale.scale), zero = constant(scale.zero_point);
  step("Div", {by});
  step("Round", {});
  step("Add", {zero});
  step("Clip", {constant(scale.is_signed ? -128.0f : 0.0f), constant(scale.is_signed ? 127.0f : 255.0f)});
  step("Sub", {zero});
  step("Mul", {by}, true);
}

// The same computation in floats: inputs of the chosen weights' nodes, and outputs if they are static, go through eight
// bits and back.
std::string with_quantized_values(const std::string& floats, const std::vector<conversion::OnnxChoice>& choices) {
  const onnx::Model before = read_model(floats);
  conversion::OnnxOptions options;
  options.least_opset = 11;
  DiagnosticList diagnostics;
  const auto raised = take(conversion::rewrite_onnx(before, {}, options, diagnostics));
  const std::string file = bytes_of(raised.model, raised, {floats, {}}, {});
  const onnx::Model model = read_model(file);
  Around around(model);
  for (const auto& choice : choices) {
    const onnx::Tensor& weight = before.tensors[choice.tensor];  // raising adds others
    const auto same = std::find_if(model.tensors.begin(), model.tensors.end(), [&](const onnx::Tensor& tensor) {
      return tensor.name == weight.name && tensor.graph == weight.graph;
    });
    const bool is_dynamic = choice.form == OnnxForm::integer_operator;
    for (const onnx::Consumer& consumer : same->consumers) {
      if (is_dynamic ? !conversion::takes_form(model, consumer, choice.form)
                     : !conversion::takes_static(model, consumer) || (!choice.input && !choice.output))
        continue;
      const onnx::Node& node = model.nodes[consumer.node];
      const std::string result(node.outputs[0]), name = result + "_reference";
      conversion::Pieces in, out;
      if (is_dynamic) add_dynamic(around, node.inputs[0], name, in);
      if (choice.input) add_static(around, node.inputs[0], name, *choice.input, in);
      if (choice.output) add_static(around, result + "_float", result, *choice.output, out);
      around.replace(node, is_dynamic || choice.input ? name : std::string(node.inputs[0]),
                     choice.output ? result + "_float" : result, in, out);
    }
  }
  return around.bytes(file);
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
  for (const auto& weight : conversion::list_weights(model)) {
    if (words.contains("only") &&
        ("," + words.at("only") + ",").find(std::string(",") + weight.layer_type + ",") == std::string::npos)
      continue;
    if (words.contains("tensor") && model.tensors[weight.tensor].name != words.at("tensor")) continue;
    const auto form = conversion::onnx_form_of(model, weight, spec, style);
    auto layout =
        form ? onnx_layout(*form, conversion::describe(model, weight), spec) : Result<WeightLayout>(form.error());
    if (!layout) {
      std::fprintf(stderr, "%s: %s\n", layout.error().where.c_str(), layout.error().message.c_str());
      continue;
    }
    layouts.push_back(std::make_unique<WeightLayout>(std::move(*layout)));
    const auto scale_of = [&](const char* role) {
      const auto found = scales.find(weight.layer + role);
      return found == scales.end() ? std::nullopt : std::optional(found->second);
    };
    choices.push_back({weight.tensor, *form, layouts.back().get(), scale_of(" input"), scale_of(" output")});
    ++forms[std::string(name_of(*form))];
    before += model.tensors[weight.tensor].end - model.tensors[weight.tensor].begin;
    for (const Component& component : layouts.back()->components) after += component.bytes;
  }
  conversion::OnnxOptions options;
  options.data_file = fs::path(to).filename().string() + "_data";
  if (words.contains("inline")) options.largest_model = std::strtoull(words.at("inline").c_str(), nullptr, 10);
  DiagnosticList diagnostics;
  const auto rewrite = take(conversion::rewrite_onnx(model, choices, options, diagnostics));
  for (const Diagnostic& diagnostic : diagnostics.items())
    std::fprintf(stderr, "%s: %s: %s\n", diagnostic.code.c_str(), diagnostic.where.c_str(), diagnostic.message.c_str());

  std::vector<Quantized> quantized;
  std::string floats = files.model;
  for (const auto& choice : choices) {
    const onnx::Tensor& tensor = model.tensors[choice.tensor];
    quantized.push_back(quantize(*choice.layout, values_of(tensor, files.of(model, tensor))));
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
