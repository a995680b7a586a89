"""transformers with AutoRound's loader: see runtimes/loaded_cases.py."""
from loaded_cases import answer  # isort: skip; first, so that what the others print goes to stderr

from transformers import AutoRoundConfig
from transformers_models import run


def run_words(folder, case, is_reference):
    # Its layers have no g_idx: columns of a group are taken to lie together.
    options = {} if is_reference else {"quantization_config": AutoRoundConfig(), "ignored": ("g_idx",)}
    return run(folder, case, is_reference, are_transposed=True, **options)


answer(run_words)
