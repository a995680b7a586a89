"""Rounding errors of a runtime, by draws: see bounds.mjs."""
import torch

DRAWS = 3
# Half a unit in the last place of 1; sums of float32 have some hundred terms, whose roundings grow like the root of their number.
ROUNDOFF = {"float32": 2**-24 * 16, "float16": 2**-11, "bfloat16": 2**-8}


def factors(count, dtype, generator):
    """One for each output of a layer: 1, off by up to two roundings."""
    return 1 + (2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1) * 2 * ROUNDOFF[dtype]


def moved(modules, case, compute):
    """What `compute` gives while the outputs of `modules` are moved: a list of draws. None for a case that has no need of it."""
    if case["isExact"]:
        return None
    draws = []
    for seed in range(DRAWS):
        generator = torch.Generator().manual_seed(seed)
        of_module = {}

        def move(module, _, output, generator=generator, of_module=of_module):
            first = output[0] if isinstance(output, tuple) else output
            if module not in of_module:
                of_module[module] = factors(first.shape[-1], case["dtype"], generator)
            made = (first.double() * of_module[module]).to(first.dtype)
            return (made, *output[1:]) if isinstance(output, tuple) else made

        handles = [module.register_forward_hook(move) for module in modules]
        draws.append(compute())
        for handle in handles:
            handle.remove()
    return draws
