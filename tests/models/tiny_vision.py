"""Tiny models with random weights, saved as folders: they show that every kind loads and runs, not that it is right."""

from __future__ import annotations

from pathlib import Path

LABELS = {0: "tench, Tinca tinca", 1: "Traffic_light", 2: "person"}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "photo", "of", "dog", "cat", "horse"]
_SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
_VISION = {**_SMALL, "image_size": 32, "patch_size": 8}
_SQUARE = {"height": 32, "width": 32}
_TEXT = {**_SMALL, "vocab_size": len(WORDS), "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}


def _library(seed: int = 0):
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(seed)
    return transformers


def _labelled() -> dict[str, dict]:
    return {"id2label": LABELS, "label2id": {label: number for number, label in LABELS.items()}}


def classifier(folder: Path, seed: int = 0, **config_options) -> str:
    t = _library(seed)
    t.ViTForImageClassification(t.ViTConfig(**_VISION, **_labelled(), **config_options)).save_pretrained(
        folder
    )
    t.ViTImageProcessorPil(size=_SQUARE).save_pretrained(folder)
    return str(folder)


def detector(folder: Path) -> str:
    t = _library()
    config = t.YolosConfig(**{**_VISION, "image_size": [32, 32]}, num_detection_tokens=5, **_labelled())
    t.YolosForObjectDetection(config).save_pretrained(folder)
    t.YolosImageProcessorPil(size={"shortest_edge": 32, "longest_edge": 48}).save_pretrained(folder)
    return str(folder)


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    word_level = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    word_level.pre_tokenizer = pre_tokenizers.Whitespace()
    word_level.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"unk": "[UNK]", "pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]"}
    return _library().PreTrainedTokenizerFast(
        tokenizer_object=word_level,
        model_max_length=16,
        **{f"{role}_token": word for role, word in names.items()},
    )


def clip(folder: Path) -> str:
    t = _library()
    config = t.CLIPConfig(
        text_config={**_TEXT, "max_position_embeddings": 16}, vision_config=_VISION, projection_dim=8
    )
    t.CLIPModel(config).save_pretrained(folder)
    image_processor = t.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=_SQUARE)
    t.CLIPProcessor(image_processor, tokenizer()).save_pretrained(folder)
    return str(folder)


def blip(folder: Path) -> str:
    t = _library()
    text = {**_TEXT, "encoder_hidden_size": 16, "sep_token_id": 3, "max_position_embeddings": 40}
    config = t.BlipConfig(text_config=text, vision_config=_VISION, projection_dim=8)
    t.BlipForConditionalGeneration(config).save_pretrained(folder)
    t.BlipProcessor(t.BlipImageProcessorPil(size=_SQUARE), tokenizer()).save_pretrained(folder)
    return str(folder)


def encoder_decoder(folder: Path) -> str:
    """As the public captioners of this kind are saved: with no token to fill up with."""
    t = _library()
    decoder = t.BertConfig(**_SMALL, vocab_size=len(WORDS), is_decoder=True, add_cross_attention=True)
    config = t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(t.ViTConfig(**_VISION), decoder)
    model = t.VisionEncoderDecoderModel(config)
    model.generation_config = t.GenerationConfig(decoder_start_token_id=2, eos_token_id=3)
    model.save_pretrained(folder)
    t.ViTImageProcessorPil(size=_SQUARE).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def text_model(folder: Path) -> str:
    t = _library()
    t.BertForMaskedLM(t.BertConfig(**_SMALL, vocab_size=len(WORDS))).save_pretrained(folder)
    return str(folder)
