"""A tiny checkpoint of any model type of transformers: the defaults of its configuration, made small by the names of the fields.

A family called `any-TYPE` is made so, for types that no table has, such as those of a new release.
"""
import re

import torch
import transformers
from transformers.models.auto import modeling_auto

from family_inputs import inputs_of
from rows.family_sizes import VOCAB

# Fields of a configuration by their names, the first pattern that is found in one; a size in place of the default where that is larger.
SIZES = (
    (r"token_id|token_index|_idx$|_index$", None),
    (r"vocab_size|num_embeddings$", VOCAB),
    (r"(num|n)_(hidden_|encoder_|decoder_|dense_)?layers?$|_layers$|^depth$|layers_num|num_.*layers|num_blocks|num_stages_layers", 2),
    (r"(num|n)_.*experts?_per_tok|topk$|top_k$|moe_k$|num_experts_per_tok|router_topk|num_selected_experts", 2),
    (r"n_group$|topk_group$|num_shared_experts|n_shared_experts|first_k_dense|num_expert_groups?", 1),
    (r"experts$|num_local_experts|moe_num_experts", 4),
    (r"(key_value|kv)_heads$|num_kv_heads|num_query_groups|num_attention_groups", 2),
    (r"heads?$|num_attention_heads", 4),
    (r"head_dim$|d_kv$|_head_dim$|kv_channels", 32),
    (r"lora_rank|_rank$", 32),
    (r"moe_intermediate_size|expert_.*size|shared_.*intermediate", 128),
    (r"intermediate_size|ffn_dim|ffn_hidden|d_ff$|mlp_dim|d_inner|feed_forward|ffn_size|inner_dim|hidden_dim$", 256),
    (r"hidden_size|d_model|embed_dim|embedding_size|n_embd|_dim$|^dim$|_width$|hidden$|_size_per_layer_input", 128),
    (r"image_size|input_size|img_size", 32),
    (r"patch_size", 8),
    (r"max_.*positions?|max_position_embeddings|context_length|seq_len|max_source", 128),
    (r"sliding_window|window_size|chunk_size", 64),
    (r"num_mel_bins|n_mels|num_mels|feature_size|num_feats", 32),
    (r"state_size|d_state|_state$", 16),
    (r"num_queries|num_query|latents|num_labels", 8),
    (r"channels$|_filters$|codebook_size|conv_kernel_size", 64),
)
# What a class is called with: the first of these that it computes with.
INPUTS = ("text", "ended-text", "encoder-decoder", "ended-text-image", "text-image", "text-image64", "image", "image-64", "wave", "mono-wave", "speech",
          "features-32", "features-80", "features-128", "encoder-spectrogram", "spectrogram", "speech-features-32", "patches", "video", "text-codes",
          "flat-patches-grid", "past", "series", "image-and-text",
          "robot-16")
LARGEST = 12_000_000  # parameters
HEADS = ("FOR_CAUSAL_LM", "FOR_IMAGE_TEXT_TO_TEXT", "FOR_MASKED_LM", "FOR_SEQ_TO_SEQ_CAUSAL_LM", "FOR_SPEECH_SEQ_2_SEQ", "FOR_CTC", "FOR_IMAGE_CLASSIFICATION",
         "FOR_OBJECT_DETECTION", "FOR_SEMANTIC_SEGMENTATION", "FOR_DEPTH_ESTIMATION", "FOR_MULTIMODAL_LM", "FOR_AUDIO_CLASSIFICATION", "")


def size_of(name, value):
    for pattern, size in SIZES:
        if re.search(pattern, name):
            return value if size is None else min(value, size)
    return value


def shrunk_list(name, values, layers):
    """A value a layer: as many as there are layers now, with every kind that occurs; else each value by itself."""
    if not values:
        return values
    if isinstance(values[0], str):
        kinds = list(dict.fromkeys(values))
        return (kinds + values)[: max(2, len(kinds))] if len(values) in layers else values
    if len(values) in layers and len(values) > 4:
        return [size_of(name, value) if type(value) is int else value for value in values[:2]]
    if re.search(r"depths?$|_layers$|num_blocks", name):
        return [1] * len(values) if all(type(value) is int for value in values) else values
    if re.search(r"hidden_sizes|embed_dims?|channels|_dims?$|widths", name) and all(type(value) is int for value in values):
        return [max(32, 16 * max(1, value * 64 // (16 * max(values)))) for value in values]
    return values


def settle(small, config):
    """Fields that must agree with others."""
    kinds = small.get("layer_types") or small.get("layers_block_type")
    if kinds:
        small["num_hidden_layers"] = len(kinds)
    for name in ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"):
        if name in small and config[name] == config.get("num_attention_heads"):
            small[name] = small["num_attention_heads"]
    features = small.get("out_features")
    if features and all(re.fullmatch(r"stage\d+", feature) for feature in features):
        small.update({name: 4 for name in small if re.search(r"num_hidden_layers$", name)})
        small["out_features"] = [f"stage{i + 1}" for i in range(4 - len(features), 4)]
        small.pop("out_indices", None)
        small.pop("stage_names", None)
    if small.get("per_layer_config"):
        small["per_layer_config"] = {"1": next(iter(small["per_layer_config"].values()))}
    if "n_recurrent_layers" in small:
        kinds = [kind for kind in ("sliding_attention", "full_attention", "sliding_attention") for kind in (kind, "mlp")]
        small.update(layer_types=kinds, num_hidden_layers=6, n_input_layers=2, n_recurrent_layers=2, n_output_layers=2)
    if "num_key_value_heads_per_layer" in small:
        small["num_key_value_heads_per_layer"] = [small["num_attention_heads"]] * small["num_hidden_layers"]
    if small.get("mlp_layer_types", "") is None:
        small.update(mlp_layer_types=["dense", "sparse"], num_experts_per_tok=small.get("num_experts_per_tok") or 2)
    if small.get("model_type") == "qwen2_5_omni_text":  # its class has no default that fits the head
        small["rope_parameters"]["mrope_section"] = [4, 6, 6]
    for rope in (small.get("rope_parameters"), small.get("rope_scaling")):
        if isinstance(rope, dict) and rope.get("mrope_section"):
            rope["mrope_section"] = [4, 6, 6]
    return small


def shrink(config):
    """A dictionary of a configuration, made small. Token ids stay apart from each other and inside the vocabulary."""
    layers = {value for name, value in config.items() if type(value) is int and re.search(r"layers$|^depth$", name) and value > 2}
    small, tokens = {}, iter(range(250, VOCAB))
    for name, value in config.items():
        if isinstance(value, dict) and not re.search(r"rope|id2label|label2id|per_layer_config", name):
            small[name] = shrink(value)
        elif isinstance(value, list):
            small[name] = shrunk_list(name, value, layers)
        elif type(value) is int and re.search(r"token_id$|token_index$", name):
            small[name] = value if value < 4 else next(tokens)
        elif type(value) is int:
            small[name] = size_of(name, value)
        else:
            small[name] = value
    return settle(small, config)


def config_of(model_type):
    cls = transformers.CONFIG_MAPPING[model_type]
    return cls.from_dict(shrink(cls().to_dict()))


def classes_of(model_type):
    tables = [getattr(modeling_auto, f"MODEL_{head}_MAPPING_NAMES" if head else "MODEL_MAPPING_NAMES", {}) for head in HEADS]
    names = [table[model_type] for table in tables if table.get(model_type)]
    if not names:
        raise ValueError("no automatic class has this type")
    return [getattr(transformers, name if isinstance(name, str) else name[0]) for name in names]


def build(model_type):
    """Of the first class that takes the small configuration."""
    error = None
    for cls in classes_of(model_type):
        try:
            config = config_of(model_type)
            with torch.device("meta"):
                count = sum(parameter.numel() for parameter in cls(config).parameters())
        except (AttributeError, IndexError, KeyError, TypeError) as other:
            error = error or other
            continue
        if count > LARGEST:
            raise ValueError(f"{count} parameters are too many for a test")
        return cls(config).float().eval()
    raise error


def is_finite(output):
    first = next((value for value in output.values() if torch.is_tensor(value) and value.is_floating_point()), None)
    return first is not None and bool(torch.isfinite(first).all())


def inputs_for(model):
    errors = []
    for kind in INPUTS:
        try:
            inputs = inputs_of(kind)
            if is_finite(model(**inputs)):
                return kind
            errors.append(f"{kind}: the output is not finite")
        except Exception as error:  # of the class, or of transformers' checks: another kind is tried
            errors.append(f"{kind}: {error}")
    raise ValueError("; ".join(error.replace("\n", " ")[:70] for error in errors))
