"""Word pieces of Transformers, by name or from a folder."""

from __future__ import annotations

from typing import Any

from portrayal.errors import need


def bert_tokenizer(name: str) -> Any:
    """ALBEF and TCL read BERT's word pieces, of which a bare vocab.txt says enough."""
    from portrayal.models.vision.loading import from_pretrained

    return from_pretrained(need("transformers", "neural", "A masked model").BertTokenizer, name)


def usual_tokenizer(name: str) -> Any:
    from portrayal.models.vision.loading import from_pretrained

    return from_pretrained(need("transformers", "neural", "A masked model").AutoTokenizer, name)
