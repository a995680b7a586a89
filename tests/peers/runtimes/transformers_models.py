"""Models as transformers loads and runs them, for the runtimes that are quantizers of transformers."""
import torch
from transformers import AutoModel, AutoModelForCausalLM

# Rounds a layer's inputs as runtimes do: a scale a token or group of a token, the largest value is the largest code.
LARGEST = {"int8": 127.5, "fp8_e4m3": 448.0}


def rounded_by_token(values, dtype):
    scale = values.abs().amax(-1, keepdim=True) / LARGEST[dtype]
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    codes = values / scale
    codes = codes.round().clamp(-128, 127) if dtype == "int8" else codes.to(torch.float8_e4m3fn).to(values.dtype)
    return codes * scale


def round_inputs(model, dtype, group, layers):
    """Rounds the inputs of these linear layers as the block of a written config says. Groups that do not fill the inputs of a layer: it has none."""
    def round_first(module, args):
        if group is None:
            return (rounded_by_token(args[0], dtype), *args[1:])
        if module.in_features % group:
            return args
        return (rounded_by_token(args[0].unflatten(-1, (-1, group)), dtype).flatten(-2), *args[1:])

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and any(layer.endswith(name) for layer in layers):
            module.register_forward_pre_hook(round_first)


def load(folder, case, ignored=(), **options):
    """The model, all its weights found; tensors whose names end with one of `ignored` may be left."""
    auto = AutoModel if case["isEncoder"] else AutoModelForCausalLM
    model, info = auto.from_pretrained(folder, dtype=getattr(torch, case["dtype"]), output_loading_info=True, **options)
    kinds = ("missing_keys", "unexpected_keys", "mismatched_keys")
    found = {kind: sorted(key for key in map(str, info[kind]) if not key.endswith(tuple(ignored))) for kind in kinds}
    problems = {kind: keys for kind, keys in found.items() if keys}
    if problems:
        raise ValueError(f"keys: {problems}")
    return model.eval()


@torch.no_grad()
def compute(model, case):
    """Logits of the prompt, and five tokens."""
    ids = torch.tensor([case["tokens"]])
    if case["isEncoder"]:
        return model(ids).last_hidden_state[0].float().numpy(), None
    logits = model(ids).logits[0].float().numpy()
    made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)
    return logits, made[0, ids.shape[1]:].tolist()


def run(folder, case, is_reference, **options):
    model = load(folder, case, **options)
    if is_reference and case["inputs"]:
        round_inputs(model, case["inputs"], case["inputGroup"], case["quantized"])
    return compute(model, case)
