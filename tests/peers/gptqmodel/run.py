"""gptqmodel's kernels for CPUs: see runtimes/loaded_cases.py."""
from loaded_cases import answer  # isort: skip; first, so that what the others print goes to stderr

import torch
from gptqmodel import BACKEND, GPTQModel
from transformers_models import compute, run

BACKENDS = {"gptq": BACKEND.TORCH, "awq": BACKEND.TORCH_AWQ}


def run_words(folder, case, is_reference):
    if is_reference:
        return run(folder, case, True, are_transposed=True)
    loaded = GPTQModel.load(folder, device="cpu", dtype=getattr(torch, case["dtype"]), backend=BACKENDS[case["format"]])
    return compute(loaded.model.eval(), case)


answer(run_words)
