"""Makes tests/files/forward/: one tiny model a family, randomly initialised, with the logits that transformers computes.

    tests/interop/peers.sh run python3 tests/files/make_forward.py [NAME...]

Each folder holds config.json, model.safetensors (float32) and expected.safetensors: `input_ids` I64 [2, 24] and `logits`
F32 [2, 24, vocabulary]; of encoders `mean` and `first` F32 [2, hidden] of the last states instead of logits; of encoder-decoders the
logits [2, 12, vocabulary] behind the token that begins texts and the last 11 tokens, the others being the encoder's. Values are spread wide enough that norms, caps, windows and rotations all show in the logits.
Two configs are written as transformers 4 did, with rope_theta and rope_scaling.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

SIZES = dict(
    vocab_size=40, hidden_size=24, intermediate_size=28, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)
HEAD = dict(head_dim=12)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
GEMMA3_ROPE = dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=5000.0),
                   sliding_attention=dict(rope_type="default", rope_theta=100.0))
CASES = {
    "llama": ("Llama", dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, rope_parameters=LLAMA3)),
    "llama_linear": ("Llama", dict(HEAD, hidden_act="gelu", rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=300.0))),
    "mistral": ("Mistral", dict(HEAD, sliding_window=6, rope_parameters=dict(rope_type="default", rope_theta=1000.0))),
    "qwen2": ("Qwen2", dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen3": ("Qwen3", dict(HEAD, attention_bias=True, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "gemma": ("Gemma", dict(HEAD)),
    "gemma2": ("Gemma2", dict(HEAD, sliding_window=5, query_pre_attn_scalar=20, attn_logit_softcapping=3.0,
                              final_logit_softcapping=4.0)),
    "gemma3_text": ("Gemma3Text", dict(HEAD, sliding_window=5, query_pre_attn_scalar=20, rope_parameters=GEMMA3_ROPE,
                                       layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "gemma3n_text": ("Gemma3n", dict(num_hidden_layers=4, head_dim=8, intermediate_size=[28, 20, 28, 24], num_kv_shared_layers=2, sliding_window=5,
                                     layer_types=["sliding_attention", "full_attention"] * 2, hidden_size_per_layer_input=8,
                                     vocab_size_per_layer_input=38, altup_num_inputs=4, laurel_rank=4, final_logit_softcapping=4.0,
                                     activation_sparsity_pattern=[0.4, 0.0, 0.8, 0.0],
                                     rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=5000.0),
                                                          sliding_attention=dict(rope_type="default", rope_theta=100.0)))),
    "gemma4_text": ("Gemma4", dict(num_hidden_layers=5, head_dim=8, global_head_dim=12, attention_k_eq_v=True, num_global_key_value_heads=1,
                                   layer_types=["sliding_attention", "full_attention"] * 2 + ["full_attention"], sliding_window=5,
                                   num_kv_shared_layers=3, use_double_wide_mlp=True, hidden_size_per_layer_input=8, vocab_size_per_layer_input=38,
                                   final_logit_softcapping=4.0)),
}
# Their experts are stored as the class publishes them.
MIXTURES = {
    "gpt_oss": ("GptOss", dict(HEAD, sliding_window=5, num_local_experts=3, num_experts_per_tok=2, attention_bias=True,
                               layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                               rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=2.0, truncate=False,
                                                    original_max_position_embeddings=16))),
    "llama4_text": ("Llama4", dict(HEAD, intermediate_size=8, intermediate_size_mlp=28, num_local_experts=3, num_experts_per_tok=1, moe_layers=[0, 2],
                                   no_rope_layers=[1, 0, 1], attention_chunk_size=7, floor_scale=5, attn_scale=0.5, tie_word_embeddings=False,
                                   rope_parameters=dict(rope_type="default", rope_theta=1000.0))),
    "gemma4_moe": ("Gemma4", dict(head_dim=8, global_head_dim=12, layer_types=["sliding_attention", "full_attention"] + ["full_attention"],
                                  sliding_window=5, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=3, top_k_experts=2,
                                  moe_intermediate_size=8, final_logit_softcapping=4.0)),
    "lfm2_moe": ("Lfm2Moe", dict(layer_types=["conv", "full_attention", "conv"], conv_L_cache=4, conv_bias=True, num_experts=4, num_experts_per_tok=2,
                                 moe_intermediate_size=8, num_dense_layers=1, rope_parameters=dict(rope_type="default", rope_theta=1000.0))),
    "qwen3_next": ("Qwen3Next", dict(layer_types=["linear_attention", "full_attention", "linear_attention"], head_dim=8, linear_num_value_heads=4,
                                     linear_num_key_heads=2, linear_key_head_dim=6, linear_value_head_dim=5, linear_conv_kernel_dim=3, num_experts=4,
                                     num_experts_per_tok=2, moe_intermediate_size=8, shared_expert_intermediate_size=8, mlp_only_layers=[0],
                                     rope_parameters=dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=0.5))),
    "granitemoehybrid": ("GraniteMoeHybrid", dict(layer_types=["mamba", "attention", "mamba"], mamba_n_heads=4, mamba_d_head=12, mamba_n_groups=2,
                                                  mamba_d_state=6, mamba_d_conv=3, mamba_chunk_size=8, num_local_experts=4, num_experts_per_tok=2,
                                                  intermediate_size=8, shared_intermediate_size=10, residual_multiplier=0.5, mamba_proj_bias=True,
                                                  position_embedding_type="rope", time_step_limit=(0.1, 2.0))),
    "falcon_h1": ("FalconH1", dict(num_hidden_layers=2, mamba_d_ssm=20, mamba_n_heads=4, mamba_d_head=5, mamba_n_groups=2, mamba_d_state=6, mamba_d_conv=3,
                                   mamba_chunk_size=8, mamba_rms_norm=True, mamba_norm_before_gate=True, embedding_multiplier=1.5, lm_head_multiplier=0.5,
                                   mlp_multipliers=[0.75, 1.25], key_multiplier=0.5, attention_in_multiplier=1.5, attention_out_multiplier=0.75,
                                   ssm_multipliers=[0.5, 1.5, 0.75, 1.25, 2.0], ssm_in_multiplier=0.75, ssm_out_multiplier=1.25,
                                   rope_parameters=dict(rope_type="default", rope_theta=1000.0))),
    "nemotron_h": ("NemotronH", dict(num_hidden_layers=None, layers_block_type=["mamba", "attention", "moe", "mlp"], head_dim=8, mamba_num_heads=4, mamba_head_dim=5,
                                     n_groups=2, ssm_state_size=6, conv_kernel=3, chunk_size=32, n_routed_experts=4, num_experts_per_tok=2,
                                     moe_intermediate_size=8, moe_shared_expert_intermediate_size=10, routed_scaling_factor=1.5, use_mamba_kernels=False,
                                     time_step_min=0.1, use_bias=True)),
    "deepseek_v2": ("DeepseekV2", dict(num_attention_heads=3, num_key_value_heads=3, q_lora_rank=None, kv_lora_rank=14, qk_nope_head_dim=6,
                                       qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=6, num_experts_per_tok=3, n_group=3, topk_group=2,
                                       topk_method="group_limited_greedy", routed_scaling_factor=2.0, moe_intermediate_size=8,
                                       first_k_dense_replace=1, n_shared_experts=2, tie_word_embeddings=True)),
    "deepseek_v3": ("DeepseekV3", dict(num_attention_heads=3, num_key_value_heads=3, q_lora_rank=10, kv_lora_rank=14, qk_nope_head_dim=6,
                                       qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1,
                                       moe_intermediate_size=8, first_k_dense_replace=1, n_shared_experts=1,
                                       rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=2.0, mscale=1.0, mscale_all_dim=1.0,
                                                            original_max_position_embeddings=16))),
}
ENCODERS = {
    "bert": ("Bert", dict(pad_token_id=0, type_vocab_size=2)),
    "camembert": ("Camembert", dict(pad_token_id=1, type_vocab_size=1)),
    "distilbert": ("DistilBert", dict(dim=24, hidden_dim=28, n_layers=3, n_heads=4, intermediate_size=None)),
    "t5": ("T5Encoder", dict(d_model=24, d_kv=8, d_ff=28, num_layers=3, num_heads=4, feed_forward_proj="gated-gelu", relative_attention_num_buckets=8,
                             relative_attention_max_distance=16)),
    "umt5": ("UMT5Encoder", dict(d_model=24, d_kv=6, d_ff=28, num_layers=3, num_heads=3, feed_forward_proj="relu", relative_attention_num_buckets=12,
                                 relative_attention_max_distance=9)),
    "roberta": ("XLMRoberta", dict(pad_token_id=1, type_vocab_size=1, layer_norm_eps=1e-5, hidden_act="gelu")),
}
# The encoder reads 13 tokens, the decoder predicts 11.
ENCODER_DECODERS = {
    "t5_decoder": ("T5", dict(d_model=24, d_kv=8, d_ff=28, num_layers=2, num_decoder_layers=3, num_heads=4, feed_forward_proj="gated-gelu",
                              relative_attention_num_buckets=8, relative_attention_max_distance=9, decoder_start_token_id=3)),
    "umt5_decoder": ("UMT5", dict(d_model=24, d_kv=6, d_ff=28, num_layers=2, num_heads=3, feed_forward_proj="relu", relative_attention_num_buckets=12,
                                  relative_attention_max_distance=9, decoder_start_token_id=0, tie_word_embeddings=False)),
}
CAUSAL = {"Gemma3Text": "Gemma3ForCausalLM"}
# Classes of texts whose configs are named so, too
TEXT_CONFIGS = {"Gemma3n", "Gemma4", "Llama4"}
# config.json as transformers 4 wrote it
OLD_SPELLING = {"llama", "llama_linear"}


def to_old_spelling(config):
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = scaling


@torch.no_grad()
def make(folder, family, options):
    torch.manual_seed(sum(folder.encode()))
    config = getattr(transformers, family + ("TextConfig" if family in TEXT_CONFIGS else "Config"))(**{**SIZES, **options})
    config._attn_implementation = "eager"
    model = getattr(transformers, CAUSAL.get(family, family + "ForCausalLM"))(config).eval()
    for name, parameter in model.named_parameters():
        spread = 0.3 if parameter.dim() == 1 else 0.25
        noise = torch.randn_like(parameter) * spread
        is_weight_of_norm = name.endswith("norm.weight") and ("emma" not in family or family in TEXT_CONFIGS)
        parameter.copy_(noise + 1 if is_weight_of_norm else noise)
    for name, buffer in model.named_buffers():
        if "bias" in name:  # of scores of experts
            buffer.copy_(torch.randn_like(buffer) * 0.3)
        if "layer_scalar" in name:
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    tokens = torch.randint(0, options.get("vocab_size_per_layer_input", SIZES["vocab_size"]), (2, 24))
    logits = model(tokens).logits
    os.makedirs(folder, exist_ok=True)
    if os.path.basename(folder) in MIXTURES:
        model.save_pretrained(folder)
        os.remove(os.path.join(folder, "generation_config.json"))
    else:
        state = {name: value.contiguous() for name, value in model.state_dict().items()}
        if config.tie_word_embeddings:
            state.pop("lm_head.weight")
        save_file(state, os.path.join(folder, "model.safetensors"))
    save_file({"input_ids": tokens, "logits": logits.contiguous()}, os.path.join(folder, "expected.safetensors"))
    written = json.loads(config.to_json_string())
    written["architectures"] = [type(model).__name__]
    if os.path.basename(folder) in OLD_SPELLING:
        to_old_spelling(written)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(written, file, indent=1, sort_keys=True)
        file.write("\n")
    print(os.path.basename(folder), "logits from", logits.min().item(), "to", logits.max().item())


@torch.no_grad()
def make_encoder(folder, family, options):
    torch.manual_seed(sum(folder.encode()))
    is_t5 = "T5" in family
    sizes = {"vocab_size": SIZES["vocab_size"], **options} if is_t5 else {**SIZES, "num_key_value_heads": None, **options}
    config = getattr(transformers, family.replace("Encoder", "") + "Config")(**sizes)
    config._attn_implementation = "eager"
    model = getattr(transformers, family + "Model")(config, **({} if is_t5 or family == "DistilBert" else dict(add_pooling_layer=False))).eval()
    for name, parameter in model.named_parameters():
        noise = torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else 0.25)
        parameter.copy_(noise + 1 if name.lower().endswith(("layernorm.weight", "layer_norm.weight")) else noise)
    tokens = torch.randint(3, SIZES["vocab_size"], (2, 24))  # none is padding
    states = model(tokens).last_hidden_state
    os.makedirs(folder, exist_ok=True)
    state = {name: value.contiguous() for name, value in model.state_dict().items() if name != "encoder.embed_tokens.weight"}
    save_file(state, os.path.join(folder, "model.safetensors"))
    expected = {"input_ids": tokens, "mean": states.mean(1).contiguous(), "first": states[:, 0].contiguous()}
    save_file(expected, os.path.join(folder, "expected.safetensors"))
    written = json.loads(config.to_json_string())
    written["architectures"] = [type(model).__name__]
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(written, file, indent=1, sort_keys=True)
        file.write("\n")


@torch.no_grad()
def make_encoder_decoder(folder, family, options):
    torch.manual_seed(sum(folder.encode()))
    config = getattr(transformers, family + "Config")(vocab_size=SIZES["vocab_size"], pad_token_id=0, eos_token_id=1, **options)
    config._attn_implementation = "eager"
    model = getattr(transformers, family + "ForConditionalGeneration")(config).eval()
    has_own_head = options.get("tie_word_embeddings") is False
    if has_own_head:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.shared.weight))
    for name, parameter in model.named_parameters():
        noise = torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else 0.25)
        parameter.copy_(noise + 1 if name.endswith("layer_norm.weight") else noise)
    tokens = torch.randint(3, SIZES["vocab_size"], (2, 24))  # none is padding
    source, target = tokens[:, :13], tokens[:, 13:]
    start = torch.full((2, 1), config.decoder_start_token_id)
    logits = model(input_ids=source, decoder_input_ids=torch.cat([start, target], 1)).logits
    os.makedirs(folder, exist_ok=True)
    repeated = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"} | (set() if has_own_head else {"lm_head.weight"})
    state = {name: value.contiguous() for name, value in model.state_dict().items() if name not in repeated}
    save_file(state, os.path.join(folder, "model.safetensors"))
    save_file({"input_ids": tokens, "logits": logits.contiguous()}, os.path.join(folder, "expected.safetensors"))
    written = json.loads(config.to_json_string())
    written["architectures"] = [type(model).__name__]
    written["tie_word_embeddings"] = not has_own_head  # as published checkpoints say it
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(written, file, indent=1, sort_keys=True)
        file.write("\n")
    print(os.path.basename(folder), "logits from", logits.min().item(), "to", logits.max().item())


if __name__ == "__main__":
    base = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forward")
    for cases, maker in ((CASES, make), (MIXTURES, make), (ENCODERS, make_encoder), (ENCODER_DECODERS, make_encoder_decoder)):
        for case, (family, options) in cases.items():
            if len(sys.argv) == 1 or case in sys.argv[1:]:
                maker(os.path.join(base, case), family, options)
