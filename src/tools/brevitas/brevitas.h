// Names and numbers shared by the parser and the writer of the Brevitas dialect (spec 2.1, 2.4 to 2.7).
#pragma once
#include <span>
#include <string_view>

#include "config/dialects/dialects.h"
#include "config/reading/object_reader.h"
#include "config/spec/spec.h"
#include "tools/brevitas/brevitas_grid.h"

namespace wasmquant::config {

/// In the order of BrevitasVersion.
inline constexpr char kBrevitasVersions[] = "0.10.3|0.12.1|0.13";
inline constexpr char kScaleTypeWords[] = "float|pof2|float32|float16|bfloat16";
inline constexpr char kQuantTypes[] = "int_quant|float_quant";
inline constexpr char kParamTypes[] = "stats|mse";

/// The choices that determine a spec's numbers.
struct BrevitasChoice {
  bool is_weight = true;
  bool pof2 = false;
  bool mse = false;
  BrevitasVersion version = BrevitasVersion::v0_12_1;
};

/// Grid, observer and scale type of a spec whose dtype, symmetry and qscheme are set.
void set_brevitas_numbers(QuantizationSpec& spec, const BrevitasChoice& choice) noexcept;

enum class BrevitasUse : uint8_t { weight, input, output };
/// A BrevitasTensorConfig by the rules of spec 2.2 and 2.3, in order; empty if it is null or has an error.
Stages read_brevitas_tensor(const json::Value& value, const std::string& where, BrevitasUse use,
                            BrevitasVersion version, DiagnosticList& out);

/// What the lists pre_quant_opt_config (`before`) and algo_config may have.
std::span<const AlgorithmKeys> brevitas_algorithm_keys() noexcept;
/// Completes a list in place and checks the requirements between its members.
void check_brevitas_algorithms(json::Value& list, const std::string& where, bool before, bool has_inputs,
                               DiagnosticList& out);

json::Value write_brevitas(DialectConversion& conversion);
/// Classes without a counterpart add nothing, and the config's diagnostics report them.
void translate_brevitas(const json::Value& algorithm, List<TranslatedAlgorithm>& out);

}  // namespace wasmquant::config
