"""torch's fake quantization on one CPU thread, for the kernels' table: one JSON line per row, GB/s of float32 input."""
import json
import time

import torch

torch.set_num_threads(1)
x = torch.randn(4096, 1024) * 0.02
scale = torch.full((4096,), 0.0005)
zero_point = torch.zeros(4096, dtype=torch.int32)
rows = {
    "fake_quantize_int8": lambda: torch.fake_quantize_per_tensor_affine(x, 0.0005, 0, -128, 127),
    "fake_quantize_int8_channels": lambda: torch.fake_quantize_per_channel_affine(x, scale, zero_point, 0, -128, 127),
    "quantize_fp8_e4m3": lambda: (x / 0.0002).clamp(-448, 448).to(torch.float8_e4m3fn),
}
for name, run in rows.items():
    run()
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"name": name, "gbps": x.numel() * 4 / min(seconds) / 1e9}))
