"""What a model is called with, by the last word of its row: `KIND`, or `KIND-in-text-N` for N places of a text that an image takes."""
import torch

from rows.family_sizes import IMAGE_TOKEN


def inputs_of(kind):
    """Tensors by the name of the parameter of `forward`; the same at every call."""
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(0, 250, (2, 24), generator=generator)
    name, _, count = kind.rpartition("-")

    def normal(*shape):
        return torch.randn(shape, generator=generator)

    def image(size=32):
        return {"pixel_values": normal(1, 3, size, size)}

    def ones(*shape):
        return torch.ones(shape, dtype=torch.long)

    def text_around(token=IMAGE_TOKEN):
        return {"input_ids": torch.cat([ids[:1, :4], torch.full((1, int(count)), token), ids[:1, 4:12]], 1)}

    if kind == "text":
        return {"input_ids": ids}
    if kind == "ended-text":
        ids[:, -1] = 257
        return {"input_ids": ids}
    if kind == "encoder-decoder":
        return {"input_ids": ids, "decoder_input_ids": ids[:, :9].flip(1).contiguous()}
    if kind == "image":
        return image()
    if kind == "image-64":
        return image(64)
    if kind == "pointed-image":
        return {**image(64), "input_points": 64 * torch.rand((1, 1, 2, 2), generator=generator), "input_labels": ones(1, 1, 2)}
    if kind == "video":
        return {"pixel_values": normal(1, 2, 3, 32, 32)}
    if kind == "ended-text-image":
        ids[:, -1] = 257
        return {"input_ids": ids[:1].contiguous(), **image()}
    if kind == "text-image64":
        return {"input_ids": ids[:1].contiguous(), **image(64)}
    if kind == "text-image":
        ids[:, -1] = 257  # where CLIP reads the text's embedding
        return {"input_ids": ids, **image()}
    if kind == "wave":
        return {"input_values": normal(1, 4000)}
    if kind == "speech":
        return {"input_values": normal(1, 8000), "decoder_input_ids": ids[:1, :9].contiguous()}
    if kind == "mono-wave":
        return {"input_values": normal(1, 1, 800)}
    if kind == "encoder-spectrogram":
        return {"input_features": normal(1, 32, 128)}
    if kind == "spectrogram-values":
        return {"input_values": normal(1, 64, 32)}
    if name == "robot":  # of any_type.py, where 250 is the image
        cameras = {"pixel_values": normal(1, 1, 3, 32, 32), "pixel_attention_mask": ones(1, 1).bool()}
        return {**text_around(250), **cameras, "state": normal(1, 32), "noise": normal(1, 50, 32), "timestep": ones(1) * 0.5}
    if name == "features":
        return {"input_features": normal(1, 64, int(count))}
    if name == "speech-features":
        return {"input_features": normal(1, 128, int(count)), "decoder_input_ids": ids[:1, :9].contiguous()}
    if kind == "text-mel":
        return {"input_ids": ids, "input_features": normal(1, 1, 256, 16)}
    if kind == "text-codes":
        return {"input_ids": torch.randint(0, 60, (1, 12, 3), generator=generator)}
    if kind == "encoder-decoder-codes":
        return {"input_ids": ids, "decoder_input_ids": torch.randint(0, 250, (2, 9, 3), generator=generator)}
    if kind == "past":
        return {"past_values": normal(2, 32)}
    if kind == "series":
        return {"past_values": normal(2, 32, 2)}
    if kind == "forecast":
        return {"past_values": normal(1, 18), "past_time_features": normal(1, 18, 1), "past_observed_mask": torch.ones(1, 18),
                "future_values": normal(1, 4), "future_time_features": normal(1, 4, 1)}
    if kind == "spectrogram":
        return {"input_features": normal(1, 32, 128), "decoder_input_ids": ids[:1, :9].contiguous()}
    if name == "text-spectrogram":
        return {**text_around(), "input_features": normal(1, 32, 128)}
    if name == "text-masked-spectrogram":
        return {**text_around(), "input_features": normal(1, 32, 128), "feature_attention_mask": ones(1, 128)}
    if kind == "image-and-text":
        return {**image(), "decoder_input_ids": ids[:1, :9].contiguous()}
    if kind == "aspect-image-and-text":
        return {"input_ids": ids[:1].contiguous(), "pixel_values": normal(1, 1, 1, 3, 32, 32), "aspect_ratio_ids": ones(1, 1),
                "aspect_ratio_mask": ones(1, 1, 1), "cross_attention_mask": ones(1, 24, 1, 1)}
    if kind == "attended-images-and-text":
        return {"input_ids": ids[:1].contiguous(), "pixel_values": normal(1, 1, 3, 32, 32), "image_attention_mask": ones(1, 24, 1), "attention_mask": ones(1, 24)}
    if kind == "placed-image-and-text":
        mask = ones(1, 24)
        mask[:, :2], mask[:, 6:] = 0, 0
        return {"input_ids": ids[:1].contiguous(), **image(), "image_embeds_position_mask": mask}
    if kind == "flattened-patches-and-text":
        return {"flattened_patches": torch.cat([1 + torch.arange(16.0).view(1, 16, 1) % 4, 1 + torch.arange(16.0).view(1, 16, 1) // 4, normal(1, 16, 64)], 2),
                "attention_mask": ones(1, 16), "decoder_input_ids": ids[:1, :9].contiguous()}
    patches = {"pixel_values": normal(1, 16, 192), "spatial_shapes": torch.tensor([[4, 4]]), "pixel_attention_mask": ones(1, 16)}
    if kind == "patches":
        return patches
    text = text_around()
    is_image = (text["input_ids"] == IMAGE_TOKEN).long()
    if name == "image-in-text":
        return {**text, **image()}
    if name == "image64-in-text":
        return {**text, **image(64)}
    if name == "named-image-in-text":
        return {**text, "pixel_values_images": normal(1, 3, 32, 32)}
    if name == "asked-image-in-text":
        return {**text, **image(), "qformer_input_ids": ids[:1, 12:].contiguous()}
    if name == "flat-grid-in-text":
        return {**text, "pixel_values": normal(16, 192), "image_grid_thw": torch.tensor([[1, 4, 4]]), "mm_token_type_ids": is_image}
    if name == "tiles-grid-in-text":
        return {**text, "pixel_values": normal(16, 3, 8, 8), "image_grid_thw": torch.tensor([[1, 4, 4]]), "mm_token_type_ids": is_image}
    if name == "images-in-text":
        return {**text, "pixel_values": normal(1, 1, 3, 32, 32)}
    if name == "tiles-in-text":
        return {**text, "pixel_values": normal(1, 2, 3, 32, 32), "image_sizes": torch.tensor([[32, 32]])}
    if name == "sized-image-in-text":
        return {**text, **image(), "image_sizes": torch.tensor([[32, 32]])}
    if name == "typed-image-in-text":
        return {**text, **image(), "token_type_ids": is_image}
    if name == "large-patches-in-text":  # of 16 by 16 pixels
        return {**text, **patches, "pixel_values": normal(1, 16, 768)}
    if name == "placed-patches-in-text":
        places = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="xy"), -1).reshape(1, 16, 2)
        return {**text, "pixel_values": torch.rand((1, 16, 192), generator=generator), "image_position_ids": places, "mm_token_type_ids": is_image}
    if name == "grid-in-text":
        text["input_ids"][0, 3] = 282  # the start of an image
        return {**text, "pixel_values": normal(16, 3 * 2 * 8 * 8), "image_grid_thw": torch.tensor([[1, 4, 4]]), "mm_token_type_ids": is_image}
    raise ValueError(f"no inputs are called {kind}")
