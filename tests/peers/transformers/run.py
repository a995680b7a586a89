"""transformers with compressed-tensors: see runtimes/loaded_cases.py."""
from loaded_cases import answer  # isort: skip; first, so that what the others print goes to stderr

from transformers import CompressedTensorsConfig
from transformers_models import run


def run_compressed(folder, case, is_reference):
    dequantizes = not is_reference and case.get("how") == "dequantize=True"
    options = {"quantization_config": CompressedTensorsConfig(dequantize=True)} if dequantizes else {}
    return run(folder, case, is_reference, **options)


answer(run_compressed)
