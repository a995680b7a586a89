"""More models of sound, and of time series. family: (class, model_type, config, inputs)."""
from rows.family_sizes import DECODER, ENCODER, TOKENS, VOCAB, WAVES, VISION, without

CONFORMER = dict(without(WAVES, "conv_dim", "conv_stride", "conv_kernel"))
SPEECH_DECODER = dict(TOKENS, vocab_size=VOCAB, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                      encoder_ffn_dim=256, decoder_ffn_dim=256, decoder_start_token_id=256)
SERIES = dict(prediction_length=4, context_length=16, lags_sequence=[1, 2], num_time_features=1, d_model=64, encoder_layers=2, decoder_layers=2,
              encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, scaling="mean")
PATCHES = dict(num_input_channels=2, context_length=32, patch_length=8, patch_stride=8, prediction_length=4)
CODEC = dict(hidden_size=64, num_filters=8, upsampling_ratios=[4, 2], upsample_groups=64, codebook_size=64, codebook_dim=64, num_hidden_layers=2,
             vector_quantization_hidden_dimension=64, num_attention_heads=4, num_key_value_heads=4, head_dim=16, intermediate_size=128, num_quantizers=4,
             num_semantic_quantizers=1)
SMALL = dict(vocab_size=VOCAB, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, head_dim=32)

MORE_SOUND = {
    "data2vec-audio": ("Data2VecAudioForCTC", "data2vec-audio", dict(WAVES, conv_pos_kernel_size=5, num_conv_pos_embeddings=2), "wave"),
    "wavlm": ("WavLMForCTC", "wavlm", WAVES, "wave"),
    "unispeech": ("UniSpeechForCTC", "unispeech", WAVES, "wave"),
    "unispeech-sat": ("UniSpeechSatForCTC", "unispeech-sat", WAVES, "wave"),
    "sew": ("SEWForCTC", "sew", dict(WAVES, squeeze_factor=2), "wave"),
    "sew-d": ("SEWDForCTC", "sew-d", dict(WAVES, squeeze_factor=2), "wave"),
    "wav2vec2-conformer": ("Wav2Vec2ConformerForCTC", "wav2vec2-conformer", WAVES, "wave"),
    "wav2vec2-bert": ("Wav2Vec2BertForCTC", "wav2vec2-bert", dict(CONFORMER, feature_projection_input_dim=64), "features-64"),
    "wav2vec2-classifier": ("Wav2Vec2ForSequenceClassification", "wav2vec2", dict(WAVES, classifier_proj_size=64), "wave"),
    "whisper-classifier": ("WhisperForAudioClassification", "whisper", dict(SPEECH_DECODER, num_mel_bins=32, max_source_positions=64,
                                                                            classifier_proj_size=64), "encoder-spectrogram"),
    "audio-spectrogram-transformer": ("ASTForAudioClassification", "audio-spectrogram-transformer",
                                      dict(without(VISION, "image_size"), max_length=64, num_mel_bins=32, frequency_stride=8, time_stride=8),
                                      "spectrogram-values"),
    "speech_to_text": ("Speech2TextForConditionalGeneration", "speech_to_text",
                       dict(SPEECH_DECODER, pad_token_id=1, max_source_positions=128, max_target_positions=64, input_feat_per_channel=32, input_channels=1,
                            conv_channels=64), "speech-features-32"),
    "speecht5": ("SpeechT5ForSpeechToText", "speecht5",
                 dict(TOKENS, vocab_size=VOCAB, hidden_size=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                      encoder_ffn_dim=256, decoder_ffn_dim=256, conv_dim=[64, 64], conv_stride=[5, 2], conv_kernel=[10, 3], num_conv_pos_embeddings=16,
                      num_conv_pos_embedding_groups=4, speech_decoder_prenet_units=64), "speech"),
    "clap": ("ClapModel", "clap", dict(text_config=dict(ENCODER, pad_token_id=1, projection_dim=64), projection_dim=64,
                                       audio_config=dict(spec_size=64, num_mel_bins=16, patch_size=4, patch_stride=[4, 4], patch_embeds_hidden_size=32,
                                                         depths=[1, 1], num_attention_heads=[2, 4], window_size=4, hidden_size=64, projection_dim=64)),
             "text-mel"),
    "parakeet_ctc": ("ParakeetForCTC", "parakeet_ctc", dict(vocab_size=64, pad_token_id=63, encoder_config=dict(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, subsampling_conv_channels=32, num_mel_bins=32)), "features-32"),
    "encodec": ("EncodecModel", "encodec", dict(num_filters=8, hidden_size=64, codebook_size=64, codebook_dim=64, upsampling_ratios=[4, 2],
                                                target_bandwidths=[120.0], norm_type="weight_norm"), "mono-wave"),
    "mimi": ("MimiModel", "mimi", CODEC, "mono-wave"),
    "musicgen": ("MusicgenForCausalLM", "musicgen_decoder", dict(vocab_size=VOCAB, hidden_size=128, ffn_dim=256, num_hidden_layers=2, num_attention_heads=4,
                                                                 num_codebooks=2, max_position_embeddings=128), "text"),
    "csm": ("CsmForConditionalGeneration", "csm", dict(
        without(DECODER, "vocab_size", "tie_word_embeddings"), vocab_size=VOCAB, text_vocab_size=VOCAB, head_dim=64, num_codebooks=4, codebook_size=64,
        codec_config=dict(CODEC, model_type="mimi"),
        depth_decoder_config=dict(SMALL, num_codebooks=4, backbone_hidden_size=256, num_key_value_heads=2)), "text"),
    "dia": ("DiaForConditionalGeneration", "dia", dict(
        encoder_config=dict(SMALL, num_key_value_heads=4),
        decoder_config=dict(SMALL, num_key_value_heads=2, cross_hidden_size=128, cross_num_attention_heads=4, cross_num_key_value_heads=4, cross_head_dim=32,
                            num_channels=3), delay_pattern=[0, 1, 2]),
            "encoder-decoder-codes"),
    "kyutai_speech_to_text": ("KyutaiSpeechToTextForConditionalGeneration", "kyutai_speech_to_text", dict(
        DECODER, codebook_vocab_size=64, num_codebooks=2, ffn_dim=512, head_dim=64, audio_bos_token_id=63, audio_pad_token_id=416,
        codec_config=dict(CODEC, model_type="mimi")), "text-codes"),
    "patchtst": ("PatchTSTForPrediction", "patchtst", dict(PATCHES, num_hidden_layers=2, d_model=64, num_attention_heads=4, ffn_dim=128), "series"),
    "patchtsmixer": ("PatchTSMixerForPrediction", "patchtsmixer", dict(PATCHES, d_model=32, num_layers=2), "series"),
    "autoformer": ("AutoformerForPrediction", "autoformer", SERIES, "forecast"),
    "time_series_transformer": ("TimeSeriesTransformerForPrediction", "time_series_transformer", SERIES, "forecast"),
    "timesfm": ("TimesFmModelForPrediction", "timesfm", dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, head_dim=32,
                                                             patch_length=8, context_length=32, horizon_length=8), "past"),
}
