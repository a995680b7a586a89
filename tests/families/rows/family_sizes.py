"""Sizes that the tables of families share. 256 columns: group sizes of 32 to 256 fit, and a checkpoint stays near 5 MB.

A row of a table is (class, model_type, config, inputs). `inputs` names what the model is called with (family_inputs.py).
"""

VOCAB = 288
IMAGE_TOKEN = 280

TOKENS = dict(bos_token_id=256, eos_token_id=257, pad_token_id=258)
DECODER = dict(vocab_size=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
               max_position_embeddings=512, tie_word_embeddings=False, **TOKENS)
HEADS = dict(DECODER, head_dim=64)
TIED = dict(tie_word_embeddings=True)
GEMMA = {key: value for key, value in HEADS.items() if key != "tie_word_embeddings"}
WINDOWS = dict(sliding_window=64, layer_types=["sliding_attention", "full_attention"])
ENCODER = dict(vocab_size=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128,
               type_vocab_size=2, pad_token_id=258)
ROBERTA = dict(ENCODER, pad_token_id=1, max_position_embeddings=130)
VISION = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)
ENCODER_DECODER = dict(vocab_size=VOCAB, d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                       encoder_ffn_dim=512, decoder_ffn_dim=512, max_position_embeddings=128, decoder_start_token_id=257, forced_eos_token_id=257,
                       **TOKENS)
T5 = dict(vocab_size=VOCAB, d_model=256, d_kv=64, d_ff=512, num_layers=2, num_heads=4, decoder_start_token_id=256, pad_token_id=258, eos_token_id=257)
GATED_T5 = dict(T5, feed_forward_proj="gated-gelu")

# Attention of DeepSeek; mixtures of experts as Qwen, DeepSeek and Mixtral call their sizes; gated delta nets; Mamba 2 inside hybrids.
LATENT = dict(q_lora_rank=64, kv_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=64)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=128)
SHARED_EXPERT = dict(EXPERTS, shared_expert_intermediate_size=128)
ROUTED = dict(n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=128, first_k_dense_replace=1, n_group=1, topk_group=1)
LOCAL_EXPERTS = dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=256)
DELTA_NET = dict(linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32,
                 layer_types=["linear_attention", "full_attention"])
MAMBA2 = dict(mamba_n_heads=8, mamba_d_head=64, mamba_d_state=32, mamba_n_groups=1, mamba_expand=2)

# Text beside images; backbones of detectors; waves of speech.
CLIP_TEXT = dict({key: value for key, value in ENCODER.items() if key != "type_vocab_size"}, bos_token_id=256, eos_token_id=257)
SWIN = dict(image_size=32, patch_size=4, embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=10)
RESNET = dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"], layer_type="basic")
WAVES = dict(vocab_size=64, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, conv_dim=[64, 64], conv_stride=[5, 2],
             conv_kernel=[10, 3], num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)


def sections(*sizes, **more):
    """Rotary positions of time, height and width."""
    return dict(rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=list(sizes), **more))


def without(settings, *names):
    return {key: value for key, value in settings.items() if key not in names}
