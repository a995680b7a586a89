"""Families that continue a text: dense, mixtures of experts, state spaces and hybrids. family: (class, model_type, config, inputs)."""
from family_sizes import (DECODER, DELTA_NET, EXPERTS, GEMMA, HEADS, LATENT, LOCAL_EXPERTS, MAMBA2, ROUTED, SHARED_EXPERT, TIED, TOKENS, VOCAB, WINDOWS,
                          without)


def causal(prefix, model_type, *parts, **settings):
    config = {}
    for part in (*parts, settings):
        config.update(part)
    return f"{prefix}ForCausalLM", model_type, config, "text"


ENDS = without(TOKENS, "pad_token_id")
GPT = dict(vocab_size=VOCAB, n_embd=256, n_layer=2, n_head=4, n_positions=128)
SMALL = dict(vocab_size=VOCAB, hidden_size=256, num_hidden_layers=2)
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=128)
LLAMA4 = dict(intermediate_size=256, intermediate_size_mlp=512, num_local_experts=4, num_experts_per_tok=1, interleave_moe_layer_step=2, moe_layers=[1],
              attention_chunk_size=128)
PER_LAYER = dict(vocab_size_per_layer_input=VOCAB, hidden_size_per_layer_input=64, num_kv_shared_layers=0)
GEMMA4 = dict(GEMMA, **WINDOWS, global_head_dim=64)

DENSE = {
    "llama": causal("Llama", "llama", HEADS),
    "llama-tied": causal("Llama", "llama", HEADS, TIED),
    "llama-llama3rope": causal("Llama", "llama", HEADS, rope_parameters=LLAMA3_ROPE),
    "llama-biases": causal("Llama", "llama", HEADS, attention_bias=True, mlp_bias=True),
    "mistral": causal("Mistral", "mistral", HEADS, sliding_window=None),
    "ministral": causal("Ministral", "ministral", HEADS, WINDOWS),
    "ministral3": causal("Ministral3", "ministral3", HEADS, sliding_window=None),
    "qwen2": causal("Qwen2", "qwen2", DECODER),
    "qwen2-tied": causal("Qwen2", "qwen2", DECODER, TIED),
    "qwen3": causal("Qwen3", "qwen3", HEADS),
    "qwen3-classifier": ("Qwen3ForSequenceClassification", "qwen3", dict(HEADS, num_labels=3), "text"),
    "gemma": causal("Gemma", "gemma", GEMMA),
    "gemma2": causal("Gemma2", "gemma2", GEMMA, query_pre_attn_scalar=64, sliding_window=64),
    "gemma3_text": causal("Gemma3", "gemma3_text", GEMMA, num_hidden_layers=6, query_pre_attn_scalar=64, sliding_window=64),
    "gemma3-embedding": ("Gemma3TextModel", "gemma3_text", dict(GEMMA, num_hidden_layers=6, query_pre_attn_scalar=64, sliding_window=64,
                                                               use_bidirectional_attention=True), "text"),
    "gemma3n_text": causal("Gemma3n", "gemma3n_text", GEMMA, PER_LAYER, intermediate_size=[512] * 4, num_hidden_layers=4, sliding_window=64, laurel_rank=32,
                           altup_num_inputs=4, layer_types=["sliding_attention", "full_attention"] * 2, activation_sparsity_pattern=[0.0] * 4),
    "gemma4_text": causal("Gemma4", "gemma4_text", GEMMA4, PER_LAYER),
    "phi": causal("Phi", "phi", DECODER, num_key_value_heads=4),
    "phi3": causal("Phi3", "phi3", DECODER),
    "smollm3": causal("SmolLM3", "smollm3", DECODER, TIED, no_rope_layers=[1, 0]),
    "olmo": causal("Olmo", "olmo", DECODER),
    "olmo2": causal("Olmo2", "olmo2", DECODER),
    "olmo3": causal("Olmo3", "olmo3", DECODER, WINDOWS),
    "granite": causal("Granite", "granite", DECODER, TIED, embedding_multiplier=2.0, logits_scaling=2.0, residual_multiplier=0.5, attention_multiplier=0.125),
    "exaone4": causal("Exaone4", "exaone4", DECODER, WINDOWS, sliding_window_pattern="LG"),
    "seed_oss": causal("SeedOss", "seed_oss", HEADS),
    "hunyuan_v1_dense": causal("HunYuanDenseV1", "hunyuan_v1_dense", HEADS),
    "nemotron": causal("Nemotron", "nemotron", DECODER),
    "arcee": causal("Arcee", "arcee", HEADS),
    "apertus": causal("Apertus", "apertus", DECODER),
    "helium": causal("Helium", "helium", HEADS),
    "ernie4_5": causal("Ernie4_5", "ernie4_5", HEADS),
    "glm": causal("Glm", "glm", HEADS),
    "glm4": causal("Glm4", "glm4", HEADS),
    "cohere": causal("Cohere", "cohere", DECODER, TIED),
    "cohere2": causal("Cohere2", "cohere2", DECODER, TIED, WINDOWS),
    "stablelm": causal("StableLm", "stablelm", DECODER),
    "starcoder2": causal("Starcoder2", "starcoder2", DECODER, sliding_window=None),
    "persimmon": causal("Persimmon", "persimmon", DECODER, num_key_value_heads=4),
    "gpt2": ("GPT2LMHeadModel", "gpt2", dict(GPT, n_ctx=128, **ENDS), "text"),
    "openai-gpt": ("OpenAIGPTLMHeadModel", "openai-gpt", GPT, "text"),
    "gpt_bigcode": causal("GPTBigCode", "gpt_bigcode", GPT, ENDS, n_inner=512),
    "gptj": causal("GPTJ", "gptj", GPT, ENDS, rotary_dim=32),
    "codegen": causal("CodeGen", "codegen", GPT, ENDS, n_ctx=128, rotary_dim=32),
    "gpt_neo": causal("GPTNeo", "gpt_neo", ENDS, vocab_size=VOCAB, hidden_size=256, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
                      max_position_embeddings=128, window_size=16),
    "gpt_neox": causal("GPTNeoX", "gpt_neox", DECODER),
    "opt": causal("OPT", "opt", SMALL, TOKENS, ffn_dim=512, num_attention_heads=4, max_position_embeddings=128, word_embed_proj_dim=256),
    "falcon": causal("Falcon", "falcon", SMALL, ENDS, num_attention_heads=4),
    "falcon-new": causal("Falcon", "falcon", SMALL, ENDS, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True, tie_word_embeddings=False),
    "bloom": causal("Bloom", "bloom", TOKENS, vocab_size=VOCAB, hidden_size=256, n_layer=2, n_head=4),
    "mpt": causal("Mpt", "mpt", vocab_size=VOCAB, d_model=256, n_layers=2, n_heads=4, max_seq_len=128, expansion_ratio=2),
    "xglm": causal("XGLM", "xglm", ENDS, vocab_size=VOCAB, d_model=256, ffn_dim=512, num_layers=2, attention_heads=4, max_position_embeddings=128,
                   pad_token_id=1),
    "biogpt": causal("BioGpt", "biogpt", SMALL, TOKENS, num_attention_heads=4, intermediate_size=512, max_position_embeddings=128),
    "trocr": causal("TrOCR", "trocr", TOKENS, vocab_size=VOCAB, d_model=256, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=512,
                    max_position_embeddings=128, is_decoder=True, cross_attention_hidden_size=256, decoder_start_token_id=257),
    "modernbert-decoder": causal("ModernBertDecoder", "modernbert-decoder", SMALL, TOKENS, intermediate_size=512, num_attention_heads=4,
                                 max_position_embeddings=128, cls_token_id=256, sep_token_id=257),
}

MIXTURES = {
    "mixtral": causal("Mixtral", "mixtral", HEADS, LOCAL_EXPERTS, sliding_window=None),
    "qwen2_moe": causal("Qwen2Moe", "qwen2_moe", DECODER, EXPERTS, shared_expert_intermediate_size=256),
    "qwen3_moe": causal("Qwen3Moe", "qwen3_moe", HEADS, EXPERTS, norm_topk_prob=True),
    "qwen3_next": causal("Qwen3Next", "qwen3_next", HEADS, SHARED_EXPERT, DELTA_NET),
    "qwen3_5_moe_text": causal("Qwen3_5Moe", "qwen3_5_moe_text", HEADS, SHARED_EXPERT, DELTA_NET),
    "gpt_oss": causal("GptOss", "gpt_oss", HEADS, LOCAL_EXPERTS, WINDOWS, sliding_window=16),
    "deepseek_v2": causal("DeepseekV2", "deepseek_v2", DECODER, LATENT, ROUTED, topk_method="greedy", num_key_value_heads=4),
    "deepseek_v3": causal("DeepseekV3", "deepseek_v3", DECODER, LATENT, ROUTED, num_key_value_heads=4, n_group=2),
    "glm4_moe": causal("Glm4Moe", "glm4_moe", HEADS, ROUTED),
    "dots1": causal("Dots1", "dots1", HEADS, ROUTED, layer_types=["full_attention"] * 2),
    "solar_open": causal("SolarOpen", "solar_open", HEADS, ROUTED),
    "llama4_text": causal("Llama4", "llama4_text", HEADS, LLAMA4),
    "gemma4_moe": causal("Gemma4", "gemma4_text", GEMMA4, hidden_size_per_layer_input=0, num_kv_shared_layers=0, enable_moe_block=True, num_experts=4,
                         top_k_experts=2, moe_intermediate_size=128),
    "olmoe": causal("Olmoe", "olmoe", DECODER, num_experts=4, num_experts_per_tok=2, intermediate_size=256),
    "granitemoe": causal("GraniteMoe", "granitemoe", DECODER, LOCAL_EXPERTS),
    "minimax_m2": causal("MiniMaxM2", "minimax_m2", HEADS, LOCAL_EXPERTS),
    "phimoe": causal("Phimoe", "phimoe", DECODER, LOCAL_EXPERTS, sliding_window=None),
    "hunyuan_v1_moe": causal("HunYuanMoEV1", "hunyuan_v1_moe", HEADS, num_experts=4, moe_topk=2, moe_intermediate_size=[128, 128]),
    "ernie4_5_moe": causal("Ernie4_5_Moe", "ernie4_5_moe", DECODER, moe_num_experts=4, moe_k=2, moe_intermediate_size=128, moe_num_shared_experts=1,
                           moe_layer_start_index=1, moe_layer_end_index=-1, moe_layer_interval=1),
    "dbrx": causal("Dbrx", "dbrx", vocab_size=VOCAB, d_model=256, n_heads=4, n_layers=2, max_seq_len=128,
                   attn_config=dict(kv_n_heads=2, clip_qkv=8, rope_theta=10000.0),
                   ffn_config=dict(ffn_hidden_size=256, moe_num_experts=4, moe_top_k=2, hidden_size=256)),
    "jetmoe": causal("JetMoe", "jetmoe", SMALL, TOKENS, LOCAL_EXPERTS, num_key_value_heads=4, kv_channels=32, max_position_embeddings=128),
}

STATE_SPACES = {
    "qwen3_5_text": causal("Qwen3_5", "qwen3_5_text", HEADS, DELTA_NET),
    "lfm2": causal("Lfm2", "lfm2", DECODER, TIED, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False),
    "lfm2_moe": causal("Lfm2Moe", "lfm2_moe", DECODER, EXPERTS, num_dense_layers=1, layer_types=["conv", "full_attention"]),
    "mamba": causal("Mamba", "mamba", SMALL, TOKENS, state_size=16),
    "mamba2": causal("Mamba2", "mamba2", SMALL, TOKENS, state_size=32, num_heads=8, head_dim=64, n_groups=1),
    "falcon_h1": causal("FalconH1", "falcon_h1", HEADS, MAMBA2, mamba_d_ssm=256, mamba_n_heads=4),
    "jamba": causal("Jamba", "jamba", DECODER, num_hidden_layers=4, num_experts=4, num_experts_per_tok=2, attn_layer_period=2, attn_layer_offset=1,
                    expert_layer_period=2, expert_layer_offset=1, mamba_d_state=16, mamba_dt_rank=16, use_mamba_kernels=False),
    "bamba": causal("Bamba", "bamba", DECODER, MAMBA2, attn_layer_indices=[1]),
    "granitemoehybrid": causal("GraniteMoeHybrid", "granitemoehybrid", DECODER, LOCAL_EXPERTS, MAMBA2, shared_intermediate_size=256,
                               layer_types=["mamba", "attention"], layers_block_type=["mamba", "attention"]),
    "nemotron_h": causal("NemotronH", "nemotron_h", HEADS, without(ROUTED, "first_k_dense_replace"), num_hidden_layers=4,
                         layers_block_type=["mamba", "attention", "moe", "mlp"], mamba_num_heads=8, mamba_head_dim=64, ssm_state_size=32, n_groups=1,
                         moe_shared_expert_intermediate_size=128, use_mamba_kernels=False),
    "recurrent_gemma": causal("RecurrentGemma", "recurrent_gemma", GEMMA, num_hidden_layers=3, lru_width=256, attention_window_size=64,
                              block_types=["recurrent", "recurrent", "attention"]),
    "rwkv": causal("Rwkv", "rwkv", SMALL, ENDS, attention_hidden_size=256, intermediate_size=512, context_length=128),
}

DECODERS = {**DENSE, **MIXTURES, **STATE_SPACES}
