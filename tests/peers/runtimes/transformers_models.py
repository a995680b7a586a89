"""Models as transformers loads and runs them, for the runtimes that are quantizers of transformers."""
import torch
from moved_outputs import moved
from transformers import AutoModel, AutoModelForCausalLM

# The largest value of a token, or of a group of it, is the largest code.
LARGEST = {"int8": 127.5, "fp8_e4m3": 448.0}


def rounded(values, dtype, group):
    """`group`: values of a token that share a scale; None: all."""
    if group is not None:
        return rounded(values.unflatten(-1, (-1, group)), dtype, None).flatten(-2)
    scale = values.abs().amax(-1, keepdim=True) / LARGEST[dtype]
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    codes = values / scale
    codes = codes.round().clamp(-128, 127) if dtype == "int8" else codes.to(torch.float8_e4m3fn).to(values.dtype)
    return codes * scale


def round_inputs(model, case):
    """Rounds the inputs of the layers that are quantized as the block of a written config says. Groups that do not fill a layer's inputs: it has none."""
    def round_first(module, args):
        group = case["inputGroup"]
        if group is not None and module.in_features % group:
            return args
        return (rounded(args[0], case["inputs"], group), *args[1:])

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and any(layer.endswith(name) for layer in case["quantized"]):
            module.register_forward_pre_hook(round_first)


def multiply_transposed(model, case):
    """Multiplies with a copy [inputs, outputs] of the weights, which is what kernels of words decode to: the sums are the same to the bit."""
    def product(weight, bias):
        transposed = weight.detach().t().contiguous()

        def forward(values):
            made = torch.matmul(values.reshape(-1, values.shape[-1]), transposed).reshape(*values.shape[:-1], -1)
            return made if bias is None else made + bias

        return forward

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and any(layer.endswith(name) for layer in case["quantized"]):
            module.forward = product(module.weight, module.bias)


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


def run(folder, case, is_reference, are_transposed=False, **options):
    """`are_transposed`: the runtime multiplies with weights [inputs, outputs]."""
    model = load(folder, case, **options)
    if not is_reference:
        return compute(model, case)
    if are_transposed:
        multiply_transposed(model, case)
    if case["inputs"]:
        round_inputs(model, case)
    answer = compute(model, case)
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    return *answer, moved(linear, case, lambda: compute(model, case)[0])
