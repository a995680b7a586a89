"""Random models of a few kinds of class, small enough that hundreds of configs can be applied to each."""
import os

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import (BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, OPTConfig,
                          OPTForCausalLM, ResNetConfig, ResNetForImageClassification)

TEXT = dict(vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
            max_position_embeddings=32, tie_word_embeddings=False, pad_token_id=None)
GPT2 = dict(vocab_size=48, n_embd=32, n_layer=1, n_head=2, n_positions=32, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0)
OPT = dict(vocab_size=48, hidden_size=32, ffn_dim=64, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=30,
           word_embed_proj_dim=32, tie_word_embeddings=False)
BERT = dict(vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=32,
            type_vocab_size=8, num_labels=24)
RESNET = dict(embedding_size=16, hidden_sizes=[16, 24], depths=[1, 1], layer_type="basic", num_labels=24)


class Layers(nn.Module):
    """One of each class that Brevitas replaces, and of some that it leaves; names do not give transposed convolutions away."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(24, 16)
        self.norm = nn.LayerNorm(16)
        self.line = nn.Conv1d(16, 24, 3)
        self.grouped = nn.Conv2d(16, 24, 3, groups=4, bias=False)
        self.upsample_line = nn.ConvTranspose1d(16, 24, 2)
        self.upsample = nn.ConvTranspose2d(16, 24, 2)
        self.volume = nn.Conv3d(4, 6, 2)
        self.attention = nn.MultiheadAttention(16, 2)
        self.head = nn.Linear(16, 24)


MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**TEXT)),
    "opt": lambda: OPTForCausalLM(OPTConfig(**OPT)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(**GPT2)),
    "bert": lambda: BertForSequenceClassification(BertConfig(**BERT)),
    "resnet": lambda: ResNetForImageClassification(ResNetConfig(**RESNET)),
    "layers": Layers,
}


def difficult(shape, seed):
    """Rows of different sizes with outliers; the first rows are zeros, positive, negative, tiny, an exact power of two."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(shape, generator=generator) * 0.02
    rows = weight.flatten(1)
    rows *= torch.exp(torch.randn((shape[0], 1), generator=generator))
    rows *= torch.where(torch.rand(rows.shape, generator=generator) < 0.01, 8.0, 1.0)
    rows[1] = 0
    rows[2] = rows[2].abs()
    rows[3] = -rows[3].abs() - 0.01
    if shape[0] > 8:
        rows[4] *= 1e-30
        rows[5] = rows[5].clamp(-0.125, 0.125)
        rows[5, 0] = 0.125
        rows[6] *= 1e-42 / 0.02
    return weight


def make_model(name, folder=None):
    """The model with difficult weights; written into `folder` under the names of its parameters."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for seed, parameter in enumerate(model.parameters()):
        if parameter.dim() > 1:
            parameter.data = difficult(tuple(parameter.shape), seed)
    if folder:
        os.makedirs(folder, exist_ok=True)
        if hasattr(model, "config"):
            model.config.save_pretrained(folder)
        save_file({key: value.clone() for key, value in model.state_dict().items()}, os.path.join(folder, "model.safetensors"))
    return model
