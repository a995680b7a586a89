"""More models of images and videos: classification, detection, segmentation, depth. family: (class, model_type, config, inputs)."""
from rows.family_sizes import CLIP_TEXT, ENCODER, RESNET, SWIN, VISION, without
from rows.media_families import PLAIN_VISION

LABELS = dict(num_labels=10)
DETECTOR = dict(d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256,
                decoder_ffn_dim=256, num_queries=5, use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=RESNET, **LABELS)
SWIN_BACKBONE = dict(SWIN, model_type="swin", out_features=["stage1", "stage2"])
DINO_BACKBONE = dict(PLAIN_VISION, model_type="dinov2", out_features=["stage1", "stage2"], reshape_hidden_states=False)
PYRAMID = dict(depths=[1] * 4, hidden_sizes=[32, 32, 64, 64], num_attention_heads=[1, 2, 2, 4])
CLIP_PAIR = dict(text_config=CLIP_TEXT, vision_config=VISION, projection_dim=64)
SAM_TOWER = dict(hidden_size=128, output_channels=64, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, mlp_dim=256, window_size=4,
                 global_attn_indexes=[1], num_pos_feats=32)
SAM_HEADS = dict(prompt_encoder_config=dict(hidden_size=64, image_size=64, patch_size=8, mask_input_channels=16),
                 mask_decoder_config=dict(hidden_size=64, mlp_dim=128, num_hidden_layers=2, num_attention_heads=2, iou_head_hidden_dim=64))
FRAMES = dict(VISION, num_frames=2, tubelet_size=2, **LABELS)
RESNET_STAGES = dict(RESNET, hidden_sizes=[16, 24, 32], depths=[1, 1, 1], out_features=["stage1", "stage2", "stage3"])
HYBRID_DETECTOR = dict(encoder_hidden_dim=64, encoder_in_channels=[16, 24, 32], feat_strides=[4, 8, 16], encoder_layers=1, encoder_ffn_dim=128,
                       encoder_attention_heads=4, encode_proj_layers=[2], d_model=64, num_queries=5, decoder_in_channels=[64, 64, 64], decoder_ffn_dim=128,
                       decoder_layers=2, decoder_attention_heads=4, decoder_n_points=2, use_pretrained_backbone=False, num_denoising=0,
                       backbone_config=RESNET_STAGES, **LABELS)

MORE_IMAGES = {
    "convnextv2": ("ConvNextV2ForImageClassification", "convnextv2", dict(hidden_sizes=[32, 64], depths=[1, 1], num_stages=2, **LABELS), "image"),
    "resnet": ("ResNetForImageClassification", "resnet", dict(embedding_size=16, hidden_sizes=[32, 128], depths=[1, 1], layer_type="basic", **LABELS), "image"),
    "regnet": ("RegNetForImageClassification", "regnet", dict(embedding_size=16, hidden_sizes=[32, 128], depths=[1, 1], groups_width=16, **LABELS), "image"),
    "bit": ("BitForImageClassification", "bit", dict(embedding_size=32, hidden_sizes=[128, 128], depths=[1, 1], **LABELS), "image"),
    "efficientnet": ("EfficientNetForImageClassification", "efficientnet", dict(hidden_dim=320, width_coefficient=0.25, depth_coefficient=0.1, **LABELS),
                     "image-64"),
    "mobilenet_v2": ("MobileNetV2ForImageClassification", "mobilenet_v2", dict(depth_multiplier=0.25, finegrained_output=False, **LABELS), "image-64"),
    "mobilevit": ("MobileViTForImageClassification", "mobilevit", dict(hidden_sizes=[32, 64, 64], neck_hidden_sizes=[16, 16, 24, 32, 32, 32, 64], image_size=64,
                                                                       **LABELS), "image-64"),
    "levit": ("LevitForImageClassification", "levit", dict(image_size=64, hidden_sizes=[64, 128, 128], num_attention_heads=[2, 4, 4], depths=[1, 1, 1],
                                                           key_dim=[16, 16, 16], **LABELS), "image-64"),
    "pvt": ("PvtForImageClassification", "pvt", dict(PYRAMID, image_size=64, **LABELS), "image-64"),
    "pvt_v2": ("PvtV2ForImageClassification", "pvt_v2", dict(PYRAMID, image_size=64, **LABELS), "image-64"),
    "poolformer": ("PoolFormerForImageClassification", "poolformer", dict(depths=[1] * 4, hidden_sizes=[32, 32, 64, 64], **LABELS), "image-64"),
    "focalnet": ("FocalNetForImageClassification", "focalnet", dict(image_size=32, embed_dim=32, hidden_sizes=[32, 64], depths=[1, 1], focal_levels=[2, 2],
                                                                    focal_windows=[3, 3], **LABELS), "image"),
    "swiftformer": ("SwiftFormerForImageClassification", "swiftformer", dict(depths=[1] * 4, embed_dims=[32, 32, 64, 64], **LABELS), "image-64"),
    "hiera": ("HieraForImageClassification", "hiera", dict(image_size=[64, 64], embed_dim=32, depths=[1, 1, 1], num_heads=[1, 2, 4],
                                                           masked_unit_size=[4, 4], query_stride=[2, 2], num_query_pool=2, **LABELS), "image-64"),
    "data2vec-vision": ("Data2VecVisionForImageClassification", "data2vec-vision", dict(VISION, **LABELS), "image"),
    "ijepa": ("IJepaForImageClassification", "ijepa", dict(VISION, **LABELS), "image"),
    "vit_msn": ("ViTMSNForImageClassification", "vit_msn", dict(VISION, **LABELS), "image"),
    "vitdet": ("VitDetModel", "vitdet", PLAIN_VISION, "image"),
    "dinov2-classifier": ("Dinov2ForImageClassification", "dinov2", dict(PLAIN_VISION, **LABELS), "image"),
    "dinov3_convnext": ("DINOv3ConvNextModel", "dinov3_convnext", dict(layer_scale_init_value=1.0, hidden_sizes=[32, 64, 64, 128], depths=[1] * 4), "image-64"),
    "pixio": ("PixioModel", "pixio", VISION, "image"),
    "aimv2": ("Aimv2VisionModel", "aimv2_vision_model", VISION, "image"),
    "swin2sr": ("Swin2SRForImageSuperResolution", "swin2sr", dict(image_size=32, patch_size=1, embed_dim=32, depths=[1, 1], num_heads=[2, 2], window_size=8),
                "image"),
    "dpt": ("DPTForDepthEstimation", "dpt", dict(VISION, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 32, 32, 32],
                                                 fusion_hidden_size=32, readout_type="project"), "image"),
    "depth_anything": ("DepthAnythingForDepthEstimation", "depth_anything",
                       dict(backbone_config=dict(DINO_BACKBONE, num_hidden_layers=4, out_features=["stage1", "stage2", "stage3", "stage4"]), patch_size=8,
                            reassemble_hidden_size=128, neck_hidden_sizes=[16, 32, 32, 32], fusion_hidden_size=32, head_hidden_size=16), "image"),
    "glpn": ("GLPNForDepthEstimation", "glpn", dict(PYRAMID, decoder_hidden_size=64), "image-64"),
    "yolos": ("YolosForObjectDetection", "yolos", dict(VISION, image_size=[32, 32], num_detection_tokens=4, **LABELS), "image"),
    "conditional_detr": ("ConditionalDetrForObjectDetection", "conditional_detr", DETECTOR, "image-64"),
    "deformable_detr": ("DeformableDetrForObjectDetection", "deformable_detr", dict(DETECTOR, num_feature_levels=1), "image-64"),
    "table-transformer": ("TableTransformerForObjectDetection", "table-transformer", DETECTOR, "image-64"),
    "rt_detr": ("RTDetrForObjectDetection", "rt_detr", dict(HYBRID_DETECTOR, backbone_config=dict(RESNET_STAGES, model_type="rt_detr_resnet")), "image-64"),
    "rt_detr_v2": ("RTDetrV2ForObjectDetection", "rt_detr_v2", dict(HYBRID_DETECTOR, backbone_config=dict(RESNET_STAGES, model_type="rt_detr_resnet")),
                   "image-64"),
    "d_fine": ("DFineForObjectDetection", "d_fine", dict(HYBRID_DETECTOR), "image-64"),
    "owlvit": ("OwlViTModel", "owlvit", CLIP_PAIR, "text-image"),
    "owlv2": ("Owlv2ForObjectDetection", "owlv2", dict(CLIP_PAIR, projection_dim=256), "text-image"),
    "grounding-dino": ("GroundingDinoForObjectDetection", "grounding-dino",
                       dict(without(DETECTOR, "backbone_config"), backbone_config=SWIN_BACKBONE, text_config=dict(ENCODER, model_type="bert"),
                            num_feature_levels=2), "text-image64"),
    "sam": ("SamModel", "sam", dict(SAM_HEADS, vision_config=SAM_TOWER), "pointed-image"),
    "upernet": ("UperNetForSemanticSegmentation", "upernet",
                dict(backbone_config=dict(SWIN_BACKBONE, depths=[1] * 4, num_heads=[2] * 4, out_features=["stage1", "stage2", "stage3", "stage4"]),
                     hidden_size=32, auxiliary_in_channels=128, auxiliary_channels=32, auxiliary_num_convs=1, **LABELS), "image-64"),
    "videomae": ("VideoMAEForVideoClassification", "videomae", FRAMES, "video"),
    "vivit": ("VivitForVideoClassification", "vivit", dict(without(FRAMES, "tubelet_size"), tubelet_size=[2, 8, 8]), "video"),
    "timesformer": ("TimesformerForVideoClassification", "timesformer", FRAMES, "video"),
    "clipseg": ("CLIPSegForImageSegmentation", "clipseg", dict(CLIP_PAIR, reduce_dim=32, extract_layers=[0, 1], decoder_num_attention_heads=2,
                                                               decoder_intermediate_size=64), "ended-text-image"),
    "metaclip_2": ("MetaClip2Model", "metaclip_2", CLIP_PAIR, "text-image"),
    "altclip": ("AltCLIPModel", "altclip", dict(CLIP_PAIR, text_config=dict(ENCODER, project_dim=64, pad_token_id=1)), "text-image"),
    "chinese_clip": ("ChineseCLIPModel", "chinese_clip", dict(CLIP_PAIR, text_config=ENCODER), "text-image"),
    "align": ("AlignModel", "align", dict(text_config=ENCODER, vision_config=dict(hidden_dim=128, width_coefficient=0.25, depth_coefficient=0.1),
                                          projection_dim=80), "text-image64"),
    "groupvit": ("GroupViTModel", "groupvit", dict(text_config=CLIP_TEXT, projection_dim=64, projection_intermediate_dim=128,
                                                   vision_config=dict(VISION, depths=[1, 1], num_group_tokens=[8, 0], num_output_groups=[8, 8],
                                                                      num_hidden_layers=2)), "text-image"),
    "clip-text": ("CLIPTextModelWithProjection", "clip_text_model", dict(CLIP_TEXT, projection_dim=64), "ended-text"),
    "clip-classifier": ("CLIPForImageClassification", "clip", dict(CLIP_PAIR, **LABELS), "image"),
}
