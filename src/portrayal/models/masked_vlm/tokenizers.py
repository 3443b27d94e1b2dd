"""Tokenizers of Transformers, by name or from a folder."""

from __future__ import annotations

from typing import Any

from portrayal.errors import need


def load_bert_tokenizer(name: str) -> Any:
    """Return a BERT word-piece tokenizer, which ALBEF and TCL use; a folder needs no more than a vocab.txt."""
    from portrayal.models.vision.loading import from_pretrained

    return from_pretrained(need("transformers", "neural", "A masked model").BertTokenizer, name)


def load_auto_tokenizer(name: str) -> Any:
    """Return the tokenizer of a model of Transformers."""
    from portrayal.models.vision.loading import from_pretrained

    return from_pretrained(need("transformers", "neural", "A masked model").AutoTokenizer, name)
