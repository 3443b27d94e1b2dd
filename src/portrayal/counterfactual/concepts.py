"""What CounterBias asks about: the concepts of VL-Bias, its templates, and what raters tie to whom."""

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


def _read() -> dict[str, Any]:
    text = (
        resources.files("portrayal.counterfactual").joinpath("data/vl_bias.toml").read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


_CONTENTS = _read()
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
    """A text that says something of somebody: `{group}` is a word for a group, and the mask what they do or are."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if self.text.count(GROUP) != 1 or self.text.count(MASK) != 1:
            raise PortrayalError(
                f"A template has one {GROUP} and one {MASK}, such as 'The {GROUP} is {MASK}', got {self.text!r}."
            )

    def of(self, word: str, kind: str, concept: str) -> str:
        """The text about a group, for a mask that is asked about a concept.

        >>> usual_templates()[0].of("woman", "activity", "cooking")
        'The woman is [MASK]'
        >>> usual_templates()[0].of("man", "occupation", "athlete")
        'The man is an [MASK]'
        """
        before = article(kind, concept)
        said = self.text.replace(MASK, f"{before} {MASK}" if before else MASK)
        return _agreeing(said, word)


def usual_templates() -> tuple[Template, ...]:
    return tuple(Template(name, text) for name, text in TEMPLATES.items())


def templates_named(names: Sequence[str] | None) -> tuple[Template, ...]:
    """Templates of VL-Bias by name, and texts of one's own, whose name is their text. By default all of VL-Bias."""
    if not names:
        return usual_templates()
    if len(set(names)) < len(names):
        raise PortrayalError("Each template is named once.")
    return tuple(Template(name, TEMPLATES.get(name, name)) for name in names)


def article(kind: str, concept: str) -> str:
    """What stands before a concept: "a" or "an" for somebody's occupation, nothing for what they do."""
    known: Mapping[str, str] = _CONTENTS["before_concept"]
    usual: str = _CONTENTS["before"].get(kind, "")
    if usual and concept in known:
        return known[concept]
    return "an" if usual == "a" and concept[:1].lower() in VOWELS else usual


def _agreeing(text: str, word: str) -> str:
    """The text about this word; an article before it agrees ("a woman", "an artist")."""
    before, after = text.split(GROUP)
    if before.split(" ")[-2:-1] in (["a"], ["A"]) and word[:1].lower() in VOWELS:
        before = before[:-1] + "n "
    return before + word + after
