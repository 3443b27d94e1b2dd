"""A metric: a function that measures a study, together with its card."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from threadpoolctl import threadpool_limits

from portrayal.errors import PortrayalError, Undefined, unknown_name
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.cautions import study_cautions, with_study_cautions
from portrayal.metrics.base.preconditions import unmet_precondition
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_language import (
    add_language_cautions,
    language_cautions,
    unreadable_sources,
)
from portrayal.metrics.shared.lexicon_use import check_distinct_groups
from portrayal.provenance import command_line, provenance
from portrayal.results import HUMAN, Results
from portrayal.study import Study

# The attribute of metrics that need no labels, on a study without labels.
DEFAULT_ATTRIBUTE = "gender"
Compute = Callable[..., ResultBuilder]
_MISSING = {
    "captions": "the study has no captions of a system",
    "references": "the study has no human captions (references)",
    "attributes": "the study has no labels of the people shown (attributes)",
    "objects": "the study has no labels of objects",
    "rankings": "the study has no rankings of items by a system",
    "images": "the study has no images",
    "model": "it needs a vision-language model, and none is named (--model NAME)",
}
_LABELS_FROM_CAPTIONS = (
    "the study's object labels are words found in captions (source 'captions'), which are no ground truth"
)


class Metric:
    """What measures a study: a card, the function that computes the rows, and how audits run it.

    Parameters
    ----------
    card
        Description of the metric.
    compute
        Function `compute(study, *, attribute, sources, seed, ...)` that returns a ResultBuilder.
    slow
        Whether sources are worth a process each.
    audit_options, quick_options
        Options of audits, and of quick audits.
    sources_together
        Whether all sources are measured faster together than in a process each, under these options.
    every_attribute
        Whether labels split its numbers even where no lexicon names their groups.
    term_option
        The option that selects some of its terms.
    measured_sources
        Returns the sources that it measures under these options; by default all sources of the study.
    not_general
        Options that have the name of a general option of an audit and mean something else.
    english
        Whether its word lists are English whatever the lexicon, or the terms whose lists are.
    stream
        Measures a study in parts, in bounded memory.
    """

    def __init__(
        self,
        card: Card,
        compute: Compute,
        slow: bool = False,
        audit_options: Mapping[str, Any] | None = None,
        quick_options: Mapping[str, Any] | None = None,
        sources_together: Callable[[Mapping[str, Any]], bool] = lambda _: False,
        every_attribute: bool = False,
        term_option: str | None = None,
        measured_sources: Callable[[Study, Mapping[str, Any]], tuple[str, ...]] | None = None,
        not_general: Sequence[str] = (),
        english: bool | tuple[str, ...] = False,
        stream: Callable[..., Results] | None = None,
    ):
        self.card = card
        self.slow = slow
        self.sources_together = sources_together
        self.every_attribute = every_attribute
        self.term_option = term_option
        self._measured_sources = measured_sources
        self._not_general = frozenset(not_general)
        self._english = english
        self.audit_options, self.quick_options = dict(audit_options or {}), dict(quick_options or {})
        self.stream = stream
        self.compute = compute
        self.name = card.name
        # What users call; set when the metric is registered.
        self.function: Callable[..., Results] = self

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
        """Measure one attribute, or every attribute of the study; attributes that cannot be measured are skipped.

        Parameters
        ----------
        study
            The study to measure.
        attribute
            The attribute to measure; by default all attributes.
        systems
            Keep only these systems in the study.
        sources
            Measure only these sources (systems, and `human` for the human captions) and keep the others in the study,
            so that a long measurement can be split up.
        seed
            Seed of resampling and permutations.
        **options
            Options of this metric.

        Returns
        -------
        Results
            The measurements, with their evidence and provenance.
        """
        started = time.time()
        self.check_options(options)
        if systems is not None:
            study = study.select_systems(systems)
        requested = self.measured_sources(study, options) if sources is None else tuple(sources)
        parts: list[Results] = []
        skipped: list[dict[str, str | None]] = []
        for name in self.attributes_of(study, attribute, options):
            try:
                readable, messages = self._readable_sources(study, name, requested, options)
                skipped += [
                    {"metric": self.name, "attribute": name, "reason": reason}
                    for source, reason in messages.items()
                    if source not in readable
                ]
                # One thread adds numbers in one order, which gives the same digits on every machine.
                with threadpool_limits(1):
                    builder = self.compute(study, attribute=name, sources=readable, seed=seed, **options)
                    terms = self._english if isinstance(self._english, tuple) else ()
                    parts.append(add_language_cautions(builder.results(), messages, terms))
            except Undefined as reason:
                if attribute is not None:
                    raise
                skipped.append({"metric": self.name, "attribute": name, "reason": str(reason)})
        if skipped and not parts:
            raise Undefined(" ".join(str(skip["reason"]) for skip in skipped))
        parts = [
            replace(
                part,
                measurements=with_study_cautions(part.measurements, self.card, study, self.every_attribute),
            )
            for part in parts
        ]
        return Results.join(parts, self.provenance(study, seed, started, skipped))

    def unmet(self, study: Study, attribute: str, options: Mapping[str, Any], seed: int = 0) -> str | None:
        """The reason why the metric cannot be measured for this attribute, as a run would state it; else None."""

        def dry_run() -> ResultBuilder:
            sources, _ = self._readable_sources(
                study, attribute, self.measured_sources(study, options), options
            )
            return self.compute(study, attribute=attribute, sources=sources, seed=seed, **options)

        return unmet_precondition(dry_run)

    def takes(self, option: str) -> bool:
        """Whether a general option of an audit applies to this metric."""
        return option in self.options and option not in self._not_general

    def _readable_sources(
        self, study: Study, attribute: str, requested: Sequence[str], options: Mapping[str, Any]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The sources whose captions the word lists can read, and a message for each other or partly read source.

        Raises Undefined where no system is left, and where the references that captions are compared with cannot be
        read.
        """
        if "attributes" in self.card.needs or self.every_attribute:
            check_distinct_groups(study, attribute)
        if not set(requested) & set(study.sources) or self._ignores_shipped_lists(options):
            return tuple(requested), {}
        # Only some terms use English lists: these get a caution.
        if isinstance(self._english, tuple):
            return tuple(requested), unreadable_sources(study, requested, None) | language_cautions(
                study, requested, None
            )
        lexicon = None
        if not self._english:
            chosen: str | Lexicon | None = options.get("lexicon")
            lexicon = find_lexicon(attribute) if chosen is None else load_lexicon(chosen)
        reference_sources = (HUMAN,) if "references" in (*self.card.needs, *self.card.uses) else ()
        refused = unreadable_sources(study, dict.fromkeys((*requested, *reference_sources)), lexicon)
        if HUMAN in refused and reference_sources:
            raise Undefined(refused[HUMAN])
        readable = tuple(source for source in requested if source not in refused)
        if refused and not any(source != HUMAN for source in readable):
            raise Undefined(next(iter(refused.values())))
        return readable, refused | language_cautions(study, readable, lexicon)

    def _ignores_shipped_lists(self, options: Mapping[str, Any]) -> bool:
        """Whether shipped word lists do not matter: none is needed or used, or the user gives the words."""
        if "lexicon" in self.options:
            return options.get("mask") is False and not self._english
        return not self._english or bool(options.get("synonyms"))

    def provenance(
        self, study: Study, seed: int, started: float, skipped: list[dict[str, str | None]]
    ) -> dict[str, Any]:
        """Provenance of results that hold this metric alone."""
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
        """The options of this metric: the keyword parameters of its function, with resolved types."""
        hints = get_type_hints(self.compute, include_extras=True)
        parameters = inspect.signature(self.compute).parameters.values()
        return {
            p.name: p.replace(annotation=hints[p.name])
            for p in parameters
            if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in ("attribute", "sources", "seed")
        }

    def check_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, if the metric has them and accepts their values; else an error.

        Names must be among those of the annotation. The minimum of a number stands beside its help text.
        """
        for option in options:
            if option not in self.options:
                raise unknown_name(
                    f"option of the metric '{self.name}'", option, [*self.options, "systems", "seed"]
                )
        for name, value in options.items():
            # None leaves the choice to the metric.
            if value is None:
                continue
            known = _allowed_names(self.options[name].annotation)
            for item in () if not known else (value,) if isinstance(value, str) else value:
                if item not in known:
                    raise unknown_name(f"value of the option '{name}'", str(item), known)
            for minimum in getattr(self.options[name].annotation, "__metadata__", ())[1:]:
                for item in value if isinstance(value, list | tuple) else (value,):
                    if not isinstance(item, int | float) or not item >= minimum:
                        raise PortrayalError(
                            f"The option '{name}' must be {minimum:g} or more. Got {item!r} instead."
                        )
        return options

    def measured_sources(self, study: Study, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The sources that it measures: those with captions, or with rankings where it measures rankings."""
        if self._measured_sources is not None:
            return self._measured_sources(study, options)
        return study.rankers if "rankings" in self.card.needs else study.sources

    def _usable_attributes(self, study: Study) -> tuple[str, ...]:
        """The attributes whose labels it can use; rankings may have labels of their own."""
        return study.ranked_attributes if "rankings" in self.card.needs else study.attribute_names

    def missing(self, study: Study, options: Mapping[str, Any] | None = None) -> str | None:
        """Why the study lacks what the metric needs; None where it lacks nothing."""
        for need in self.card.needs:
            if need == "captions" and not study.captions.height:
                return _MISSING[need]
            if need == "rankings" and not study.rankings.height:
                return _MISSING[need]
            if need == "attributes" and not self._usable_attributes(study):
                return _MISSING[need]
            if need == "references" and not study.references.height:
                return _MISSING[need]
            if need == "objects" and not study.annotations["label"].count():
                return _LABELS_FROM_CAPTIONS if study.objects["label"].count() else _MISSING[need]
            if need == "images" and not study.image_files:
                return _MISSING[need]
            if need == "model" and not (options or {}).get("model"):
                return _MISSING[need]
        if not self.measured_sources(study, options or {}):
            return "the study has nothing by a system that it measures (see its options)"
        return None

    def attributes_of(
        self, study: Study, attribute: str | None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """The requested attribute; else all of the study, or the lexicon's attribute where labels are not needed."""
        options = options or {}
        lexicon: str | Lexicon | None = options.get("lexicon")
        missing = self.missing(study, options)
        if missing:
            raise Undefined(f"The metric '{self.name}' cannot run: {missing}.")
        if attribute is not None:
            attribute = resolve_attribute(attribute, self._usable_attributes(study))
            if "rankings" in self.card.needs:
                study.ranked_items(attribute)
            elif "attributes" in self.card.needs:
                # Raises an error for an unknown attribute.
                study.labels(attribute)
            return (attribute,)
        if "attributes" in self.card.needs or (self.every_attribute and study.attribute_names):
            return self._usable_attributes(study)
        if lexicon is not None:
            words = load_lexicon(lexicon)
            return (resolve_attribute(words.attribute or words.name, study.attribute_names),)
        # Groups come from the lexicon; the attributes of the study only select them.
        named = tuple(name for name in study.attribute_names if find_lexicon(name) is not None)
        return named or (DEFAULT_ATTRIBUTE,)

    def __repr__(self) -> str:
        return f"<metric {self.name}>"


def _allowed_names(annotation: Any) -> tuple[str, ...]:
    """The names that a (nested) annotation allows; empty where it allows any."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(
        name for argument in get_args(annotation) if argument is not str for name in _allowed_names(argument)
    )
