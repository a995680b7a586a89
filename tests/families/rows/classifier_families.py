"""Models of text with other heads than the one that predicts tokens, and without a head. family: (class, model_type, config, inputs)."""
from rows.encoder_families import DEBERTA
from rows.family_sizes import DECODER, ENCODER, ENCODER_DECODER, GEMMA, HEADS, LOCAL_EXPERTS, ROBERTA, T5, TOKENS, VOCAB, without

LABELS = dict(num_labels=3)
DISTILBERT = dict(vocab_size=VOCAB, dim=256, hidden_dim=512, n_layers=2, n_heads=4, pad_token_id=258)
MODERNBERT = dict(without(ENCODER, "type_vocab_size"), bos_token_id=256, eos_token_id=257, cls_token_id=256, sep_token_id=257)
ELECTRA = dict(ENCODER, embedding_size=128)
ALBERT = dict(without(ENCODER, "type_vocab_size"), embedding_size=128, bos_token_id=256, eos_token_id=257)
GPT2 = dict(vocab_size=VOCAB, n_embd=256, n_layer=2, n_head=4, n_positions=128, **TOKENS)

CLASSIFIERS = {
    "bert-tokens": ("BertForTokenClassification", "bert", dict(ENCODER, **LABELS), "text"),
    "bert-answers": ("BertForQuestionAnswering", "bert", ENCODER, "text"),
    "bert-pretraining": ("BertForPreTraining", "bert", ENCODER, "text"),
    "bert-decoder": ("BertLMHeadModel", "bert", dict(ENCODER, is_decoder=True), "text"),
    "roberta-classifier": ("RobertaForSequenceClassification", "roberta", dict(ROBERTA, **LABELS), "text"),
    "roberta-answers": ("RobertaForQuestionAnswering", "roberta", ROBERTA, "text"),
    "roberta-decoder": ("RobertaForCausalLM", "roberta", dict(ROBERTA, is_decoder=True), "text"),
    "roberta-model": ("RobertaModel", "roberta", ROBERTA, "text"),
    "xlm-roberta-tokens": ("XLMRobertaForTokenClassification", "xlm-roberta", dict(ROBERTA, **LABELS), "text"),
    "xlm-roberta-model": ("XLMRobertaModel", "xlm-roberta", ROBERTA, "text"),
    "camembert-tokens": ("CamembertForTokenClassification", "camembert", dict(ROBERTA, **LABELS), "text"),
    "mpnet-model": ("MPNetModel", "mpnet", without(ROBERTA, "type_vocab_size"), "text"),
    "distilbert-model": ("DistilBertModel", "distilbert", DISTILBERT, "text"),
    "distilbert-mlm": ("DistilBertForMaskedLM", "distilbert", DISTILBERT, "text"),
    "distilbert-tokens": ("DistilBertForTokenClassification", "distilbert", dict(DISTILBERT, **LABELS), "text"),
    "distilbert-answers": ("DistilBertForQuestionAnswering", "distilbert", DISTILBERT, "text"),
    "electra-pretraining": ("ElectraForPreTraining", "electra", ELECTRA, "text"),
    "electra-classifier": ("ElectraForSequenceClassification", "electra", dict(ELECTRA, **LABELS), "text"),
    "albert-pretraining": ("AlbertForPreTraining", "albert", ALBERT, "text"),
    "albert-model": ("AlbertModel", "albert", ALBERT, "text"),
    "deberta-v2-tokens": ("DebertaV2ForTokenClassification", "deberta-v2", dict(DEBERTA, **LABELS), "text"),
    "deberta-v2-answers": ("DebertaV2ForQuestionAnswering", "deberta-v2", DEBERTA, "text"),
    "deberta-v2-model": ("DebertaV2Model", "deberta-v2", DEBERTA, "text"),
    "modernbert-classifier": ("ModernBertForSequenceClassification", "modernbert", dict(MODERNBERT, **LABELS), "text"),
    "modernbert-tokens": ("ModernBertForTokenClassification", "modernbert", dict(MODERNBERT, **LABELS), "text"),
    "modernbert-model": ("ModernBertModel", "modernbert", MODERNBERT, "text"),
    "dpr": ("DPRQuestionEncoder", "dpr", ENCODER, "text"),
    "t5-classifier": ("T5ForTokenClassification", "t5", dict(T5, **LABELS), "text"),
    "bart-classifier": ("BartForSequenceClassification", "bart", dict(ENCODER_DECODER, **LABELS), "ended-text"),
    "llama-classifier": ("LlamaForSequenceClassification", "llama", dict(HEADS, **LABELS), "text"),
    "llama-tokens": ("LlamaForTokenClassification", "llama", dict(HEADS, **LABELS), "text"),
    "llama-model": ("LlamaModel", "llama", HEADS, "text"),
    "mistral-model": ("MistralModel", "mistral", dict(HEADS, sliding_window=None), "text"),
    "qwen2-reward": ("Qwen2ForTokenClassification", "qwen2", dict(DECODER, num_labels=2), "text"),
    "qwen3-model": ("Qwen3Model", "qwen3", HEADS, "text"),
    "gemma2-classifier": ("Gemma2ForSequenceClassification", "gemma2", dict(GEMMA, query_pre_attn_scalar=64, sliding_window=64, num_labels=8), "text"),
    "gpt2-classifier": ("GPT2ForSequenceClassification", "gpt2", dict(GPT2, **LABELS), "text"),
    "openai_privacy_filter": ("OpenAIPrivacyFilterForTokenClassification", "openai_privacy_filter",
                              dict(HEADS, **LOCAL_EXPERTS | LABELS), "text"),
}
