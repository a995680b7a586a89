// What a GGUF file is, by general.architecture.

/** What a program does with a file. */
export type GgufUse = 'text' | 'embeddings' | 'masked-text' | 'speech' | 'projector' | 'image';

const names = (text: string) => text.trim().split(/\s+/);

/** Those of llama.cpp: MODEL_ARCH_NAMES of gguf-py 0.19. Those of images: ComfyUI-GGUF's list, and sd2 and pig of its forks. */
const architectures: Record<GgufUse, string[]> = {
  text: names(`
    afmoe apertus arcee arctic arwkv7 baichuan bailingmoe bailingmoe2 bitnet bloom chameleon chatglm codeshell cogvlm cohere2
    command-r dbrx deci deepseek deepseek2 deepseek2-ocr dots1 ernie4_5 ernie4_5-moe exaone exaone-moe exaone4 falcon falcon-h1
    gemma gemma2 gemma3 gemma3n gemma4 glm-dsa glm4 glm4moe gpt-oss gpt2 gptj gptneox granite granitehybrid granitemoe grok
    grovemoe hunyuan-dense hunyuan-moe hunyuan_vl internlm2 jais jais2 jamba kimi-linear lfm2 lfm2moe llama llama4 maincoder
    mamba mamba2 mimo2 minicpm minicpm3 minimax-m2 mistral3 mistral4 mpt nemotron nemotron_h nemotron_h_moe olmo olmo2 olmoe
    openelm orion paddleocr pangu-embedded phi2 phi3 phimoe plamo plamo2 plamo3 plm qwen qwen2 qwen2moe qwen2vl qwen3 qwen35
    qwen35moe qwen3moe qwen3next qwen3vl qwen3vlmoe refact rwkv6 rwkv6qwen2 rwkv7 seed_oss smallthinker smollm3 stablelm
    starcoder starcoder2 step35 t5 xverse`),
  embeddings: names(`
    bert eurobert gemma-embedding jina-bert-v2 jina-bert-v3 llama-embed modern-bert neo-bert nomic-bert nomic-bert-moe t5encoder`),
  'masked-text': ['dream', 'llada', 'llada-moe', 'rnd1'],
  speech: ['wavtokenizer-dec'],
  projector: ['clip'],
  image: names('aura cosmos flux hidream hyvid ltxv lumina2 pig qwen_image sd1 sd2 sd3 sdxl wan'),
};

/** Null for an architecture that is not listed. */
export const useOf = (architecture: string): GgufUse | null =>
  (Object.keys(architectures) as GgufUse[]).find((use) => architectures[use].includes(architecture)) ?? null;
