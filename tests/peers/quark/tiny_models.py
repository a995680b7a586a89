"""Random models of a few kinds of class, small enough that hundreds of configs can be applied to each."""
import os

import torch
from quark.torch.utils.llm.model_preparation import preprocess_for_quantization
from safetensors.torch import save_file
from transformers import (BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          MixtralConfig, MixtralForCausalLM, OPTConfig, OPTForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM, ResNetConfig, ResNetForImageClassification, ViTConfig,
                          ViTForImageClassification)

# Every axis of a matrix but the rows of a router is a multiple of 128, so that all usual groups fit along both.
TEXT = dict(vocab_size=128, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
            max_position_embeddings=64, tie_word_embeddings=False, pad_token_id=None)
EXPERTS = dict(moe_intermediate_size=128, num_experts=32, num_experts_per_tok=2, num_hidden_layers=1, head_dim=32)
MIXTRAL = dict(num_local_experts=4, num_experts_per_tok=2, num_hidden_layers=1, head_dim=32)
GPT2 = dict(vocab_size=128, n_embd=128, n_layer=2, n_head=4, n_positions=128, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0)
OPT = dict(vocab_size=128, hidden_size=128, ffn_dim=256, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=126,
           word_embed_proj_dim=128, tie_word_embeddings=False)
BERT = dict(vocab_size=128, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128,
            type_vocab_size=128, num_labels=128)
VIT = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8, num_labels=64)
RESNET = dict(embedding_size=64, hidden_sizes=[64, 128], depths=[1, 1], layer_type="basic", num_labels=64)

MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**TEXT)),
    "qwen3_moe": lambda: Qwen3MoeForCausalLM(Qwen3MoeConfig(**{**TEXT, **EXPERTS})),
    "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**{**TEXT, **MIXTRAL})),
    "opt": lambda: OPTForCausalLM(OPTConfig(**OPT)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(**GPT2)),
    "bert": lambda: BertForSequenceClassification(BertConfig(**BERT)),
    "vit": lambda: ViTForImageClassification(ViTConfig(**VIT)),
    "resnet": lambda: ResNetForImageClassification(ResNetConfig(**RESNET)),
}
# Kernels of convolutions have axes that no group fits.
WITH_CONVOLUTIONS = ("vit", "resnet")


def make_model(name, folder=None, dtype=torch.float32):
    """The model, with experts as the linear layers that Quark makes of them; written into `folder` under the names of its modules."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    preprocess_for_quantization(model)
    model.to(dtype)
    model.config.dtype = dtype
    if folder:
        model.config.save_pretrained(folder)
        save_file({key: value.clone() for key, value in model.state_dict().items()}, os.path.join(folder, "model.safetensors"))
    return model
