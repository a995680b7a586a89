"""What each layer of a loaded model multiplies its inputs with, asked one input at a time.

Logits of kernels that round inputs move so much by roundings alone that a wrong scale of the file hides in them. The product with inputs that are 1 at one
place and 0 elsewhere is a column of the weights, as the runtime's own kernel decodes them, and is rounded but a few times."""
import torch


class LayerProducts:
    """`product_of`: {name of a layer: function from inputs [count, features] to its products, without the bias}; `widths`: {name: features}."""

    def __init__(self, product_of, widths, dtype):
        self.dtype = dtype
        self.of_layer = {name: product(torch.eye(widths[name], dtype=dtype)).detach().clone() for name, product in product_of.items()}

    def difference(self, expected):
        """The largest difference of an element, as a share of the element that is expected (or of the smallest normal number)."""
        if self.of_layer.keys() != expected.of_layer.keys():
            raise ValueError(f"layers {sorted(self.of_layer.keys() ^ expected.of_layer.keys())} are in one model only")
        least = torch.finfo(self.dtype).tiny
        shares = [0.0]
        for name, found in self.of_layer.items():
            wanted = expected.of_layer[name].double()
            if found.shape != wanted.shape:
                raise ValueError(f"{name} has products {list(found.shape)}, the reference {list(wanted.shape)}")
            shares.append(float(((found.double() - wanted).abs() / wanted.abs().clamp(min=least)).max()))
        return max(shares)
