"""All floating-point outputs of a model, and how far two lists of them are apart."""
import torch
from transformers import modeling_outputs

# transformers 5.24.0: the class of Llama 4 with images reads this from the output of its language model, which has none.
if not hasattr(modeling_outputs.MoeCausalLMOutputWithPast, "image_outputs"):
    modeling_outputs.MoeCausalLMOutputWithPast.image_outputs = None

UNLIKE = 1e300  # JSON has no infinity


def floats(value):
    """Every floating-point tensor of a model's output, in order."""
    if torch.is_tensor(value):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for part in value for tensor in floats(part)] if isinstance(value, (list, tuple)) else []


@torch.no_grad()
def outputs(model, inputs):
    torch.manual_seed(0)  # masked autoencoders draw their masks
    ready = {name: tensor.to(model.dtype) if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    return floats(dict(model(**ready).items()))


def difference(found, expected):
    """Greatest relative difference of two lists of tensors; UNLIKE when shapes or special values differ."""
    if len(found) != len(expected) or any(a.shape != b.shape for a, b in zip(found, expected)):
        return UNLIKE
    worst = 0.0
    for a, b in zip(found, expected):
        a, b = a.double(), b.double()
        if not torch.equal(torch.isfinite(a), torch.isfinite(b)):
            return UNLIKE
        a, b = a.nan_to_num(0, 0, 0), b.nan_to_num(0, 0, 0)
        worst = max(worst, ((a - b).norm() / b.norm().clamp_min(1e-30)).item())
    return worst
