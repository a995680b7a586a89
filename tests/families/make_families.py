#!/usr/bin/env python3
"""Tiny random checkpoints of many model families, as transformers' save_pretrained writes them, for tests of what loads.

    python3 make_families.py OUT [FAMILY...]          needs torch, transformers 5, safetensors

OUT/<family>/ gets config.json, model.safetensors (F32, or BF16 for families called *-bf16), a tokenizer of the family's kind for
text models (byte-level BPE on the tokenizer of shared/models/tiny-llama, or a small sentencepiece or WordPiece one), and beside the folder OUT/<family>.inputs.safetensors, what the model is called with.
Weights are of the size that keeps activations alive, rows differ in size, and a few are outliers; norms, biases and
gates are not at their initial zeros and ones. Ends with a line a family: parameters, bytes, class.
"""
import json
import os
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["TQDM_DISABLE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER = os.path.join(HERE, "..", "files", "tiny-llama")
VOCAB = 288

# What most decoders call their sizes. 256 columns: the K types of llama.cpp fit.
D = dict(vocab_size=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
         max_position_embeddings=512, bos_token_id=256, eos_token_id=257, pad_token_id=258, tie_word_embeddings=False)
H = dict(D, head_dim=64)
MLA = dict(q_lora_rank=64, kv_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=64)
MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=128)
ROUTED = dict(n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=128, first_k_dense_replace=1)
E = dict(vocab_size=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128,
         type_vocab_size=2, pad_token_id=258)
V = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)
T3 = dict(vocab_size=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=64,
          max_position_embeddings=512, bos_token_id=256, eos_token_id=257, pad_token_id=258)
LINEAR = dict(linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32)
QWEN_VISION = dict(depth=2, hidden_size=128, intermediate_size=256, num_heads=4, patch_size=8, spatial_merge_size=2, temporal_patch_size=2)

# family: class, model_type, config. "inputs" says what it is called with (default text). Nested configs are dictionaries.
FAMILIES = {
    "llama": ("LlamaForCausalLM", "llama", H),
    "llama-tied": ("LlamaForCausalLM", "llama", dict(H, tie_word_embeddings=True)),
    "llama-llama3rope": ("LlamaForCausalLM", "llama", dict(H, rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0,
                                                        high_freq_factor=4.0, original_max_position_embeddings=128))),
    "llama-biases": ("LlamaForCausalLM", "llama", dict(H, attention_bias=True, mlp_bias=True)),
    "llama-bf16": ("LlamaForCausalLM", "llama", H),
    "mistral": ("MistralForCausalLM", "mistral", dict(H, sliding_window=None)),
    "qwen2": ("Qwen2ForCausalLM", "qwen2", D),
    "qwen2-tied": ("Qwen2ForCausalLM", "qwen2", dict(D, tie_word_embeddings=True)),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "qwen2_moe", dict(D, **MOE, shared_expert_intermediate_size=256)),
    "qwen3": ("Qwen3ForCausalLM", "qwen3", H),
    "qwen3-tied-bf16": ("Qwen3ForCausalLM", "qwen3", dict(H, tie_word_embeddings=True)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "qwen3_moe", dict(H, **MOE, norm_topk_prob=True)),
    "qwen3_next": ("Qwen3NextForCausalLM", "qwen3_next", dict(H, **MOE, **LINEAR, shared_expert_intermediate_size=128,
                                                             layer_types=["linear_attention", "full_attention"])),
    "qwen3_5_text": ("Qwen3_5ForCausalLM", "qwen3_5_text", dict(H, **LINEAR, layer_types=["linear_attention", "full_attention"])),
    "mixtral": ("MixtralForCausalLM", "mixtral", dict(H, num_local_experts=4, num_experts_per_tok=2, intermediate_size=256, sliding_window=None)),
    "gpt_oss": ("GptOssForCausalLM", "gpt_oss", dict(H, num_local_experts=4, num_experts_per_tok=2, intermediate_size=256, sliding_window=16,
                                                    layer_types=["sliding_attention", "full_attention"])),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "deepseek_v3", dict(D, **MLA, **ROUTED, num_key_value_heads=4, n_group=2, topk_group=1)),
    "glm4_moe": ("Glm4MoeForCausalLM", "glm4_moe", dict(H, **ROUTED, n_group=1, topk_group=1)),
    "llama4_text": ("Llama4ForCausalLM", "llama4_text", dict(H, intermediate_size=256, intermediate_size_mlp=512, num_local_experts=4, num_experts_per_tok=1,
                                                            interleave_moe_layer_step=2, moe_layers=[1], attention_chunk_size=128)),
    "gemma": ("GemmaForCausalLM", "gemma", T3),
    "gemma2": ("Gemma2ForCausalLM", "gemma2", dict(T3, query_pre_attn_scalar=64, sliding_window=64)),
    "gemma3_text": ("Gemma3ForCausalLM", "gemma3_text", dict(T3, num_hidden_layers=6, query_pre_attn_scalar=64, sliding_window=64)),
    "gemma4_text": ("Gemma4ForCausalLM", "gemma4_text", dict(T3, global_head_dim=64, vocab_size_per_layer_input=VOCAB, hidden_size_per_layer_input=64, sliding_window=64,
                                                            num_kv_shared_layers=0, layer_types=["sliding_attention", "full_attention"])),
    "phi": ("PhiForCausalLM", "phi", dict(D, num_key_value_heads=4)),
    "phi3": ("Phi3ForCausalLM", "phi3", D),
    "smollm3": ("SmolLM3ForCausalLM", "smollm3", dict(D, no_rope_layers=[1, 0], tie_word_embeddings=True)),
    "olmo2": ("Olmo2ForCausalLM", "olmo2", D),
    "olmoe": ("OlmoeForCausalLM", "olmoe", dict(D, num_experts=4, num_experts_per_tok=2, intermediate_size=256)),
    "granite": ("GraniteForCausalLM", "granite", dict(D, tie_word_embeddings=True, embedding_multiplier=2.0, logits_scaling=2.0, residual_multiplier=0.5,
                                                     attention_multiplier=0.125)),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", "granitemoehybrid", dict(D, num_local_experts=4, num_experts_per_tok=2, intermediate_size=256,
                         shared_intermediate_size=256, mamba_n_heads=8, mamba_d_head=64, mamba_d_state=32, mamba_n_groups=1, mamba_expand=2,
                         layer_types=["mamba", "attention"], layers_block_type=["mamba", "attention"])),
    "lfm2": ("Lfm2ForCausalLM", "lfm2", dict(D, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False, tie_word_embeddings=True)),
    "gpt2": ("GPT2LMHeadModel", "gpt2", dict(vocab_size=VOCAB, n_embd=256, n_layer=2, n_head=4, n_positions=128, n_ctx=128, bos_token_id=256, eos_token_id=257)),
    "gpt_neox": ("GPTNeoXForCausalLM", "gpt_neox", D),
    "opt": ("OPTForCausalLM", "opt", dict(vocab_size=VOCAB, hidden_size=256, ffn_dim=512, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128,
                                         word_embed_proj_dim=256, bos_token_id=256, eos_token_id=257, pad_token_id=258)),
    "falcon": ("FalconForCausalLM", "falcon", dict(vocab_size=VOCAB, hidden_size=256, num_hidden_layers=2, num_attention_heads=4, bos_token_id=256, eos_token_id=257)),
    "falcon_h1": ("FalconH1ForCausalLM", "falcon_h1", dict(H, mamba_d_ssm=256, mamba_n_heads=4, mamba_d_head=64, mamba_d_state=32, mamba_n_groups=1)),
    "bloom": ("BloomForCausalLM", "bloom", dict(vocab_size=VOCAB, hidden_size=256, n_layer=2, n_head=4, bos_token_id=256, eos_token_id=257, pad_token_id=258)),
    "stablelm": ("StableLmForCausalLM", "stablelm", D),
    "starcoder2": ("Starcoder2ForCausalLM", "starcoder2", dict(D, sliding_window=None)),
    "glm4": ("Glm4ForCausalLM", "glm4", H),
    "ernie4_5": ("Ernie4_5ForCausalLM", "ernie4_5", dict(D, head_dim=64)),
    "mamba": ("MambaForCausalLM", "mamba", dict(vocab_size=VOCAB, hidden_size=256, num_hidden_layers=2, state_size=16, bos_token_id=256, eos_token_id=257, pad_token_id=258)),
    "mamba2": ("Mamba2ForCausalLM", "mamba2", dict(vocab_size=VOCAB, hidden_size=256, num_hidden_layers=2, state_size=32, num_heads=8, head_dim=64, n_groups=1,
                                                  bos_token_id=256, eos_token_id=257, pad_token_id=258)),
    "bert": ("BertForMaskedLM", "bert", E),
    "bert-classifier": ("BertForSequenceClassification", "bert", E),
    "bert-model": ("BertModel", "bert", E),
    "roberta": ("RobertaForMaskedLM", "roberta", dict(E, pad_token_id=1, max_position_embeddings=130)),
    "distilbert": ("DistilBertForSequenceClassification", "distilbert", dict(vocab_size=VOCAB, dim=256, hidden_dim=512, n_layers=2, n_heads=4, pad_token_id=258)),
    "modernbert": ("ModernBertForMaskedLM", "modernbert", dict(vocab_size=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
                   max_position_embeddings=128, pad_token_id=258, bos_token_id=256, eos_token_id=257, cls_token_id=256, sep_token_id=257)),
    "deberta-v2": ("DebertaV2ForSequenceClassification", "deberta-v2", dict(E, relative_attention=True, position_buckets=16, pos_att_type=["p2c", "c2p"], position_biased_input=False)),
    "t5": ("T5ForConditionalGeneration", "t5", dict(vocab_size=VOCAB, d_model=256, d_kv=64, d_ff=512, num_layers=2, num_heads=4, feed_forward_proj="relu", tie_word_embeddings=True,
                                                   decoder_start_token_id=256, pad_token_id=258, eos_token_id=257), "encoder-decoder"),
    "bart": ("BartForConditionalGeneration", "bart", dict(vocab_size=VOCAB, d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
             encoder_ffn_dim=512, decoder_ffn_dim=512, max_position_embeddings=128, bos_token_id=256, eos_token_id=257, pad_token_id=258, decoder_start_token_id=257,
             forced_eos_token_id=257), "encoder-decoder"),
    "whisper": ("WhisperForConditionalGeneration", "whisper", dict(vocab_size=VOCAB, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                encoder_ffn_dim=256, decoder_ffn_dim=256, num_mel_bins=32, max_source_positions=64, max_target_positions=64, bos_token_id=256, eos_token_id=257, pad_token_id=258,
                decoder_start_token_id=256), "audio-features"),
    "wav2vec2": ("Wav2Vec2ForCTC", "wav2vec2", dict(vocab_size=64, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, conv_dim=[64, 64], conv_stride=[5, 2],
                 conv_kernel=[10, 3], num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4), "audio"),
    "vit": ("ViTForImageClassification", "vit", dict(V, num_labels=10), "image"),
    "dinov2": ("Dinov2Model", "dinov2", {k: v for k, v in V.items() if k != "intermediate_size"}, "image"),
    "convnext": ("ConvNextForImageClassification", "convnext", dict(hidden_sizes=[32, 64], depths=[1, 1], num_stages=2, num_labels=10), "image"),
    "clip": ("CLIPModel", "clip", dict(projection_dim=64, text_config=dict({k: v for k, v in E.items() if k != "type_vocab_size"}, bos_token_id=256, eos_token_id=257), vision_config=V), "text-image"),
    "siglip": ("SiglipModel", "siglip", dict(text_config=dict({k: v for k, v in E.items() if k != "type_vocab_size"}, hidden_size=128, intermediate_size=256, bos_token_id=256, eos_token_id=257),
               vision_config=V), "text-image"),
    "llava": ("LlavaForConditionalGeneration", "llava", dict(text_config=dict(H, model_type="llama"), vision_config=dict(V, model_type="clip_vision_model", projection_dim=64), image_token_index=280,
              vision_feature_layer=-1, vision_feature_select_strategy="full"), "llava-17"),
    "qwen2_vl": ("Qwen2VLForConditionalGeneration", "qwen2_vl", dict(text_config=dict(D, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[8, 12, 12])),
                 vision_config=dict(depth=2, embed_dim=128, hidden_size=256, num_heads=4, mlp_ratio=2, patch_size=8, spatial_merge_size=2, temporal_patch_size=2),
                 image_token_id=280, video_token_id=281, vision_start_token_id=282, vision_end_token_id=283), "qwen-vl"),
    "qwen3_vl": ("Qwen3VLForConditionalGeneration", "qwen3_vl", dict(text_config=dict(H, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[12, 10, 10])),
                 vision_config=dict(QWEN_VISION, out_hidden_size=256, num_position_embeddings=64, deepstack_visual_indexes=[0]),
                 image_token_id=280, video_token_id=281, vision_start_token_id=282, vision_end_token_id=283), "qwen-vl"),
    "qwen3_5": ("Qwen3_5ForConditionalGeneration", "qwen3_5", dict(text_config=dict(H, **LINEAR, layer_types=["linear_attention", "full_attention"],
                rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2], partial_rotary_factor=0.25)),
                vision_config=dict(QWEN_VISION, out_hidden_size=256, num_position_embeddings=64), image_token_id=280, video_token_id=281, vision_start_token_id=282, vision_end_token_id=283), "qwen-vl"),
    "gemma3": ("Gemma3ForConditionalGeneration", "gemma3", dict(text_config=dict(T3, num_hidden_layers=6, query_pre_attn_scalar=64, sliding_window=64),
               vision_config=dict(V, vision_use_head=False), mm_tokens_per_image=4, image_token_index=280, image_token_id=280, boi_token_index=281, eoi_token_index=282), "gemma3-4"),
    "mistral3": ("Mistral3ForConditionalGeneration", "mistral3", dict(text_config=dict(H, model_type="mistral", sliding_window=None), vision_config=dict(V, model_type="pixtral", head_dim=32),
                 image_token_index=280, image_token_id=280, spatial_merge_size=2, vision_feature_layer=-1), "mistral3-4"),
}


def write_sentencepiece(folder, unigram, dummy_prefix):
    """tokenizer.model of bytes and letters, as Gemma, Mistral and T5 have it."""
    from transformers.utils import sentencepiece_model_pb2_new as pb2

    kinds = pb2.ModelProto.SentencePiece.Type
    pieces = [("<pad>", 0, kinds.CONTROL), ("</s>", 0, kinds.CONTROL), ("<unk>", 0, kinds.UNKNOWN)] if unigram else [
        ("<unk>", 0, kinds.UNKNOWN), ("<s>", 0, kinds.CONTROL), ("</s>", 0, kinds.CONTROL)]
    pieces += [(f"<0x{byte:02X}>", 0, kinds.BYTE) for byte in range(256)]
    pieces += [(piece, -float(rank), kinds.NORMAL) for rank, piece in enumerate(["\u2581", *"etaoinshrdlucmfwypvbgkqjxz", "\u2581t"])]
    model = pb2.ModelProto()
    for piece, score, kind in pieces[:VOCAB]:
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type = 1 if unigram else 2
    model.trainer_spec.vocab_size = len(model.pieces)
    model.trainer_spec.byte_fallback = True
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = dummy_prefix
    with open(os.path.join(folder, "spiece.model" if unigram else "tokenizer.model"), "wb") as file:
        file.write(model.SerializeToString())


def write_wordpiece(folder):
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'-"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters), *(a + b for a in "thiaon" for b in letters)]
    special = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    added = [dict(id=i, content=t, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) for t, i in special.items()]
    tokenizer = dict(version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True,
                     strip_accents=None, lowercase=True), pre_tokenizer=dict(type="BertPreTokenizer"),
                     post_processor=dict(type="TemplateProcessing", single=[{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], pair=[{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                     special_tokens={t: dict(id=t, ids=[special[t]], tokens=[t]) for t in ("[CLS]", "[SEP]")}),
                     decoder=dict(type="WordPiece", prefix="##", cleanup=True),
                     model=dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100, vocab={w: i for i, w in enumerate(words[:VOCAB])}))
    settings = dict(tokenizer_class="BertTokenizer", do_lower_case=True, cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")
    for name, content in (("tokenizer.json", tokenizer), ("tokenizer_config.json", settings)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(words[:VOCAB]) + "\n")


SENTENCEPIECE = ("gemma", "mistral", "ministral", "phi3", "paligemma", "ernie4_5")
WORDPIECE = ("bert", "distilbert", "electra", "mpnet")


def write_tokenizer(folder, family):
    if family.startswith(("t5", "mt5")) or family.startswith(SENTENCEPIECE):
        return write_sentencepiece(folder, family.startswith(("t5", "mt5")), not family.startswith("gemma"))
    if family.startswith(WORDPIECE):
        return write_wordpiece(folder)
    shutil.copyfile(os.path.join(TOKENIZER, "tokenizer_config.json"), os.path.join(folder, "tokenizer_config.json"))
    with open(os.path.join(TOKENIZER, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    merges = ["\u0120 t", "\u0120 a", "h e", "i n", "r e", "o n", "\u0120t he", "e r", "\u0120 s", "a t", "\u0120 w", "\u0120 o", "e n", "\u0120 c", "i t", "i s", "a n", "o r", "e s",
              "\u0120 b", "e d", "\u0120 f", "in g", "\u0120 p", "o u", "\u0120a n", "a l", "a r", "\u0120t o"]
    if family.startswith("qwen"):  # transformers' class for it adds a token of this name
        names = {"<s>": "<|endoftext|>", "</s>": "<|im_end|>", "<pad>": "<|im_start|>"}
        for token in tokenizer["added_tokens"]:
            token["content"] = names[token["content"]]
        tokenizer["post_processor"] = None
        settings = json.dumps(dict(tokenizer_class="Qwen2Tokenizer", eos_token="<|im_end|>", pad_token="<|endoftext|>", bos_token=None))
        with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
            file.write(settings)
    tokenizer["model"]["vocab"].update({token["content"]: token["id"] for token in tokenizer["added_tokens"]})
    tokenizer["pre_tokenizer"]["use_regex"] = True
    tokenizer["model"]["merges"] = merges
    tokenizer["model"]["vocab"].update({merge.replace(" ", ""): 259 + i for i, merge in enumerate(merges)})
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(tokenizer, file)


def inputs_of(kind, config):
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(0, 250, (2, 24), generator=generator)
    pixels = lambda size: torch.randn((1, 3, size, size), generator=generator)
    name, _, count = kind.partition("-")
    if kind == "text":
        return {"input_ids": ids}
    if kind == "encoder-decoder":
        return {"input_ids": ids, "decoder_input_ids": ids[:, :9].flip(1).contiguous()}
    if kind == "audio-features":
        return {"input_features": torch.randn((1, 32, 128), generator=generator), "decoder_input_ids": ids[:1, :9].contiguous()}
    if kind == "audio":
        return {"input_values": torch.randn((1, 4000), generator=generator)}
    if name == "image":
        return {"pixel_values": pixels(int(count or 32))}
    if kind == "text-image":
        ids[:, -1] = 257
        return {"input_ids": ids, "pixel_values": pixels(32)}
    with_image = lambda n, extra: dict(input_ids=torch.cat([ids[:1, :4], torch.full((1, n), 280), ids[:1, 4:12]], 1), **extra)
    if kind == "qwen-vl":
        grid = torch.tensor([[1, 4, 4]])
        both = with_image(4, {"pixel_values": torch.randn((16, 3 * 2 * 8 * 8), generator=generator), "image_grid_thw": grid})
        both["input_ids"][0, 3] = 282
        both["mm_token_type_ids"] = (both["input_ids"] == 280).long()
        return both
    if name == "mistral3":
        return with_image(int(count), {"pixel_values": pixels(32), "image_sizes": torch.tensor([[32, 32]])})
    if name == "smolvlm":
        return with_image(int(count), {"pixel_values": pixels(32)[None]})
    if name == "gemma3" or config.model_type == "paligemma":
        both = with_image(int(count), {"pixel_values": pixels(32)})
        both["token_type_ids"] = (both["input_ids"] == 280).long()
        return both
    return with_image(int(count), {"pixel_values": pixels(32)})


@torch.no_grad()
def shake(model):
    """Initial weights are all alike and small: make activations count, rows differ, and some weights outliers."""
    generator = torch.Generator().manual_seed(1)
    noise = lambda shape: torch.randn(shape, generator=generator)
    for name, parameter in model.named_parameters():
        if parameter.dim() >= 2:
            fan_in = parameter[0].numel() if parameter.dim() != 3 or "conv" in name else parameter.shape[-1]
            kept = parameter.dim() == 2 and parameter.std() > 2 * fan_in**-0.5 and parameter.std() > 0.5  # A_log, embeddings of unit size
            if kept and "embed" not in name and "emb" not in name:
                continue
            width = 0.5 if "embed" in name or ".wte." in name or name.startswith("shared") else fan_in**-0.5
            values = noise(parameter.shape) * width * torch.exp(0.3 * noise((parameter.shape[0],) + (1,) * (parameter.dim() - 1)))
            outliers = torch.rand(parameter.shape, generator=generator) < 0.002
            parameter.copy_(torch.where(outliers, values * 3, values))
        elif parameter.numel() > 1:
            low, high = parameter.min(), parameter.max()
            if low == high == 1:
                parameter.mul_(1 + 0.2 * noise(parameter.shape))
            elif low == high == 0:
                parameter.copy_(0.1 * noise(parameter.shape))


def make(out, family, row):
    model_class, model_type, settings, kind = (*row, "text")[:4]
    folder = os.path.join(out, family)
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **json.loads(json.dumps(settings)))
    model = getattr(transformers, model_class)(config).float().eval()
    shake(model)
    model.tie_weights()
    inputs = inputs_of(kind, config)
    with torch.no_grad():
        output = model(**inputs)
    first = next(value for value in output.values() if torch.is_tensor(value) and value.is_floating_point())
    if not torch.isfinite(first).all():
        raise ValueError("the output is not finite")
    if family.endswith("-bf16"):
        model = model.to(torch.bfloat16)
    model.save_pretrained(folder)
    if "input_ids" in inputs:
        write_tokenizer(folder, family)
    save_file(inputs, os.path.join(out, family + ".inputs.safetensors"))
    size = os.path.getsize(os.path.join(folder, "model.safetensors"))
    spread = first.float().std(-1).mean().item()
    return f"{sum(p.numel() for p in model.parameters()):>9} parameters  {size:>9} bytes  {model_class}  outputs {tuple(first.shape)}, spread {spread:.3g}"


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or list(FAMILIES)
    os.makedirs(out, exist_ok=True)
    torch.set_num_threads(2)
    failed = 0
    for family in wanted:
        try:
            print(f"{family:20} {make(out, family, FAMILIES[family])}", flush=True)
        except Exception as error:
            failed += 1
            print(f"{family:20} NOT MADE {type(error).__name__}: {str(error)[:300]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
