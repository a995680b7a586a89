#include "pipeline/forward/forward_use.h"

#include "core/message.h"

namespace wasmquant {

ForwardUse forward_use_named(std::string_view name) noexcept {
  return name == "embed"     ? ForwardUse::embed
         : name == "compare" ? ForwardUse::compare
         : name == "run"     ? ForwardUse::run
         : name == "measure" ? ForwardUse::measure
                             : ForwardUse::calibrate;
}

Status check_use(const model::Architecture& a, bool decodes, bool makes_embeddings, ForwardUse use) {
  const bool embeds = use == ForwardUse::embed || use == ForwardUse::compare;
  if (decodes && use == ForwardUse::compare)
    return error_at(ErrorCode::not_implemented, "/model_type",
                    "{q} has a decoder behind its encoder, by whose predictions it is judged", a.family);
  if (a.routing.experts > 0 && use == ForwardUse::measure)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "choosing a spec for each layer is not implemented for mixtures of experts such as {q}; calibration "
        "of a given config, evaluate and generate are",
        a.family);
  if (a.is_encoder && !decodes && !embeds)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "{q} is an encoder, which predicts no next token: compare the embeddings of texts with those of the "
        "model that it was made from. Any config whose algorithms need no tokens quantizes it",
        a.family);
  if (!a.is_encoder && !makes_embeddings && embeds)
    return error_at(
        ErrorCode::not_implemented, "/model_type",
        "{q} is no encoder, of which embeddings are compared, and has no modules.json of sentence-transformers; "
        "encoders are: {}",
        a.family, model::family_names(true));
  return {};
}

}  // namespace wasmquant
