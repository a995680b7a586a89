// Model types of transformers that no table of tests/families makes and none of src/families names, for `--unknown`: what becomes of a type that
// nobody has thought of. Those that transformers cannot make from the defaults of their configuration, or call alone, are left out. The last line has
// types whose layers the loader converts, and others that were asked for.
export const unknownTypes = `
  aimv2 apertus1p5_text aria_text bridgetower canary chinese_clip_vision_model chmv2 deepseek_vl_hybrid embedding_gemma2 evolla exaone4_5 flava
  gemma4_unified glmasr_encoder granite_docling granite_swa granitemoe_swa higgs_audio_v2 hyperclovax inkling_text internlm3 internvl_vision
  kosmos-2.5 lasr_ctc lfm3_vl lightglue minicpm3 minicpm_ocr minimax_m3_vl_text mobilenet_v1 modernvbert mra omniasr_ctc perceiver phi4_multimodal
  pop2piano
  deepseek_ocr2 dory pi0 qwen2_5_omni_thinker qwen3_omni_moe_thinker rf_detr sapiens2 tipsv2 tipsv2_dpt
`
  .trim()
  .split(/\s+/);
