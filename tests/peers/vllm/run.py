"""vLLM's CPU build: see runtimes/loaded_cases.py. Logits are log-probabilities: of each token of the prompt but the first, the 20 largest."""
from loaded_cases import answer  # isort: skip; first, so that what the others print goes to stderr

import functools
import gc
import os

os.environ.update(VLLM_LOGGING_LEVEL="ERROR", VLLM_CPU_KVCACHE_SPACE="1", VLLM_NO_USAGE_STATS="1", VLLM_ENABLE_V1_MULTIPROCESSING="0",
                  VLLM_CPU_OMP_THREADS_BIND="nobind")

import torch
from layer_products import LayerProducts
from moved_outputs import moved
from vllm import LLM, SamplingParams
from vllm.config import set_current_vllm_config
from vllm.distributed import cleanup_dist_env_and_memory
from vllm.forward_context import set_forward_context
from vllm.model_executor.layers.fused_moe.router.gate_linear import GateLinear
from vllm.model_executor.layers.linear import LinearBase
from vllm.model_executor.layers.quantization.compressed_tensors.schemes import compressed_tensors_w4a4_nvfp4 as nvfp4
from vllm.model_executor.layers.quantization.utils.nvfp4_emulation_utils import dequantize_to_dtype

# vLLM's own: the largest value of a token is the largest code.
LARGEST = {"int8": 127.0, "fp8_e4m3": 448.0}
LISTED = 20


class DequantizedNvfp4:
    """vLLM has no kernel for weight-only NVFP4 on a CPU. It loads the weights and joins those of parallel layers under one second scale; the product is
    that of its own dequantized weights."""

    def __init__(self, use_a16):
        if not use_a16:
            raise ValueError("only weight-only NVFP4")

    def input_quant_key(self):
        return None

    def process_weights_after_loading(self, layer):
        pass

    def apply_weights(self, layer, x, bias=None):
        weight = dequantize_to_dtype(layer.weight, layer.weight_scale, layer.weight_global_scale, x.dtype, swizzle=False)
        return torch.nn.functional.linear(x, weight, bias)


nvfp4.init_nvfp4_linear_kernel = DequantizedNvfp4


def rounded_by_token(values, dtype):
    wide = values.float()
    scale = (wide.abs().amax(-1, keepdim=True) / LARGEST[dtype]).clamp(min=1e-12)
    codes = wide / scale
    codes = codes.round().clamp(-128, 127) if dtype == "int8" else codes.to(torch.float8_e4m3fn).float()
    return (codes * scale).to(values.dtype)


def named_linear_layers(llm):
    model = llm.llm_engine.model_executor.driver_worker.model_runner.model
    return {name: module for name, module in model.named_modules() if isinstance(module, LinearBase)}


def linear_layers(llm):
    return list(named_linear_layers(llm).values())


@torch.no_grad()
def products_of(llm, dtype):
    """Of the kernels themselves, below the hooks that round inputs. Routers may have weights of another dtype, and none is quantized."""
    layers = {name: one for name, one in named_linear_layers(llm).items() if not isinstance(one, GateLinear)}
    with set_current_vllm_config(llm.llm_engine.vllm_config), set_forward_context(None, llm.llm_engine.vllm_config):
        return LayerProducts({name: functools.partial(one.quant_method.apply, one) for name, one in layers.items()},
                             {name: one.input_size for name, one in layers.items()}, dtype)


def round_inputs(llm, dtype):
    """Rounds the inputs of every linear layer of the reference as the block of a written config says."""
    def round_first(_, args):
        return (rounded_by_token(args[0], dtype), *args[1:])

    for module in linear_layers(llm):
        if module.quant_method.__class__.__name__ == "UnquantizedLinearMethod":
            module.register_forward_pre_hook(round_first)


class ListedLogits:
    """Log-probabilities of the most probable tokens at each position, {token: value}; differences are taken over the tokens that both list."""

    def __init__(self, positions):
        self.positions = positions
        self.shape = (len(positions),)

    def __sub__(self, other):
        return torch.tensor([ours[token] - theirs[token] for ours, theirs in zip(self.positions, other.positions) for token in ours if token in theirs])

    def __abs__(self):
        return torch.tensor([abs(value) for values in self.positions for value in values.values()])


def compute(llm, case):
    sampling = SamplingParams(temperature=0, max_tokens=5, ignore_eos=True, prompt_logprobs=LISTED, detokenize=False)
    made = llm.generate([{"prompt_token_ids": case["tokens"]}], sampling, use_tqdm=False)[0]
    positions = [{token: entry.logprob for token, entry in values.items()} for values in made.prompt_logprobs if values]
    return ListedLogits(positions), list(made.outputs[0].token_ids)


def run(folder, case, is_reference):
    llm = None
    try:
        llm = LLM(model=folder, dtype=case["dtype"], enforce_eager=True, max_model_len=64, skip_tokenizer_init=True, max_logprobs=LISTED,
                  enable_prefix_caching=False)
        if is_reference and case["inputs"]:
            round_inputs(llm, case["inputs"])
        logits, tokens = compute(llm, case)
        draws = moved(linear_layers(llm), case, lambda: compute(llm, case)[0]) if is_reference else None
        products = products_of(llm, getattr(torch, case["dtype"]))
    finally:
        del llm
        gc.collect()
        # Process groups outlive a model that is refused, and those of a dense model have none for experts.
        cleanup_dist_env_and_memory()
    return logits, tokens, draws, products


answer(run)
