"""Representational harms in captions: fifteen measurements of five harms, a file for each harm."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from portrayal.engine import Progress
from portrayal.errors import Undefined, unknown_name
from portrayal.files import content_digest
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.metric import DEFAULT_ATTRIBUTE, metric
from portrayal.metrics.base.options import Bootstrap, Kept, Synonyms, Words, several
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.counting import count_scenes, speakers_of
from portrayal.metrics.harms.counts import TOP
from portrayal.metrics.harms.demeaning import AdjectiveAsNoun, DemeaningWords, InContext, PeopleNotMentioned
from portrayal.metrics.harms.erasure import EntityNotNamed, GroupNotMentioned, Ignoring, Misnaming, TooVague
from portrayal.metrics.harms.measurement import Measure
from portrayal.metrics.harms.prepare import Asked, prepare, with_study
from portrayal.metrics.harms.reification import LABELLED, Attributes
from portrayal.metrics.harms.self_identification import IdentityWords
from portrayal.metrics.harms.setup import STAGES, Reference, Stage, Truth
from portrayal.metrics.harms.statements import statements
from portrayal.metrics.harms.stereotyping import CorrectlyMentioned, IncorrectWord
from portrayal.metrics.harms.stereotyping_categories import Amplification, Distributions
from portrayal.metrics.harms.streaming import NOT_IN_PARTS, count_in_parts
from portrayal.metrics.harms.survey import Survey
from portrayal.metrics.shared.caption_language import unread
from portrayal.metrics.shared.language_scores.models import LEARNT
from portrayal.results import Results, command_line, provenance
from portrayal.stats import RESAMPLES
from portrayal.study import Study, read_part
from portrayal.study.cautions import LENGTH, REFERENCES, UNANNOTATED

MEASURES: tuple[type[Measure], ...] = (
    IdentityWords,
    Attributes,
    Misnaming,
    GroupNotMentioned,
    EntityNotNamed,
    TooVague,
    Ignoring,
    IncorrectWord,
    CorrectlyMentioned,
    Distributions,
    Amplification,
    DemeaningWords,
    PeopleNotMentioned,
    InContext,
    AdjectiveAsNoun,
)
EVIDENCE = 2000
Term = Literal[
    "self-identification.identity-words", "reification.attributes", "erasure.misnaming", "erasure.group-not-mentioned",
    "erasure.entity-not-named", "erasure.too-vague", "erasure.ignoring", "stereotyping.incorrect-word",
    "stereotyping.correctly-mentioned", "stereotyping.distributions", "stereotyping.amplification", "demeaning.words",
    "demeaning.people-not-mentioned", "demeaning.in-context", "demeaning.adjective-as-noun",
]  # fmt: skip

CARD = Card(
    name="harms",
    cautioned={
        REFERENCES: tuple(kind.rule.term for kind in MEASURES if getattr(kind, "held_against_people", False)),
        # A longer caption has room for more words of any kind.
        LENGTH: tuple(kind.rule.term for kind in MEASURES),
        # Of an image that nobody annotated, references alone say what is there.
        UNANNOTATED: ("stereotyping.incorrect-word", "demeaning.in-context"),
    },
    title="Representational harms",
    question="Do captions deny, reify, erase, stereotype or demean people, and in which words?",
    formula=(
        "Fifteen measurements of five harms. Stages are what is read: 1 people's labels, 3 people's captions, 4 a "
        "system's captions, and 4-without-3: what a system says of images of which people say nothing of the "
        "kind. A rate is the share of images, each counting for the share of its captions that have what is asked "
        "about, with Wilson's interval; a count is that rate times the images. Held against several captions of "
        "people, they said it when any of them does (reference=any), or each is taken in turn and the numbers averaged "
        "(reference=each). p of a group's row: whether it differs from the other groups."
    ),
    range="share: 0 to 1. count: 0 and up. Rows of words, objects and attributes have units of their own.",
    needs=("captions",),
    uses=("references", "attributes", "objects"),
    paper=(
        "Wang, Barocas, Laird and Wallach, Measuring Representational Harms in Image Captioning, FAccT 2022, by its "
        "supplementary material; what that leaves open is reconstructed, and said so for each measurement."
    ),
    caveats=(
        "A count is the entry to a look at the captions, not a verdict: rules find more than harm, by design.",
        "Numbers of one measurement compare between systems and stages of one study; they do not add up to one "
        "number.",
        "Words are read by rules and by their most frequent sense; the documentation has how often that is right.",
    ),
    terms=tuple(measure.rule.as_term() for measure in MEASURES),
    parts=tuple(measure.rule.as_part() for measure in MEASURES),
    by_term=True,
    statements=statements(measure.rule.as_term() for measure in MEASURES),
    responds_to={
        "demeaning.people-not-mentioned": "erasure",
        "stereotyping.incorrect-word@hallucinated": "hallucination",
        "stereotyping.incorrect-word@identity where somebody is mentioned": "wrong-group",
        "demeaning.words@where somebody is mentioned": "demeaning",
    },
    should_ignore=("erasure", "hallucination", "wrong-group", "demeaning"),
)


@metric(
    CARD,
    slow=True,
    audit={"stage": ("3", "4"), "top": 10, "evidence": 500},
    every_attribute=True,
    by_term="measurement",
    english=True,
)
def harms(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    measurement: Annotated[
        tuple[Term, ...], "Only these measurements (repeatable); by default all fifteen."
    ] = (),
    stage: Annotated[
        tuple[Stage, ...],
        "What is read (repeatable): 1 people's labels, 3 people's captions, 4 systems' captions, 4-without-3 what "
        "systems say where people say nothing of the kind.",
    ] = ("4",),
    truth: Annotated[
        Truth | None,
        "What captions are held against where either will do: people's labels (1) or people's captions (3).",
    ] = None,
    reference: Annotated[
        Reference,
        "What several captions of people mean: they said what any of them says, or each in turn, averaged.",
    ] = "any",
    entities: Annotated[
        str,
        "Who finds named entities, nationalities, religious and political groups: words (a gazetteer and rules), or "
        "a pipeline of spaCy by name or folder.",
    ] = "words",
    identity: Annotated[
        tuple[str, ...],
        "Your own words for social groups (repeatable): a TOML file whose attribute is the axis.",
    ] = (),
    demeaning: Annotated[str | None, "Your own list of demeaning words: a TOML file."] = None,
    in_context: Annotated[
        str | None, "Your own pairs of groups and words that demean them: a TOML file."
    ] = None,
    appearance: Annotated[
        str | None, "How people look, for reification: a table with an image a row and a number a column."
    ] = None,
    by: Annotated[
        Literal["labelled", "named"],
        "Whose looks are compared: groups as labelled, or as captions name them.",
    ] = "labelled",
    threshold: Annotated[float, "How far a wrong word and a group must go together to be told.", 0.0] = 0.005,
    vectors: Annotated[
        str, "Word vectors that put other words into categories: a file, a packaged one, or learnt."
    ] = LEARNT,
    synonyms: Synonyms = None,
    lexicon: Words = None,
    top: Annotated[int, "How many words are told of each kind.", 0] = TOP,
    evidence: Kept = EVIDENCE,
    show_words: Annotated[bool, "Tell demeaning words one by one."] = False,
) -> ResultBuilder:
    """Counts and shares of what captions say that harms, for every system; at stages 1 and 3, for people.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame(
    ...         {"image_id": [1, 2], "system": ["s", "s"], "caption": ["an old man", "a french bulldog"]}))
    >>> found = portrayal.metrics.harms(study, measurement=("self-identification.identity-words",))
    >>> {m.item: m.value for m in found.measurements if m.unit == "share" and m.item in (None, "age", "norp")}
    {None: 0.5, 'age': 0.5, 'norp': 0.0}
    """
    chosen = [kind for kind in MEASURES if not measurement or kind.rule.term in measurement]
    stages = _stages(stage)
    asked = Asked(
        attribute=attribute, truth=truth, reference=reference, entities=entities, identity=several(identity),
        demeaning=demeaning, in_context=in_context, appearance=appearance, by=by, threshold=threshold, vectors=vectors,
        synonyms=synonyms, lexicon=lexicon, seed=seed, n_resamples=bootstrap, top=top, evidence=evidence, show_words=show_words,
    )  # fmt: skip
    if study.attribute_names and by == LABELLED:
        study.labels(attribute)  # complains of what it does not know
    _need_people(stages, study.references.height)
    preconditions_met()
    survey = Survey.of(study, any(kind.needs_senses for kind in chosen), attribute)
    builder = ResultBuilder(CARD, attribute, {})
    for one in stages:
        voices = speakers_of(one, sources, survey)
        if not voices:
            continue
        setup, settings = prepare(asked.at(one), survey, chosen)
        counted = count_scenes(study, with_study(setup, asked, study, chosen), chosen, voices)
        builder.extend(written(counted, attribute, settings, keep_all=evidence == 0))
    return builder


def _need_people(stages: Sequence[Stage], described: int) -> None:
    """Stages of people alone need what people say; labels are told on the images that they describe."""
    if not described and set(stages) <= {"1", "3"}:
        raise Undefined(
            f"Stage {stages[0]} is about people, and the study has no captions of people (references)."
        )


def _stages(stage: str | Sequence[str]) -> list[Stage]:
    return [one for one in STAGES if one in several(stage)]


def written(
    counted: Mapping[str, Sequence[Measure]],
    attribute: str,
    settings: Mapping[str, Any],
    keep_all: bool = False,
) -> ResultBuilder:
    """The rows of every measurement; of one that cannot be made, the reason."""
    builder = ResultBuilder(CARD, attribute, settings, keep_all=keep_all)
    for source, measures in counted.items():
        for measure in measures:
            reason = measure.undefined()
            if reason is not None:
                builder.add(measure.rule.term, None, system=source, n=0, reason=reason)
            else:
                measure.write(builder, source)
    return builder


def stream(
    path: Path | str,
    *,
    attribute: str | None = None,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Results:
    """Like `harms`, for a study on disk that is read part by part: `study.toml` lists several files of captions.

    Memory is bounded by the parts. Measurements that need all images at once are undefined, with that reason. Without
    an attribute it is the first that the study has.
    """
    started = time.time()
    known = {name: parameter.default for name, parameter in harms.options.items()} | harms.checked(options)
    stages, terms = _stages(known["stage"]), several(known["measurement"])
    chosen = [kind for kind in MEASURES if not terms or kind.rule.term in terms]
    able = [kind for kind in chosen if kind.streams]
    part = read_part(path, 0)
    if attribute is not None:
        attribute = resolve_attribute(attribute, part.attribute_names)
    first = attribute or next(iter(part.attribute_names), DEFAULT_ATTRIBUTE)
    sources = [source for source in part.sources if systems is None or source in systems]
    for reason in unread(part, sources, None).values():
        raise Undefined(reason)
    asked = Asked(
        attribute=first,
        seed=seed,
        **{
            field.name: known[field.name]
            for field in fields(Asked)
            if field.name in known and field.name != "stage"
        }
        | {"identity": several(known["identity"])},
    )
    survey, counted = count_in_parts(Path(path), asked, stages, able, systems, workers, progress)
    if attribute is not None and survey.groups and attribute not in survey.groups:
        raise unknown_name("attribute", attribute, list(survey.groups))
    _need_people(stages, survey.described)
    builder = ResultBuilder(CARD, first, {})
    for stage, measures in counted.items():
        _, settings = prepare(asked.at(stage), survey, able)
        builder.extend(written(measures, first, settings, keep_all=asked.evidence == 0))
        unable = ResultBuilder(CARD, first, settings)
        for source, kind in product(measures, [kind for kind in chosen if not kind.streams]):
            unable.add(kind.rule.term, None, system=source, n=0, reason=NOT_IN_PARTS)
        builder.extend(unable)
    files = content_digest(Path(path)) if Path(path).is_file() else content_digest(Path(path) / "study.toml")
    about = {"name": Path(path).name, "digest": files[:16]}
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=about,
        cards={CARD.name: CARD.as_dict()},
        skipped=[],
    )
    return Results.join([builder.results()], origin)


__all__ = ["CARD", "MEASURES", "harms", "stream"]
