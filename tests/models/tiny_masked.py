"""Tiny masked models with random weights: they show that what is computed is right, not that it is good."""

from __future__ import annotations

from pathlib import Path

WORDS = [
    "a",
    "man",
    "woman",
    "is",
    "the",
    "in",
    "picture",
    "cooking",
    "cook",
    "##ing",
    "fish",
    "skate",
    "##board",
]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def _seeded(seed: int = 0):
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(seed)
    return transformers


def with_random_weights(model, size: float = 0.2):
    """Weights large enough that what is computed depends on what is given; with a size of 0, as training starts."""
    import torch

    torch.manual_seed(1)
    if not size:
        return model
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, size)
    return model.eval()


def vilt(size: float = 0.2, **config_options):
    t = _seeded()
    config = t.ViltConfig(
        **_SMALL, image_size=32, patch_size=8, vocab_size=len(PIECES), pad_token_id=0, **config_options
    )
    return with_random_weights(t.ViltForMaskedLM(config), size)


def bert():
    t = _seeded()
    config = t.BertConfig(**_SMALL, vocab_size=len(PIECES), max_position_embeddings=24, pad_token_id=0)
    return with_random_weights(t.BertForMaskedLM(config))


def tokenizer():
    t = _seeded()
    return t.BertTokenizer(vocab={piece: number for number, piece in enumerate(PIECES)})


def dual(size: float = 0.2, **config_options):
    from portrayal.models.masked_vlm.dual_stream import DualNetwork, DualShape

    _seeded()
    shape = {
        "image_size": 32, "patch_size": 8, "image_width": 64, "image_layers": 2, "image_heads": 1,
        "vocab_size": len(PIECES), "text_width": 64, "text_layers": 4, "fusion_layer": 2, "text_heads": 1,
        "intermediate_size": 64, "max_position_embeddings": 24, "embed_dim": 8,
    }  # fmt: skip
    return with_random_weights(DualNetwork(DualShape(**{**shape, **config_options})), size)


def save(model, folder: Path) -> str:
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)
