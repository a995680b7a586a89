"""Families with images or sound. family: (class, model_type, config, inputs)."""
from decoder_families import GEMMA4, LLAMA4, PER_LAYER
from family_sizes import (DECODER, DELTA_NET, ENCODER, EXPERTS, GEMMA, HEADS, IMAGE_TOKEN, ROUTED, SHARED_EXPERT, TIED, TOKENS, VISION, VOCAB, sections,
                          without)

PLAIN_VISION = without(VISION, "intermediate_size")
SIGLIP2 = dict(without(VISION, "image_size"), num_patches=16)
CLIP_TEXT = dict(without(ENCODER, "type_vocab_size"), bos_token_id=256, eos_token_id=257)
CLIP_TOWER = dict(VISION, model_type="clip_vision_model", projection_dim=64)
SIGLIP_TOWER = dict(VISION, model_type="siglip_vision_model", vision_use_head=False)
QWEN_TOWER = dict(depth=2, hidden_size=128, intermediate_size=256, num_heads=4, patch_size=8, spatial_merge_size=2, temporal_patch_size=2,
                  out_hidden_size=256)
POSITIONED_TOWER = dict(QWEN_TOWER, num_position_embeddings=64)
MARKS = dict(image_token_id=IMAGE_TOKEN, video_token_id=281, vision_start_token_id=282, vision_end_token_id=283)
IMAGE = dict(image_token_id=IMAGE_TOKEN)
IMAGE_INDEX = dict(image_token_index=IMAGE_TOKEN)
BOTH_NAMES = dict(IMAGE, **IMAGE_INDEX)
WAVES = dict(vocab_size=64, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, conv_dim=[64, 64], conv_stride=[5, 2],
             conv_kernel=[10, 3], num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
SWIN = dict(image_size=32, patch_size=4, embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=10)
RESNET = dict(model_type="resnet", embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"], layer_type="basic")

IMAGES = {
    "vit": ("ViTForImageClassification", "vit", dict(VISION, num_labels=10), "image"),
    "deit": ("DeiTForImageClassification", "deit", dict(VISION, num_labels=10), "image"),
    "beit": ("BeitForImageClassification", "beit", dict(VISION, num_labels=10, use_relative_position_bias=True), "image"),
    "swin": ("SwinForImageClassification", "swin", SWIN, "image"),
    "swinv2": ("Swinv2ForImageClassification", "swinv2", SWIN, "image"),
    "dinov2": ("Dinov2Model", "dinov2", PLAIN_VISION, "image"),
    "dinov2_with_registers": ("Dinov2WithRegistersModel", "dinov2_with_registers", PLAIN_VISION, "image"),
    "dinov3_vit": ("DINOv3ViTModel", "dinov3_vit", dict(VISION, num_register_tokens=2), "image"),
    "convnext": ("ConvNextForImageClassification", "convnext", dict(hidden_sizes=[32, 64], depths=[1, 1], num_stages=2, num_labels=10), "image"),
    "segformer": ("SegformerForSemanticSegmentation", "segformer",
                  dict(depths=[1] * 4, hidden_sizes=[32, 32, 64, 64], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=64, num_labels=10), "image-64"),
    "detr": ("DetrForObjectDetection", "detr",
             dict(d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256,
                  decoder_ffn_dim=256, num_queries=5, num_labels=10, use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=RESNET), "image-64"),
    "pixtral": ("PixtralVisionModel", "pixtral", dict(VISION, head_dim=32), "image"),
    "siglip2": ("Siglip2VisionModel", "siglip2_vision_model", SIGLIP2, "patches"),
    "clip-vision": ("CLIPVisionModel", "clip_vision_model", dict(VISION, projection_dim=64), "image"),
    "clip": ("CLIPModel", "clip", dict(projection_dim=64, text_config=CLIP_TEXT, vision_config=VISION), "text-image"),
    "siglip": ("SiglipModel", "siglip", dict(text_config=dict(CLIP_TEXT, hidden_size=128, intermediate_size=256), vision_config=VISION), "text-image"),
    "blip": ("BlipForConditionalGeneration", "blip",
             dict(text_config=dict(CLIP_TEXT, encoder_hidden_size=128, sep_token_id=257, is_decoder=True), vision_config=VISION, projection_dim=64), "text-image"),
}

SOUND = {
    "whisper": ("WhisperForConditionalGeneration", "whisper",
                dict(TOKENS, vocab_size=VOCAB, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                     encoder_ffn_dim=256, decoder_ffn_dim=256, num_mel_bins=32, max_source_positions=64, max_target_positions=64, decoder_start_token_id=256),
                "spectrogram"),
    "moonshine": ("MoonshineForConditionalGeneration", "moonshine",
                  dict(TOKENS, vocab_size=VOCAB, hidden_size=128, intermediate_size=256, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2,
                       encoder_num_attention_heads=4, decoder_num_attention_heads=4, max_position_embeddings=128, decoder_start_token_id=256), "speech"),
    "wav2vec2": ("Wav2Vec2ForCTC", "wav2vec2", WAVES, "wave"),
    "hubert": ("HubertForCTC", "hubert", dict(WAVES, num_feat_extract_layers=2), "wave"),
    "qwen2_audio": ("Qwen2AudioForConditionalGeneration", "qwen2_audio",
                    dict(text_config=dict(DECODER, model_type="qwen2"), audio_token_index=IMAGE_TOKEN,
                         audio_config=dict(num_mel_bins=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=256, d_model=128,
                                           max_source_positions=64)), "text-masked-spectrogram-32"),
    "voxtral": ("VoxtralForConditionalGeneration", "voxtral",
                dict(text_config=dict(HEADS, model_type="llama"), audio_token_id=IMAGE_TOKEN,
                     audio_config=dict(num_mel_bins=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, hidden_size=128,
                                       max_source_positions=64, head_dim=32)), "text-spectrogram-16"),
}

IMAGES_AND_TEXT = {
    "llava": ("LlavaForConditionalGeneration", "llava",
              dict(IMAGE_INDEX, text_config=dict(HEADS, model_type="llama"), vision_config=CLIP_TOWER, vision_feature_layer=-1,
                   vision_feature_select_strategy="full"), "image-in-text-17"),
    "llava_next": ("LlavaNextForConditionalGeneration", "llava_next",
                   dict(IMAGE_INDEX, text_config=dict(HEADS, model_type="mistral", sliding_window=None), vision_config=CLIP_TOWER, vision_feature_layer=-1,
                        vision_feature_select_strategy="default", image_grid_pinpoints=[[32, 32], [32, 64]]), "tiles-in-text-36"),
    "aya_vision": ("AyaVisionForConditionalGeneration", "aya_vision",
                   dict(IMAGE_INDEX, text_config=dict(DECODER, **TIED | dict(model_type="cohere2")), vision_config=SIGLIP_TOWER, downsample_factor=2),
                   "image-in-text-4"),
    "internvl": ("InternVLForConditionalGeneration", "internvl",
                 dict(IMAGE, text_config=dict(DECODER, model_type="qwen2"), downsample_ratio=0.5, image_seq_length=4,
                      vision_config=dict(VISION, image_size=[32, 32], patch_size=[8, 8])), "image-in-text-4"),
    "got_ocr2": ("GotOcr2ForConditionalGeneration", "got_ocr2",
                 dict(IMAGE_INDEX, text_config=dict(DECODER, model_type="qwen2"), image_seq_length=4,
                      vision_config=dict(hidden_size=128, output_channels=64, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8,
                                         mlp_dim=256, window_size=4, global_attn_indexes=[1], use_abs_pos=True)), "image64-in-text-4"),
    "paligemma": ("PaliGemmaForConditionalGeneration", "paligemma",
                  dict(IMAGE_INDEX, text_config=dict(GEMMA, model_type="gemma"), projection_dim=256, vision_config=dict(SIGLIP_TOWER, projection_dim=256),
                       image_token_id=IMAGE_TOKEN), "typed-image-in-text-16"),
    "smolvlm": ("SmolVLMForConditionalGeneration", "smolvlm",
                dict(IMAGE, **TIED, text_config=dict(HEADS, **TIED | dict(model_type="llama")), vision_config=VISION, scale_factor=2), "images-in-text-4"),
    "idefics3": ("Idefics3ForConditionalGeneration", "idefics3",
                 dict(IMAGE, text_config=dict(HEADS, model_type="llama"), vision_config=VISION, scale_factor=2, tie_word_embeddings=False), "images-in-text-4"),
    "gemma3": ("Gemma3ForConditionalGeneration", "gemma3",
               dict(BOTH_NAMES, text_config=dict(GEMMA, num_hidden_layers=6, query_pre_attn_scalar=64, sliding_window=64),
                    vision_config=without(SIGLIP_TOWER, "model_type"), mm_tokens_per_image=4, boi_token_index=281, eoi_token_index=282),
               "typed-image-in-text-4"),
    "gemma4": ("Gemma4ForConditionalGeneration", "gemma4",
               dict(IMAGE, text_config=dict(GEMMA4, **PER_LAYER), audio_config=None, boi_token_id=281, eoi_token_id=282, audio_token_id=283, video_token_id=284,
                    vision_config=dict(without(VISION, "image_size"), num_key_value_heads=4, head_dim=32, pooling_kernel_size=2, position_embedding_size=64)),
               "placed-patches-in-text-4"),
    "mistral3": ("Mistral3ForConditionalGeneration", "mistral3",
                 dict(BOTH_NAMES, text_config=dict(HEADS, model_type="mistral", sliding_window=None),
                      vision_config=dict(VISION, model_type="pixtral", head_dim=32), spatial_merge_size=2, vision_feature_layer=-1), "sized-image-in-text-4"),
    "llama4": ("Llama4ForConditionalGeneration", "llama4",
               dict(IMAGE_INDEX, text_config=dict(HEADS, **LLAMA4), boi_token_index=281, eoi_token_index=282,
                    vision_config=dict(VISION, intermediate_size=512, vision_output_dim=128, projector_input_dim=128, projector_output_dim=128,
                                       pixel_shuffle_ratio=0.5, rope_parameters=dict(rope_type="default", rope_theta=10000))), "image-in-text-4"),
    "lfm2_vl": ("Lfm2VlForConditionalGeneration", "lfm2_vl",
                dict(IMAGE, text_config=dict(DECODER, **TIED | dict(model_type="lfm2", layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False)),
                     vision_config=dict(SIGLIP2, model_type="siglip2_vision_model", vision_use_head=False), downsample_factor=2), "patches-in-text-4"),
    "qwen2_vl": ("Qwen2VLForConditionalGeneration", "qwen2_vl",
                 dict(MARKS, text_config=dict(DECODER, **sections(8, 12, 12)),
                      vision_config=dict(depth=2, embed_dim=128, hidden_size=256, num_heads=4, mlp_ratio=2, patch_size=8, spatial_merge_size=2,
                                         temporal_patch_size=2)), "grid-in-text-4"),
    "qwen2_5_vl": ("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl",
                   dict(MARKS, text_config=dict(DECODER, **sections(8, 12, 12)),
                        vision_config=dict(QWEN_TOWER, window_size=32, fullatt_block_indexes=[1])), "grid-in-text-4"),
    "qwen3_vl": ("Qwen3VLForConditionalGeneration", "qwen3_vl",
                 dict(MARKS, text_config=dict(HEADS, **sections(12, 10, 10)), vision_config=dict(POSITIONED_TOWER, deepstack_visual_indexes=[0])),
                 "grid-in-text-4"),
    "qwen3_vl_moe": ("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe",
                     dict(MARKS, text_config=dict(HEADS, **EXPERTS, **sections(12, 10, 10)),
                          vision_config=dict(POSITIONED_TOWER, deepstack_visual_indexes=[0])), "grid-in-text-4"),
    "qwen3_5": ("Qwen3_5ForConditionalGeneration", "qwen3_5",
                dict(MARKS, text_config=dict(HEADS, **DELTA_NET, **sections(4, 2, 2, partial_rotary_factor=0.25)), vision_config=POSITIONED_TOWER),
                "grid-in-text-4"),
    "qwen3_5_moe": ("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe",
                    dict(MARKS, text_config=dict(HEADS, **SHARED_EXPERT, **DELTA_NET, **sections(4, 2, 2, partial_rotary_factor=0.25)),
                         vision_config=POSITIONED_TOWER), "grid-in-text-4"),
    "glm4v": ("Glm4vForConditionalGeneration", "glm4v",
              dict(MARKS, text_config=dict(DECODER, **sections(8, 12, 12)), vision_config=dict(QWEN_TOWER, image_size=32), image_start_token_id=282,
                   image_end_token_id=283), "grid-in-text-4"),
    "glm4v_moe": ("Glm4vMoeForConditionalGeneration", "glm4v_moe",
                  dict(MARKS, text_config=dict(HEADS, **ROUTED, **sections(4, 6, 6, partial_rotary_factor=0.5)),
                       vision_config=dict(QWEN_TOWER, image_size=32), image_start_token_id=282, image_end_token_id=283), "grid-in-text-4"),
}

MEDIA = {**IMAGES, **SOUND, **IMAGES_AND_TEXT}
