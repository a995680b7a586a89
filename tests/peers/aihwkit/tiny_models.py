"""Random models of the classes that aihwkit's digital quantization knows, and of some that it leaves."""
import os

import torch
from safetensors.torch import save_file
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(40, 16)
        self.layers = nn.ModuleList([Block(16), Block(16)])
        self.norm = nn.LayerNorm(16)
        self.lm_head = nn.Linear(16, 40, bias=False)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3)
        self.stages = nn.ModuleList([nn.Sequential(nn.Conv2d(16, 16, 3, groups=4), nn.ReLU(), nn.Conv2d(16, 24, 1)), nn.Conv2d(24, 16, 3)])
        self.line = nn.Conv1d(16, 16, 3)
        self.head = nn.Linear(16, 10)


MODELS = {
    "transformer": Transformer,
    "convolutions": Convolutions,
    "layers": lambda: nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 12)),
}


def difficult(shape, seed):
    """Rows of different sizes with outliers; some rows are zeros, positive, negative, tiny."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(shape, generator=generator) * 0.1
    rows = weight.flatten(1) if len(shape) > 1 else weight.unsqueeze(1)
    rows *= torch.exp(torch.randn((shape[0], 1), generator=generator))
    rows *= torch.where(torch.rand(rows.shape, generator=generator) < 0.01, 8.0, 1.0)
    rows[1] = 0
    rows[2] = rows[2].abs()
    rows[3] = -rows[3].abs()
    rows[4] *= 1e-9
    rows[5] *= 1e-41
    return weight if seed % 5 else weight.abs()


def make_model(name, folder):
    """The model with difficult weights; written into `folder` under the names of its parameters."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for seed, (key, parameter) in enumerate(model.named_parameters()):
        if key.endswith("weight"):
            parameter.data = difficult(tuple(parameter.shape), seed)
    os.makedirs(folder, exist_ok=True)
    save_file({key: value.clone() for key, value in model.state_dict().items()}, os.path.join(folder, "model.safetensors"))
    return model
