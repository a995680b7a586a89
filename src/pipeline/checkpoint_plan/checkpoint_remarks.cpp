// One sentence for each kind of layer that stays as it is.
#include "pipeline/checkpoint_plan/checkpoint_remarks.h"

#include "core/message.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/vllm/texts.h"

namespace wasmquant {

const char kPlainWeightHint[] = "use int8 or fp8_per_channel, which load, or write quark, gptq or fake-quantized";
const char kRotationRefused[] =
    "the runtime has to rotate the input of down_proj, and {} cannot say so; write quark or "
    "fake-quantized, or do without the rotation";
const char kRotationRemark[] =
    "down_proj expects inputs multiplied by a Hadamard matrix. Only runtimes that support Quark's R4 with this "
    "matrix, and evaluate and generate here, give correct output";
const char kCacheGroupRemark[] =
    "layers share a scale in quark files of a calibrated cache, where all have one static symmetric spec per "
    "tensor";

void add_activation_remarks(const CheckpointRemarks& found, const RemarkContext& context, List<Diagnostic>& out) {
  const auto warn = [&](DiagnosticCode code, std::string where, std::string text, std::string hint) {
    out.push_back({Severity::warning, code, std::move(where), std::move(text), std::move(hint)});
  };
  if (found.inputs_left_out)
    warn("not-applied", text_of("{}/input_tensors", context.config.where),
         text_of("{} cannot describe these dynamic inputs: the runtime will not quantize them", context.format),
         "write quark, or use int8 or fp8_e4m3 per tensor or per token");
  if (found.input_groups_left_out.count != 0)
    out.push_back(
        {context.has_fallback ? Severity::note : Severity::warning, "group-fallback", found.input_groups_left_out.first,
         text_of("is the first of {} layers whose inputs stay as they are: the groups that the config asks for do not "
                 "divide them, and runtimes cut inputs into whole groups",
                 found.input_groups_left_out.count),
         "give these layers other input_tensors, such as one scale per token"});
  if (found.static_left_out.count != 0)
    warn("not-applied", found.static_left_out.first,
         "static inputs and outputs are left out: their scales come from calibration, and only quark and "
         "compressed-tensors hold them",
         "give calibration, or set is_dynamic to true");
  if (found.activations_alone.count != 0)
    warn("not-applied", found.activations_alone.first,
         text_of("is the first of {} layers whose inputs or outputs the config quantizes, and whose weights it does "
                 "not: they stay as they are, because files hold scales of activations only for layers with "
                 "quantized weights",
                 found.activations_alone.count),
         "give the layers a weight spec");
}

void add_weight_remarks(const CheckpointRemarks& found, const RemarkContext& context, List<Diagnostic>& out) {
  const auto add = [&](Severity severity) {
    return [&out, severity](DiagnosticCode code, std::string where, std::string text, std::string hint = {}) {
      out.push_back({severity, code, std::move(where), std::move(text), std::move(hint)});
    };
  };
  const auto note = add(Severity::note), warn = add(Severity::warning);
  if (found.omitted_with_others.count != 0)
    note("fused-layers", found.omitted_with_others.first,
         text_of(vllm::kLeftWithOthers, found.omitted_with_others.count));
  if (found.regrouped.count != 0)
    note("group-fallback", found.regrouped.first,
         text_of("is the first of {} tensors that also get groups of {}: every loader of {} reads one group size for "
                 "all layers, and this is the largest that fits all rows",
                 found.regrouped.count, context.common_group, context.format),
         "exclude the layers whose rows it does not fit to keep larger groups");
  if (found.biases.count != 0)
    warn("not-applied", found.biases.first,
         text_of("is the first of {} biases that have a spec and stay as they are, because {} does not hold quantized "
                 "biases",
                 found.biases.count, context.format),
         "remove the key, or write fake-quantized");
  if (found.routers.count != 0)
    note("routers-left", found.routers.first,
         text_of("is the first of {} routers of experts, which stay as they are: loaders read them as plain parameters",
                 found.routers.count));
  if (found.quantized_routers.count != 0)
    warn("loader-limit", found.quantized_routers.first,
         text_of(runtimes::kQuantizedRouters, found.quantized_routers.count),
         "remove the rule that names them, or write fake-quantized");
}

}  // namespace wasmquant
