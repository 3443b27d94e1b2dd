"""The concepts, templates and stereotypes of the VL-Bias dataset, which CounterBias uses."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from portrayal.errors import PortrayalError

MASK = "[MASK]"
GROUP_SLOT = "{group}"
_VOWELS = "aeiou"


def _read_vl_bias() -> dict[str, Any]:
    text = (
        resources.files("portrayal.counterfactual").joinpath("data/vl_bias.toml").read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


_VL_BIAS = _read_vl_bias()
TEMPLATES: dict[str, str] = _VL_BIAS["templates"]
BIAS_PROMPT: str = _VL_BIAS["prompts"]["bias"]
CONTROL_PROMPT: str = _VL_BIAS["prompts"]["control"]
CONTROL_WORDS: tuple[str, ...] = tuple(_VL_BIAS["prompts"]["control_words"])
CONCEPTS_BY_KIND: dict[str, tuple[str, ...]] = {
    kind: tuple(words) for kind, words in _VL_BIAS["kinds"].items()
}
STEREOTYPES: dict[str, str] = {
    concept: group for group, concepts in _VL_BIAS["stereotypes"].items() for concept in concepts
}


@dataclass(frozen=True)
class Template:
    """A text about a person, with `{group}` for the word of their group and a mask for what they do or are."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if self.text.count(GROUP_SLOT) != 1 or self.text.count(MASK) != 1:
            raise PortrayalError(
                f"A template has one {GROUP_SLOT} and one {MASK}, such as 'The {GROUP_SLOT} is {MASK}', got "
                f"{self.text!r}."
            )

    def fill(self, word: str, kind: str, concept: str) -> str:
        """Return the text with a group's word, and the article that the concept needs before the mask.

        >>> default_templates()[0].fill("woman", "activity", "cooking")
        'The woman is [MASK]'
        >>> default_templates()[0].fill("man", "occupation", "athlete")
        'The man is an [MASK]'
        """
        concept_article = article(kind, concept)
        text = self.text.replace(MASK, f"{concept_article} {MASK}" if concept_article else MASK)
        return _insert_word(text, word)


def default_templates() -> tuple[Template, ...]:
    """Return the templates of VL-Bias."""
    return tuple(Template(name, text) for name, text in TEMPLATES.items())


def find_templates(names: Sequence[str] | None) -> tuple[Template, ...]:
    """Return templates by name, by default all of VL-Bias; any other name is the text of a custom template."""
    if not names:
        return default_templates()
    if len(set(names)) < len(names):
        raise PortrayalError("Each template must be named once.")
    return tuple(Template(name, TEMPLATES.get(name, name)) for name in names)


def article(kind: str, concept: str) -> str:
    """Return the article before a concept: "a" or "an" for an occupation, nothing for an activity."""
    article_by_concept: Mapping[str, str] = _VL_BIAS["before_concept"]
    default: str = _VL_BIAS["before"].get(kind, "")
    if default and concept in article_by_concept:
        return article_by_concept[concept]
    return "an" if default == "a" and concept[:1].lower() in _VOWELS else default


def _insert_word(text: str, word: str) -> str:
    """Return the text with the word; an article before the word is adapted ("a woman", "an artist")."""
    before, after = text.split(GROUP_SLOT)
    if before.split(" ")[-2:-1] in (["a"], ["A"]) and word[:1].lower() in _VOWELS:
        before = before[:-1] + "n "
    return before + word + after
