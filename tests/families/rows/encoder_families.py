"""Text encoders and encoder-decoders. family: (class, model_type, config, inputs)."""
from rows.family_sizes import DECODER, ENCODER, ENCODER_DECODER, GATED_T5, GEMMA, ROBERTA, T5, VOCAB, without

DEBERTA = dict(ENCODER, relative_attention=True, position_buckets=16, pos_att_type=["p2c", "c2p"], position_biased_input=False)
T5GEMMA = dict(GEMMA, query_pre_attn_scalar=64, sliding_window=64)

ENCODERS = {
    "bert": ("BertForMaskedLM", "bert", ENCODER, "text"),
    "bert-classifier": ("BertForSequenceClassification", "bert", ENCODER, "text"),
    "bert-model": ("BertModel", "bert", ENCODER, "text"),
    "roberta": ("RobertaForMaskedLM", "roberta", ROBERTA, "text"),
    "xlm-roberta": ("XLMRobertaForMaskedLM", "xlm-roberta", ROBERTA, "text"),
    "xlm-roberta-reranker": ("XLMRobertaForSequenceClassification", "xlm-roberta", dict(ROBERTA, num_labels=1), "text"),
    "camembert": ("CamembertForMaskedLM", "camembert", ROBERTA, "text"),
    "mpnet": ("MPNetForMaskedLM", "mpnet", without(ROBERTA, "type_vocab_size"), "text"),
    "albert": ("AlbertForMaskedLM", "albert", dict(without(ENCODER, "type_vocab_size"), embedding_size=128, bos_token_id=256, eos_token_id=257), "text"),
    "electra": ("ElectraForMaskedLM", "electra", dict(ENCODER, embedding_size=128), "text"),
    "distilbert": ("DistilBertForSequenceClassification", "distilbert", dict(vocab_size=VOCAB, dim=256, hidden_dim=512, n_layers=2, n_heads=4,
                                                                            pad_token_id=258), "text"),
    "modernbert": ("ModernBertForMaskedLM", "modernbert", dict(without(ENCODER, "type_vocab_size"), bos_token_id=256, eos_token_id=257, cls_token_id=256,
                                                              sep_token_id=257), "text"),
    "deberta-v2": ("DebertaV2ForSequenceClassification", "deberta-v2", DEBERTA, "text"),
    "deberta-v2-mlm": ("DebertaV2ForMaskedLM", "deberta-v2", DEBERTA, "text"),
    "nomic_bert": ("NomicBertModel", "nomic_bert", ENCODER, "text"),
    "eurobert-model": ("EuroBertModel", "eurobert", dict(DECODER, mask_token_id=259), "text"),
    "eurobert": ("EuroBertForMaskedLM", "eurobert", dict(DECODER, mask_token_id=259), "text"),
    "t5-encoder": ("T5EncoderModel", "t5", GATED_T5, "text"),
    "t5": ("T5ForConditionalGeneration", "t5", dict(T5, feed_forward_proj="relu"), "encoder-decoder"),
    "mt5": ("MT5ForConditionalGeneration", "mt5", GATED_T5, "encoder-decoder"),
    "switch_transformers": ("SwitchTransformersForConditionalGeneration", "switch_transformers",
                            dict(T5, num_decoder_layers=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, num_experts=4, expert_capacity=64),
                            "encoder-decoder"),
    "t5gemma": ("T5GemmaForConditionalGeneration", "t5gemma",
                dict(encoder=T5GEMMA, decoder=dict(T5GEMMA, cross_attention_hidden_size=256), vocab_size=VOCAB), "encoder-decoder"),
    "bart": ("BartForConditionalGeneration", "bart", ENCODER_DECODER, "encoder-decoder"),
    "mbart": ("MBartForConditionalGeneration", "mbart", ENCODER_DECODER, "encoder-decoder"),
    "pegasus": ("PegasusForConditionalGeneration", "pegasus", ENCODER_DECODER, "encoder-decoder"),
    "marian": ("MarianMTModel", "marian", dict(ENCODER_DECODER, decoder_vocab_size=VOCAB), "encoder-decoder"),
    "m2m_100": ("M2M100ForConditionalGeneration", "m2m_100", dict(ENCODER_DECODER, pad_token_id=1), "encoder-decoder"),
}
