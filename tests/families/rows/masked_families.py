"""More text encoders, and other encoder-decoders. family: (class, model_type, config, inputs)."""
from rows.family_sizes import ENCODER, ENCODER_DECODER, GATED_T5, ROBERTA, T5, TOKENS, VOCAB, without


def masked(prefix, model_type, *parts, **settings):
    config = {}
    for part in (*parts, settings):
        config.update(part)
    return f"{prefix}ForMaskedLM", model_type, config, "text"


XLM = dict(vocab_size=VOCAB, n_words=VOCAB, emb_dim=256, n_layers=2, n_heads=4, max_position_embeddings=128, n_langs=1, pad_index=258, pad_token_id=258)
ESM = dict(ROBERTA, mask_token_id=259, token_dropout=False)  # rotary positions: save_pretrained writes a name with an asterisk

MASKED = {
    "big_bird": masked("BigBird", "big_bird", ENCODER, attention_type="original_full"),
    "deberta": masked("Deberta", "deberta", ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"], position_biased_input=False,
                      max_relative_positions=32),
    "roberta-prelayernorm": masked("RobertaPreLayerNorm", "roberta-prelayernorm", ROBERTA),
    "megatron-bert": masked("MegatronBert", "megatron-bert", ENCODER),
    "convbert": masked("ConvBert", "convbert", ENCODER, embedding_size=128, head_ratio=2, num_groups=1),
    "roformer": masked("RoFormer", "roformer", ENCODER, embedding_size=128),
    "rembert": masked("RemBert", "rembert", ENCODER, input_embedding_size=64, output_embedding_size=128),
    "xmod": masked("Xmod", "xmod", ROBERTA, languages=["en_XX"], default_language="en_XX"),
    "xlm-roberta-xl": masked("XLMRobertaXL", "xlm-roberta-xl", ROBERTA),
    "ernie": masked("Ernie", "ernie", ENCODER),
    "roc_bert": masked("RoCBert", "roc_bert", ENCODER, pad_token_id=0, pronunciation_vocab_size=VOCAB, shape_vocab_size=VOCAB),
    "data2vec-text": masked("Data2VecText", "data2vec-text", ROBERTA),
    "ibert": masked("IBert", "ibert", ROBERTA),
    "esm": masked("Esm", "esm", ESM, position_embedding_type="absolute"),
    "fnet": masked("FNet", "fnet", without(ENCODER, "num_attention_heads")),
    "nystromformer": masked("Nystromformer", "nystromformer", ENCODER, num_landmarks=8, segment_means_seq_len=24),
    "longformer": masked("Longformer", "longformer", ROBERTA, attention_window=[16, 16]),
    "mobilebert": masked("MobileBert", "mobilebert", ENCODER, embedding_size=128, true_hidden_size=128, intra_bottleneck_size=128),
    "squeezebert": masked("SqueezeBert", "squeezebert", ENCODER, embedding_size=256),
    "funnel": masked("Funnel", "funnel", vocab_size=VOCAB, block_sizes=[1, 1], num_decoder_layers=1, d_model=256, n_head=4, d_head=64, d_inner=512),
    "layoutlm": masked("LayoutLM", "layoutlm", ENCODER, max_2d_position_embeddings=64),
    "tapas": masked("Tapas", "tapas", ENCODER, type_vocab_sizes=[3, 8, 8, 2, 8, 8, 4]),
    "luke": masked("Luke", "luke", ROBERTA, entity_vocab_size=32, entity_emb_size=64),
    "visual_bert": ("VisualBertForPreTraining", "visual_bert", dict(ENCODER, visual_embedding_dim=64), "text"),
    "xlm": ("XLMWithLMHeadModel", "xlm", XLM, "text"),
    "flaubert": ("FlaubertWithLMHeadModel", "flaubert", XLM, "text"),
    "xlnet": ("XLNetLMHeadModel", "xlnet", dict(vocab_size=VOCAB, d_model=256, n_layer=2, n_head=4, d_inner=512), "text"),
    "bert-generation": ("BertGenerationDecoder", "bert-generation", dict(without(ENCODER, "type_vocab_size"), is_decoder=True), "text"),
    "layoutlmv3": ("LayoutLMv3ForSequenceClassification", "layoutlmv3", dict(ROBERTA, coordinate_size=32, shape_size=64, max_2d_position_embeddings=64,
                                                                           input_size=32, patch_size=8), "text"),
    "lilt": ("LiltForSequenceClassification", "lilt", dict(ROBERTA, hidden_size=384, max_2d_position_embeddings=64), "text"),
    "markuplm": ("MarkupLMForSequenceClassification", "markuplm", ROBERTA, "text"),
    "splinter": ("SplinterForQuestionAnswering", "splinter", ENCODER, "text"),
    "canine": ("CanineForSequenceClassification", "canine", dict(without(ENCODER, "vocab_size"), num_hash_buckets=256, local_transformer_stride=16,
                                                                 downsampling_rate=4), "text"),
    "jina_embeddings_v3": ("JinaEmbeddingsV3Model", "jina_embeddings_v3", ROBERTA, "text"),
}

ENCODER_DECODERS = {
    "umt5": ("UMT5ForConditionalGeneration", "umt5", GATED_T5, "encoder-decoder"),
    "longt5": ("LongT5ForConditionalGeneration", "longt5", dict(T5, local_radius=16), "encoder-decoder"),
    "plbart": ("PLBartForConditionalGeneration", "plbart", ENCODER_DECODER, "encoder-decoder"),
    "mvp": ("MvpForConditionalGeneration", "mvp", ENCODER_DECODER, "encoder-decoder"),
    "blenderbot": ("BlenderbotForConditionalGeneration", "blenderbot", ENCODER_DECODER, "encoder-decoder"),
    "blenderbot-small": ("BlenderbotSmallForConditionalGeneration", "blenderbot-small", ENCODER_DECODER, "encoder-decoder"),
    "bigbird_pegasus": ("BigBirdPegasusForConditionalGeneration", "bigbird_pegasus", dict(ENCODER_DECODER, attention_type="original_full"), "encoder-decoder"),
    "pegasus_x": ("PegasusXForConditionalGeneration", "pegasus_x", dict(ENCODER_DECODER, num_global_tokens=8, block_size=16), "encoder-decoder"),
    "led": ("LEDForConditionalGeneration", "led", dict(ENCODER_DECODER, max_encoder_position_embeddings=128, max_decoder_position_embeddings=64,
                                                       attention_window=16), "encoder-decoder"),
    "fsmt": ("FSMTForConditionalGeneration", "fsmt", dict(ENCODER_DECODER, langs=["en", "de"], src_vocab_size=VOCAB, tgt_vocab_size=VOCAB), "encoder-decoder"),
    "nllb-moe": ("NllbMoeForConditionalGeneration", "nllb-moe", dict(ENCODER_DECODER, pad_token_id=1, num_experts=4, expert_capacity=64, encoder_sparse_step=2,
                                                                     decoder_sparse_step=2), "encoder-decoder"),
    "prophetnet": ("ProphetNetForConditionalGeneration", "prophetnet", dict(
        vocab_size=VOCAB, hidden_size=256, encoder_ffn_dim=512, decoder_ffn_dim=512, num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
        num_decoder_attention_heads=4, max_position_embeddings=128, decoder_start_token_id=257, **TOKENS | dict(pad_token_id=0)), "encoder-decoder"),
    "encoder-decoder": ("EncoderDecoderModel", "encoder-decoder", dict(
        encoder=dict(ENCODER, model_type="bert"), decoder=dict(ENCODER, model_type="bert", is_decoder=True, add_cross_attention=True)), "encoder-decoder"),
}
