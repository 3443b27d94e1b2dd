"""A metric: a function that measures a study, with the card that describes it."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from threadpoolctl import threadpool_limits

from portrayal.errors import PortrayalError, Undefined, unknown_name
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.cautions import cautioned, study_cautions
from portrayal.metrics.base.preconditions import unmet_precondition
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_language import cautions, unread, with_cautions
from portrayal.metrics.shared.lexicon_use import refuse_groups_alike
from portrayal.results import HUMAN, Results, command_line, provenance
from portrayal.study import Study

DEFAULT_ATTRIBUTE = "gender"  # of metrics that need no labels, on a study that has none
Compute = Callable[..., ResultBuilder]
_MISSING = {
    "captions": "the study has no captions of a system",
    "references": "the study has no captions of people (references)",
    "attributes": "the study has no labels of the people shown (attributes)",
    "objects": "the study has no labels of objects",
    "rankings": "the study has no rankings of items by a system",
    "pictures": "the study has no pictures (images)",
    "model": "it asks a vision-language model, and none is named (--model NAME)",
}
_CAPTION_WORDS = (
    "the study's object labels are words found in captions (source 'captions'), which are no ground truth"
)


class Metric:
    """Call it with a study and options; it returns Results. What its module holds is reachable through it."""

    def __init__(
        self,
        card: Card,
        compute: Compute,
        slow: bool = False,
        audit: Mapping[str, Any] | None = None,
        quick: Mapping[str, Any] | None = None,
        at_once: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        every_attribute: bool = False,
        by_term: str | None = None,
        voices: Callable[[Study, Mapping[str, Any]], tuple[str, ...]] | None = None,
        own: Sequence[str] = (),
        english: bool | tuple[str, ...] = False,
    ):
        """`slow` metrics are worth a process for each speaker, unless their options mean that all speakers `at_once`
        are faster; `audit` and `quick` are options of (quick) audits. `every_attribute`: labels split its numbers,
        whether or not a lexicon names their groups. `by_term` is the option that asks for some of its terms only.
        `voices`: whom it measures under some options, where that is not everyone who speaks. `own`: options that
        have the name of a general option of an audit and mean something else. `english`: its word lists are English
        whatever the lexicon, or those of these terms are."""
        self.card = card
        self.slow = slow
        self.at_once = at_once
        self.every_attribute = every_attribute
        self.by_term = by_term
        self._voices = voices
        self._own = frozenset(own)
        self._english = english
        self.audit, self.quick = dict(audit or {}), dict(quick or {})
        self.compute = compute
        self.name = card.name
        self.__name__ = compute.__name__
        self.__doc__ = compute.__doc__
        self.__module__ = compute.__module__
        self.__wrapped__ = compute

    def __call__(
        self,
        study: Study,
        *,
        attribute: str | None = None,
        systems: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> Results:
        """Measure one attribute, or every one the study has; those it cannot be measured for are listed as skipped.

        `systems` leaves the others out of the study. `speakers` leaves them in, but measures these only (people's
        captions go by the name `human`), so that a long measurement can be split up.
        """
        started = time.time()
        self.checked(options)
        if systems is not None:
            study = study.only(systems)
        voices = self.voices(study, options) if sources is None else tuple(sources)
        parts: list[Results] = []
        skipped: list[dict[str, str | None]] = []
        for name in self.attributes_of(study, attribute, options):
            try:
                readable, doubts = self._readable(study, name, voices, options)
                skipped += [
                    {"metric": self.name, "attribute": name, "reason": reason}
                    for source, reason in doubts.items()
                    if source not in readable
                ]
                with threadpool_limits(1):  # one thread adds in one order: the same digits on every machine
                    found = self.compute(study, attribute=name, sources=readable, seed=seed, **options)
                    terms = self._english if isinstance(self._english, tuple) else ()
                    parts.append(with_cautions(found.results(), doubts, terms))
            except Undefined as reason:
                if attribute is not None:
                    raise
                skipped.append({"metric": self.name, "attribute": name, "reason": str(reason)})
        if skipped and not parts:
            raise Undefined(" ".join(str(skip["reason"]) for skip in skipped))
        parts = [
            replace(part, measurements=cautioned(part.measurements, self.card, study, self.every_attribute))
            for part in parts
        ]
        return Results.join(parts, self.provenance(study, seed, started, skipped))

    def unmet(self, study: Study, attribute: str, options: Mapping[str, Any], seed: int = 0) -> str | None:
        """Why the metric cannot be measured for this attribute, in the words of a run; None when it can."""

        def dry_run() -> ResultBuilder:
            sources, _ = self._readable(study, attribute, self.voices(study, options), options)
            return self.compute(study, attribute=attribute, sources=sources, seed=seed, **options)

        return unmet_precondition(dry_run)

    def takes(self, option: str) -> bool:
        """Whether a general option of an audit is meant for this metric too."""
        return option in self.options and option not in self._own

    def _readable(
        self, study: Study, attribute: str, voices: Sequence[str], options: Mapping[str, Any]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The sources that its word lists can read, and what to say of those that they cannot, or in part.

        It is undefined where no system is left, and where references that it holds captions against cannot be read.
        """
        if "attributes" in self.card.needs or self.every_attribute:
            refuse_groups_alike(study, attribute)
        if not set(voices) & set(study.sources) or self._own_words(options):
            return tuple(voices), {}
        if isinstance(self._english, tuple):  # some of its terms: these have a caution
            return tuple(voices), unread(study, voices, None) | cautions(study, voices, None)
        lexicon = None
        if not self._english:
            asked: str | Lexicon | None = options.get("lexicon")
            lexicon = find_lexicon(attribute) if asked is None else load_lexicon(asked)
        against = (HUMAN,) if "references" in (*self.card.needs, *self.card.uses) else ()
        refused = unread(study, dict.fromkeys((*voices, *against)), lexicon)
        if HUMAN in refused and against:
            raise Undefined(refused[HUMAN])
        left = tuple(source for source in voices if source not in refused)
        if refused and not any(source != HUMAN for source in left):
            raise Undefined(next(iter(refused.values())))
        return left, refused | cautions(study, left, lexicon)

    def _own_words(self, options: Mapping[str, Any]) -> bool:
        """Whether the shipped lists do not matter: there are none, none is used, or the words are the user's."""
        if "lexicon" in self.options:
            return options.get("mask") is False and not self._english
        return not self._english or bool(options.get("synonyms"))

    def provenance(
        self, study: Study, seed: int, started: float, skipped: list[dict[str, str | None]]
    ) -> dict[str, Any]:
        """Of results that hold this metric alone, however it was run."""
        return provenance(
            command=command_line(),
            seed=seed,
            started=started,
            study={"name": study.name, "digest": study.digest},
            cards={self.name: self.card.as_dict()},
            skipped=skipped,
            cautions=[caution.as_dict() for caution in study_cautions(study)],
        )

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options that are this metric's own: the keywords of its function, types resolved."""
        hints = get_type_hints(self.compute, include_extras=True)
        parameters = inspect.signature(self.compute).parameters.values()
        return {
            p.name: p.replace(annotation=hints[p.name])
            for p in parameters
            if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in ("attribute", "sources", "seed")
        }

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, if they are this metric's and have values it knows.

        Names must be among those of the annotation; numbers have a least value, which stands beside their help."""
        for option in options:
            if option not in self.options:
                raise unknown_name(
                    f"option of the metric '{self.name}'", option, [*self.options, "systems", "seed"]
                )
        for name, value in options.items():
            if value is None:  # left to the metric
                continue
            known = _choices(self.options[name].annotation)
            for one in () if not known else (value,) if isinstance(value, str) else value:
                if one not in known:
                    raise unknown_name(f"value of the option '{name}'", str(one), known)
            for least in getattr(self.options[name].annotation, "__metadata__", ())[1:]:
                for one in value if isinstance(value, list | tuple) else (value,):
                    if not isinstance(one, int | float) or not one >= least:
                        raise PortrayalError(
                            f"The option '{name}' must be {least:g} or more. Got {one!r} instead."
                        )
        return options

    def voices(self, study: Study, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Whom it measures: those who speak, or where it is about rankings, those who rank."""
        if self._voices is not None:
            return self._voices(study, options)
        return study.rankers if "rankings" in self.card.needs else study.sources

    def _labels(self, study: Study) -> tuple[str, ...]:
        """The attributes whose labels it can use: rankings may bring their own."""
        return study.ranked_attributes if "rankings" in self.card.needs else study.attribute_names

    def missing(self, study: Study, options: Mapping[str, Any] | None = None) -> str | None:
        """Why this study does not allow the metric, or None when it does."""
        for need in self.card.needs:
            if need == "captions" and not study.captions.height:
                return _MISSING[need]
            if need == "rankings" and not study.rankings.height:
                return _MISSING[need]
            if need == "attributes" and not self._labels(study):
                return _MISSING[need]
            if need == "references" and not study.references.height:
                return _MISSING[need]
            if need == "objects" and not study.annotated["label"].count():
                return _CAPTION_WORDS if study.objects["label"].count() else _MISSING[need]
            if need == "pictures" and not study.pictures:
                return _MISSING[need]
            if need == "model" and not (options or {}).get("model"):
                return _MISSING[need]
        if not self.voices(study, options or {}):
            return "the study has nothing by a system that it measures (see its options)"
        return None

    def attributes_of(
        self, study: Study, attribute: str | None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """The attribute asked for; else all there are, or where labels are not needed, the lexicon's own."""
        options = options or {}
        lexicon: str | Lexicon | None = options.get("lexicon")
        missing = self.missing(study, options)
        if missing:
            raise Undefined(f"The metric '{self.name}' cannot run: {missing}.")
        if attribute is not None:
            attribute = resolve_attribute(attribute, self._labels(study))
            if "rankings" in self.card.needs:
                study.ranked(attribute)
            elif "attributes" in self.card.needs:
                study.labels(attribute)  # complains of what it does not know
            return (attribute,)
        if "attributes" in self.card.needs or (self.every_attribute and study.attribute_names):
            return self._labels(study)
        if lexicon is not None:
            words = load_lexicon(lexicon)
            return (resolve_attribute(words.attribute or words.name, study.attribute_names),)
        # Groups come from the lexicon; the study's attributes only say which ones matter.
        named = tuple(name for name in study.attribute_names if find_lexicon(name) is not None)
        return named or (DEFAULT_ATTRIBUTE,)

    def __getattr__(self, name: str) -> Any:
        # Reached only for names the metric itself lacks: the plain functions of its module.
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(sys.modules[self.__module__], name)
        except AttributeError:
            raise AttributeError(f"the metric '{self.name}' has no attribute {name!r}") from None

    def __repr__(self) -> str:
        return f"<metric {self.name}>"


def _choices(annotation: Any) -> tuple[str, ...]:
    """The names that an annotation allows, in however many brackets; none where it allows any."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(name for part in get_args(annotation) if part is not str for name in _choices(part))


def metric(card: Card, **how: Any) -> Callable[[Compute], Metric]:
    """Make a function `compute(study, *, attribute, ...) -> Findings` a metric with this card."""
    return lambda compute: Metric(card, compute, **how)
