"""What mlx-lm expects of a folder of the Hub and transformers 5 writes in another way: keys of config.json, and tensors of two families."""
import json
import re
import shutil

import torch
from safetensors.torch import load_file, save_file


def key(name):
    return lambda config: config[name]


# By model_type: keys that are added where config.json has none.
KEYS = {
    "deepseek_v2": dict(rope_scaling=dict(type="yarn", factor=1.0, original_max_position_embeddings=512, mscale=1.0, mscale_all_dim=0.0,
                                          beta_fast=32, beta_slow=1)),
    "deepseek_v32": dict(topk_method="noaux_tc", scoring_func="sigmoid", moe_layer_freq=1),
    "dots1": dict(topk_method="noaux_tc", scoring_func="sigmoid"),
    "exaone_moe": dict(is_moe_layer=lambda config: [kind == "sparse" for kind in config["mlp_layer_types"]]),
    "gemma3": dict(vocab_size=288),
    "gemma4": dict(vocab_size=288),
    "gemma4_text": dict(global_head_dim=key("head_dim"), global_partial_rotary_factor=0.25),
    "glm4_moe": dict(rope_scaling=None),
    "glm_moe_dsa": dict(topk_method="noaux_tc", scoring_func="sigmoid", moe_layer_freq=1),
    "gpt_neox": dict(rotary_emb_base=10000, rotary_pct=0.25),
    "gpt_oss": dict(quantization_config=dict(quant_method="mxfp4")),
    "lfm2": dict(block_dim=key("hidden_size"), block_ff_dim=key("intermediate_size")),
    "llama4_text": dict(rope_scaling=None),
    "mamba2": dict(intermediate_size=lambda config: config["hidden_size"] * config["expand"]),
    "mellum": dict(num_experts=key("num_local_experts")),
    "minimax_m2": dict(shared_intermediate_size=0, rotary_dim=key("head_dim")),
    "qwen3_5_moe_text": dict(full_attention_interval=2),
    "qwen3_5_text": dict(full_attention_interval=2),
    "qwen3_moe": dict(num_experts=key("num_local_experts")),
    "qwen3_next": dict(full_attention_interval=2),
    "solar_open": dict(partial_rotary_factor=1.0),
}
GRANITE_LAYERS = {"linear_attention": "mamba", "full_attention": "attention"}


def with_keys(config):
    rope = config.get("rope_parameters")
    for name in ("rope_theta", "partial_rotary_factor"):
        if isinstance(rope, dict) and name in rope:
            config.setdefault(name, rope[name])
    for name, value in KEYS.get(config.get("model_type"), {}).items():
        if config.get(name) is None:
            config[name] = value(config) if callable(value) else value
    if config.get("model_type") == "granitemoehybrid":
        config["layer_types"] = [GRANITE_LAYERS[kind] for kind in config["layer_types"]]
    if config.get("model_type") == "mistral3":
        config["text_config"]["tie_word_embeddings"] = config["tie_word_embeddings"]
    if config.get("model_type") == "solar_open":
        config["first_k_dense_replace"] = 0
    for value in list(config.values()):
        if isinstance(value, dict) and "model_type" in value:
            with_keys(value)
    return config


def as_mxfp4(tensors):
    """gpt-oss' experts as blocks of MXFP4, the only form that mlx-lm reads; `tensors` get the values of the codes."""
    grid, stored = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6]), {}
    for name, value in tensors.items():
        if not re.search(r"(gate_up|down)_proj$", name):
            stored[name] = value
            continue
        groups = value.transpose(1, 2).contiguous().unflatten(2, (-1, 32))  # [experts, out, groups, 32]
        exponents = torch.floor(torch.log2(groups.abs().amax(-1, keepdim=True))) - 2
        scaled = groups / torch.exp2(exponents)
        codes = (scaled.abs().unsqueeze(-1) - grid).abs().argmin(-1)
        tensors[name] = (grid[codes] * scaled.sign() * torch.exp2(exponents)).flatten(2).transpose(1, 2).contiguous()
        codes = (codes + 8 * (scaled < 0)).to(torch.uint8)
        stored[f"{name}_blocks"] = codes[..., 0::2] | (codes[..., 1::2] << 4)
        stored[f"{name}_scales"] = (exponents.squeeze(-1) + 127).to(torch.uint8)
    return stored


def hub_folder(folder):
    """A copy of the folder for mlx-lm."""
    copy = f"{folder}.hub"
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    config = json.load(open(f"{folder}/config.json"))
    if config["model_type"] == "gpt_oss":
        tensors = load_file(f"{folder}/model.safetensors")
        save_file(as_mxfp4(tensors), f"{copy}/model.safetensors", metadata={"format": "pt"})
        save_file(tensors, f"{folder}/model.safetensors", metadata={"format": "pt"})
    json.dump(with_keys(config), open(f"{copy}/config.json", "w"))
    return copy
