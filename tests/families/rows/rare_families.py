"""Families that are made only when they are named: few people use them, or others in the tables have the same modules and names.

The whole table, of which a third runs each day, leaves them out.
"""

RARE = frozenset("""
    gpt_neox_japanese cpmant ctrl imagegpt hrm_text moshi laguna diffllama doge vaultgemma xlstm zamba
    roc_bert data2vec-text ibert fnet nystromformer visual_bert flaubert xlm canine squeezebert xmod tapas splinter markuplm bert-generation luke funnel
    mvp blenderbot-small plbart fsmt
    bert-answers bert-decoder roberta-answers roberta-decoder xlm-roberta-tokens xlm-roberta-model camembert-tokens distilbert-tokens distilbert-answers
    electra-classifier albert-pretraining albert-model deberta-v2-answers deberta-v2-model modernbert-tokens modernbert-model t5-classifier llama-tokens
    mistral-model gpt2-classifier gpt_oss-mxfp4 gpt_oss-odd gpt_oss-odd-mxfp4 deepseek_v2-plain deepseek_v3-plain lfm2-odd
    gemma4-shared gemma4-keys gemma4-experts gemma3n-shared
    falcon_h1-normed jina-bert jina-bert-code granitemoehybrid-dense granitemoehybrid-attention granitemoehybrid-plain
    resnet regnet bit efficientnet mobilenet_v2 mobilevit levit pvt pvt_v2 poolformer focalnet swiftformer hiera vit_msn vitdet dinov2-classifier swin2sr
    glpn yolos conditional_detr table-transformer rt_detr_v2 owlvit timesformer vivit clipseg metaclip_2 chinese_clip align groupvit clip-classifier pixio
    data2vec-audio unispeech unispeech-sat sew sew-d wav2vec2-conformer wav2vec2-classifier encodec mimi patchtsmixer autoformer time_series_transformer
    vipllava video_llava idefics fuyu kosmos-2 instructblip git chameleon emu3 glm46v
""".split())
