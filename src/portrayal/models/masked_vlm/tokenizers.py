"""Tokenizers of Transformers, by name or from a folder."""

from __future__ import annotations

from typing import Any

from portrayal.errors import need


def load_bert_tokenizer(name: str) -> Any:
    """Return the BERT word-piece tokenizer that ALBEF and TCL use; a bare vocab.txt is enough."""
    from portrayal.models.vision.loading import from_pretrained

    return from_pretrained(need("transformers", "neural", "A masked model").BertTokenizer, name)


def load_auto_tokenizer(name: str) -> Any:
    from portrayal.models.vision.loading import from_pretrained

    return from_pretrained(need("transformers", "neural", "A masked model").AutoTokenizer, name)
