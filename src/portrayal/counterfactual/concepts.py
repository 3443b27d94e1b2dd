"""The concepts, templates and stereotypes of VL-Bias, which CounterBias queries."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from portrayal.errors import PortrayalError

MASK = "[MASK]"
GROUP = "{group}"
VOWELS = "aeiou"


def _read_contents() -> dict[str, Any]:
    text = (
        resources.files("portrayal.counterfactual").joinpath("data/vl_bias.toml").read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


_CONTENTS = _read_contents()
TEMPLATES: dict[str, str] = _CONTENTS["templates"]
BIAS_PROMPT: str = _CONTENTS["prompts"]["bias"]
CONTROL_PROMPT: str = _CONTENTS["prompts"]["control"]
CONTROL_WORDS: tuple[str, ...] = tuple(_CONTENTS["prompts"]["control_words"])
KINDS: dict[str, tuple[str, ...]] = {kind: tuple(words) for kind, words in _CONTENTS["kinds"].items()}
STEREOTYPES: dict[str, str] = {
    concept: group for group, concepts in _CONTENTS["stereotypes"].items() for concept in concepts
}


@dataclass(frozen=True)
class Template:
    """A text about a person: `{group}` is a word for a group, and the mask stands for what they do or are."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if self.text.count(GROUP) != 1 or self.text.count(MASK) != 1:
            raise PortrayalError(
                f"A template has one {GROUP} and one {MASK}, such as 'The {GROUP} is {MASK}', got {self.text!r}."
            )

    def of(self, word: str, kind: str, concept: str) -> str:
        """The text with a group's word, and the article that the concept needs before the mask.

        >>> default_templates()[0].of("woman", "activity", "cooking")
        'The woman is [MASK]'
        >>> default_templates()[0].of("man", "occupation", "athlete")
        'The man is an [MASK]'
        """
        before = article(kind, concept)
        text = self.text.replace(MASK, f"{before} {MASK}" if before else MASK)
        return _insert_word(text, word)


def default_templates() -> tuple[Template, ...]:
    return tuple(Template(name, text) for name, text in TEMPLATES.items())


def find_templates(names: Sequence[str] | None) -> tuple[Template, ...]:
    """Templates of VL-Bias by name, and custom templates, whose name is their text. By default all of VL-Bias."""
    if not names:
        return default_templates()
    if len(set(names)) < len(names):
        raise PortrayalError("Each template must be named once.")
    return tuple(Template(name, TEMPLATES.get(name, name)) for name in names)


def article(kind: str, concept: str) -> str:
    """The article before a concept: "a" or "an" for an occupation, nothing for an activity."""
    exceptions: Mapping[str, str] = _CONTENTS["before_concept"]
    default: str = _CONTENTS["before"].get(kind, "")
    if default and concept in exceptions:
        return exceptions[concept]
    return "an" if default == "a" and concept[:1].lower() in VOWELS else default


def _insert_word(text: str, word: str) -> str:
    """The text with the word; an article before it agrees ("a woman", "an artist")."""
    before, after = text.split(GROUP)
    if before.split(" ")[-2:-1] in (["a"], ["A"]) and word[:1].lower() in VOWELS:
        before = before[:-1] + "n "
    return before + word + after
