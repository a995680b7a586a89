"""Other ways in which a checkpoint of a family comes. variant: (family, how it is written).

dtype         of the weights; config.json says it, too
shard_bytes   several files and an index
names         "modules": tensors are called as the modules of transformers 5 are, its mixtures of experts are fused;
              "base": without the prefix of the base model, as the first GPT-2 and BLOOM; "old": of LayerNorm `gamma`, `beta`, of weight
              norms `weight_g`, `weight_v`
jina_bert     of BERT: as jina-embeddings-v2, whose code is its own, with slopes for positions and gates; "code" as jina-embeddings-v2-base-code
mxfp4         experts as the blocks and scales that gpt-oss is published with
own_head      a head of its own where transformers ties it by default: T5 1.1, mT5

Any family or variant may also be named with -bf16 or -f16 behind it.
"""

GPT_OSS_ODD = dict(hidden_size=192, intermediate_size=96, num_attention_heads=9, num_key_value_heads=3, head_dim=32, num_local_experts=5,
                   num_experts_per_tok=3, tie_word_embeddings=True, num_hidden_layers=3, layer_types=["full_attention", "sliding_attention", "full_attention"])

VARIANTS = {
    "llama-bf16": ("llama", dict(dtype="bfloat16")),
    "qwen3-tied-bf16": ("qwen3", dict(dtype="bfloat16", config=dict(tie_word_embeddings=True))),
    "qwen2_vl-bf16": ("qwen2_vl", dict(dtype="bfloat16")),
    "qwen3_moe-bf16": ("qwen3_moe", dict(dtype="bfloat16")),
    "gemma3-bf16": ("gemma3", dict(dtype="bfloat16")),
    "t5-bf16": ("t5", dict(dtype="bfloat16")),
    "whisper-bf16": ("whisper", dict(dtype="bfloat16")),
    "bert-f16": ("bert", dict(dtype="float16")),
    "llama-tied-sharded": ("llama-tied", dict(shard_bytes=1_000_000)),
    "qwen3_moe-sharded": ("qwen3_moe", dict(shard_bytes=1_000_000)),
    "gemma3-sharded": ("gemma3", dict(shard_bytes=1_000_000)),
    "qwen3_5-bf16-sharded": ("qwen3_5", dict(dtype="bfloat16", shard_bytes=1_000_000)),
    "qwen2_vl-modules": ("qwen2_vl", dict(names="modules")),
    "llava-modules": ("llava", dict(names="modules")),
    "vit-modules": ("vit", dict(names="modules")),
    "mixtral-modules": ("mixtral", dict(names="modules")),
    "qwen3_5_moe-modules": ("qwen3_5_moe", dict(names="modules")),
    "qwen3_5_moe_text-modules": ("qwen3_5_moe_text", dict(names="modules")),
    "gpt2-base": ("gpt2", dict(names="base")),
    "bloom-base": ("bloom", dict(names="base")),
    "bert-old": ("bert", dict(names="old")),
    "wav2vec2-old": ("wav2vec2", dict(names="old")),
    "t5-v1_1": ("t5", dict(own_head=True, config=dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False))),
    "granitemoehybrid-dense": ("granitemoehybrid", dict(config=dict(num_local_experts=0, num_experts_per_tok=0))),
    "granitemoehybrid-attention": ("granitemoehybrid", dict(config=dict(layer_types=["attention"] * 2, layers_block_type=["attention"] * 2))),
    "granitemoehybrid-plain": ("granitemoehybrid", dict(config=dict(layer_types=["attention"] * 2, layers_block_type=["attention"] * 2,
                                                                    num_local_experts=0, num_experts_per_tok=0))),
    "jina-bert": ("bert-model", dict(jina_bert="base")),
    "jina-bert-code": ("bert-model", dict(jina_bert="code")),
    "gpt_oss-mxfp4": ("gpt_oss", dict(mxfp4=True)),
    "gpt_oss-odd": ("gpt_oss", dict(config=GPT_OSS_ODD)),
    "gpt_oss-odd-mxfp4": ("gpt_oss", dict(mxfp4=True, config=GPT_OSS_ODD)),
    "deepseek_v2-plain": ("deepseek_v2", dict(config=dict(q_lora_rank=None, attention_bias=True, num_attention_heads=3, num_key_value_heads=3,
                                                          hidden_size=192, qk_rope_head_dim=16, v_head_dim=24))),
    "deepseek_v3-plain": ("deepseek_v3", dict(config=dict(q_lora_rank=None, attention_bias=True, num_attention_heads=3, num_key_value_heads=3,
                                                          hidden_size=192, qk_rope_head_dim=16, v_head_dim=24, n_group=4, topk_group=2,
                                                          n_routed_experts=8, num_experts_per_tok=3, tie_word_embeddings=True))),
    "lfm2-odd": ("lfm2", dict(config=dict(layer_types=["conv", "full_attention", "conv"], num_hidden_layers=3, conv_bias=True, conv_L_cache=4,
                                          block_auto_adjust_ff_dim=True, block_multiple_of=48, block_ffn_dim_multiplier=1.3, hidden_size=192,
                                          num_attention_heads=6, num_key_value_heads=3, tie_word_embeddings=False))),
    "gemma4-shared": ("gemma4_text", dict(config=dict(num_hidden_layers=6, layer_types=["sliding_attention", "full_attention"] * 3, sliding_window=20,
                                                      global_head_dim=128, num_kv_shared_layers=3, use_double_wide_mlp=True,
                                                      final_logit_softcapping=5.0))),
    "gemma4-keys": ("gemma4_text", dict(config=dict(hidden_size_per_layer_input=0, global_head_dim=128, attention_k_eq_v=True,
                                                    num_global_key_value_heads=1, final_logit_softcapping=5.0))),
    "gemma4-experts": ("gemma4_moe", dict(config=dict(num_hidden_layers=4, layer_types=["sliding_attention", "full_attention"] * 2, global_head_dim=128,
                                                      attention_k_eq_v=True, num_global_key_value_heads=1, final_logit_softcapping=5.0))),
    "gemma3n-shared": ("gemma3n_text", dict(config=dict(num_hidden_layers=4, intermediate_size=[512, 384, 512, 256], num_kv_shared_layers=2,
                                                        sliding_window=20, altup_num_inputs=3, activation_sparsity_pattern=[0.5, 0.0, 0.9, 0.0],
                                                        final_logit_softcapping=5.0))),
    "mt5-own-head": ("mt5", dict(own_head=True, config=dict(tie_word_embeddings=False))),
}
DTYPES = {"-bf16": "bfloat16", "-f16": "float16"}


def variant_of(name):
    """(family, how it is written) of a name."""
    if name in VARIANTS:
        return VARIANTS[name]
    for suffix, dtype in DTYPES.items():
        if name.endswith(suffix):
            family, variant = variant_of(name.removesuffix(suffix))
            return family, {**variant, "dtype": dtype}
    return name, {}
