"""Remedies applied to a study and measured before and after, all in one set of results."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.auditing import describe, score
from portrayal.engine import Progress
from portrayal.errors import PortrayalError, Undefined, unknown_name
from portrayal.files import replacing
from portrayal.lexicon import Lexicon
from portrayal.metrics import Metric, find_metric
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.mentions import choose_lexicon, labelled_objects, without_people
from portrayal.mitigate.captions.balancing import Balance, balance, drawn
from portrayal.mitigate.captions.card import CARD
from portrayal.mitigate.captions.changes import changes
from portrayal.mitigate.captions.evidence import LEAST, evidence_in
from portrayal.mitigate.captions.measurements import balance_rows, rewrite_rows
from portrayal.mitigate.captions.rewrite import EVERYWHERE, NO_EVIDENCE, WHERE, Rewriter
from portrayal.results import HUMAN, Measurement, Results, command_line, provenance
from portrayal.stats import RESAMPLES
from portrayal.study import Study

NEUTRAL, BALANCED, RANDOM = "neutral", "balanced", "as many at random"
REMEDIES = (NEUTRAL, BALANCED)
METRICS = ("lic", "error", "quality", "harms")
_SAID = {NO_EVIDENCE: "neutral where no evidence", EVERYWHERE: "neutral everywhere"}
_ERASURE: dict[str, Any] = {"measurement": ("erasure.group-not-mentioned",), "top": 0}  # what a rewrite costs
_NOT_IN_NAMES = re.compile(r"[^\w(). -]+")


@dataclass(frozen=True)
class Remedied:
    """The results of all remedies, the captions they wrote and the images they kept."""

    results: Results
    captions: pl.DataFrame  # of the rewritten systems, as a study has them
    images: Mapping[str, tuple[tuple[str, str], ...]]  # by set: image and group
    before: Mapping[str, str] = field(default_factory=dict)  # remedied system: the system it was made from

    def save(self, folder: Path | str) -> list[Path]:
        """Write the results, the captions of each rewritten system, and the images of each balanced set."""
        folder = Path(folder)
        written = [self.results.save(folder)]
        for system, rows in self.captions.group_by("system", maintain_order=True):
            path = folder / "captions" / f"{_file_name(str(system[0]))}.jsonl"
            with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(
                    json.dumps(row, ensure_ascii=False) + "\n" for row in rows.iter_rows(named=True)
                )
            written.append(path)
        for name, images in self.images.items():
            path = folder / "images" / f"{_file_name(name)}.csv"
            with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([("image_id", "group"), *images])
            written.append(path)
        return written


def remedied(
    study: Study,
    *,
    remedies: Sequence[str] = REMEDIES,
    attribute: str = "gender",
    systems: Sequence[str] | None = None,
    lexicon: str | Lexicon | None = None,
    where: Sequence[str] = WHERE,
    min_share: float = LEAST,
    metrics: Sequence[str] = METRICS,
    seed: int = 0,
    bootstrap: int = RESAMPLES,
    workers: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Remedied:
    """Rewrite captions, balance images, and measure every system before and after; `options` are those of LIC.

    A remedied system is a further system: `oscar (neutral everywhere)`. Of a metric that the study does not allow the
    provenance says why.

    >>> from portrayal.lab import make_study
    >>> study = make_study(scenes=60, seed=1)
    >>> made = remedied(study, remedies=["neutral"], where=["everywhere"], metrics=["error"], bootstrap=20)
    >>> shares = {m.system: m.value for m in made.results.measurements if m.term == "neutral" and m.group is None}
    >>> [round(value) for name, value in shares.items() if name.endswith("(neutral everywhere)")]
    [1, 1, 1]
    """
    started = time.time()
    chosen = [_known("remedy", name, REMEDIES) for name in dict.fromkeys(remedies)]
    places = [_known("place to rewrite", name, WHERE) for name in dict.fromkeys(where)]
    measured = list(dict.fromkeys(map(find_metric, metrics)))
    if not 0 < min_share <= 1:
        raise PortrayalError(
            f"The option 'min_share' must be above 0 and at most 1. Got {min_share!r} instead."
        )
    if not chosen or (NEUTRAL in chosen and not places):
        raise PortrayalError("Name at least one remedy, and at least one place to rewrite.")
    if systems is not None:
        study = study.only(systems)
    if not study.captions.height:
        raise Undefined("The study has no captions of a system, so there is nothing to remedy.")
    attribute = resolve_attribute(attribute, study.attribute_names)
    words = choose_lexicon(lexicon, attribute)
    found: list[ResultBuilder] = []
    origin: dict[str, str] = {}  # remedied system: the one it was made from
    settings: dict[str, Mapping[str, Any]] = {}  # how it was remedied
    images: dict[str, tuple[tuple[str, str], ...]] = {}

    def note(builder: ResultBuilder, name: str, sources: Sequence[str]) -> None:
        found.append(builder)
        origin.update({_name(source, name): source for source in sources})
        settings.update(dict.fromkeys((_name(source, name) for source in sources), builder.settings))

    whole = study
    for place in places if NEUTRAL in chosen else ():
        whole, builder = _rewritten(study, whole, words, place, min_share, attribute, seed, bootstrap)
        note(builder, _SAID[place], study.systems)
    rewritten = whole.captions.filter(pl.col("system").is_in(list(origin)))
    parts = [(whole, "")]
    for name, kept, builder in _balanced(study, attribute, seed) if BALANCED in chosen else ():
        note(builder, name, study.sources)
        parts.append((_on(study, kept.kept, name), name))
        images[name] = tuple((image, kept.groups[image]) for image in kept.kept)
    asked = _Asked(attribute, lexicon, seed, bootstrap, workers, options)
    numbers, skipped = _measured(parts, measured, asked, progress)
    randoms = {_name(old, BALANCED): _name(old, RANDOM) for old in study.sources if BALANCED in chosen}
    rows = [
        *(builder.results() for builder in found),
        changes(numbers, origin, settings, "change"),
        changes(numbers, randoms, settings, "beyond-random"),
        numbers,
    ]
    made = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=describe(study),
        cards={CARD.name: CARD.as_dict(), **{metric.name: metric.card.as_dict() for metric in measured}},
        skipped=skipped,
        remedied=origin,
    )
    return Remedied(Results.join(rows, made), rewritten, images, origin)


def _measured(
    parts: Sequence[tuple[Study, str]], metrics: Sequence[Metric], asked: _Asked, progress: Progress | None
) -> tuple[Results, list[dict[str, str]]]:
    """Every metric on the study and on each of its parts; and which of them cannot be measured, and why."""
    found: list[Results] = []
    skipped: list[dict[str, str]] = []
    steps = [(study, name, metric) for study, name in parts for metric in metrics]
    for number, (study, name, metric) in enumerate(steps):
        if progress is not None:
            progress(f"{metric.name} {name}".strip(), number, len(steps))
        try:
            found.append(_of_part(asked.measure(study, metric), name))
        except Undefined as reason:
            skip = {"metric": metric.name, "attribute": asked.attribute, "reason": str(reason)}
            skipped += [skip] if skip not in skipped else []
    if not any(part.measurements for part in found):
        raise Undefined(" ".join(skip["reason"] for skip in skipped) or "No metric was named.")
    return Results.join(found, {}), skipped


def _known(kind: str, name: str, among: Sequence[str]) -> str:
    if name not in among:
        raise unknown_name(kind, name, among)
    return name


def _name(system: str, remedy: str) -> str:
    return f"{system} ({remedy})"


def _file_name(system: str) -> str:
    return _NOT_IN_NAMES.sub("-", system).strip(". ") or "system"


@dataclass(frozen=True)
class _Asked:
    """How every part is measured: with the same options, so that before and after can be compared."""

    attribute: str
    lexicon: str | Lexicon | None
    seed: int
    n_resamples: int
    workers: int
    lic: Mapping[str, Any]

    def measure(self, study: Study, metric: Metric) -> Results:
        options: dict[str, Any] = {"bootstrap": self.n_resamples} if "bootstrap" in metric.options else {}
        if self.lexicon is not None and "lexicon" in metric.options:
            options["lexicon"] = self.lexicon
        if metric.name == "lic":
            options |= self.lic
        elif metric.name == "harms":
            options |= _ERASURE
        return score(study, metric, attribute=self.attribute, seed=self.seed, workers=self.workers, **options)


def _rewritten(
    study: Study,
    whole: Study,
    words: Lexicon,
    place: str,
    least: float,
    attribute: str,
    seed: int,
    n_resamples: int,
) -> tuple[Study, ResultBuilder]:
    """The study with a further system for each of its systems, and what was changed."""
    rewriter = Rewriter(words)
    evident = evidence_in(study, words, least) if place == NO_EVIDENCE else None
    labels = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    settings = {
        "remedy": NEUTRAL,
        "where": place,
        "min_share": None if evident is None else least,
        "lexicon": words.label,
    }
    builder = ResultBuilder(CARD, attribute, settings)
    frames, vocabularies = [whole.captions], dict(whole.vocabularies)
    for system in study.systems:
        name = _name(system, _SAID[place])
        if name in study.systems:
            raise PortrayalError(f"The study has a system called '{name}' already; leave it out (--systems).")
        rows = study.captions.filter(pl.col("system") == system)
        captions = [
            (image, caption, rewriter.rewrite(caption, evident.groups(image) if evident else ()))
            for image, caption in rows.select("image_id", "caption").iter_rows()
        ]
        rewrite_rows(builder, name, captions, evident, labels, seed, n_resamples)
        new = pl.Series("caption", [one.text for _, _, one in captions], pl.String)
        frames.append(rows.with_columns(pl.lit(name).alias("system"), new))
        if study.vocabularies.get(system):  # it can say what it could say before, and the words it was given
            given = {part for _, _, one in captions for _, new in one.changed for part in new.split()}
            vocabularies[name] = tuple(dict.fromkeys((*study.vocabularies[system], *sorted(given))))
    return replace(whole, captions=pl.concat(frames), vocabularies=vocabularies), builder


def _balanced(study: Study, attribute: str, seed: int) -> Iterator[tuple[str, Balance, ResultBuilder]]:
    """The balanced set, and as many images at random."""
    if not study.attribute_names:
        raise Undefined(
            "Images are balanced by labels of the people shown (attributes), and the study has none."
        )
    told = set(study.captions["image_id"]) | set(study.references["image_id"])
    groups = {image: group for image, group in study.labels(attribute).iter_rows() if image in told}
    seen, source = labelled_objects(study)
    objects: dict[str, set[str]] = {}
    for image, label in without_people(seen).select("image_id", "label").iter_rows():
        objects.setdefault(image, set()).add(label)
    made = balance(groups, objects, seed)
    settings = {"remedy": BALANCED, "objects": source, "images": len(groups), "drawn_by_seed": seed}
    builder = ResultBuilder(CARD, attribute, settings)
    balance_rows(builder, made, HUMAN, _name(HUMAN, BALANCED))
    yield BALANCED, made, builder
    other = drawn(made, seed)
    builder = ResultBuilder(CARD, attribute, {**settings, "remedy": RANDOM})
    balance_rows(builder, other, None, _name(HUMAN, RANDOM))
    yield RANDOM, other, builder


def _on(study: Study, images: Sequence[str], name: str) -> Study:
    """The study on some of its images, its systems under another name."""
    kept = {
        table: getattr(study, table).filter(pl.col("image_id").is_in(images))
        for table in ("captions", "references", "attributes", "people", "objects")
    }
    kept["captions"] = kept["captions"].with_columns(
        pl.concat_str(pl.col("system"), pl.lit(f" ({name})")).alias("system")
    )
    vocabularies = {_name(system, name): words for system, words in study.vocabularies.items()}
    return replace(study, vocabularies=vocabularies, rankings=study.rankings.clear(), **kept)


def _of_part(results: Results, name: str) -> Results:
    """People's rows of a part of the study under a name of their own."""
    if not name:
        return results
    renamed: dict[str, str] = {}
    rows: list[Measurement] = []
    for m in results.measurements:
        if m.system == HUMAN:
            new = replace(m, system=_name(HUMAN, name), id="")
            renamed[m.id], m = new.id, new
        rows.append(m)
    evidence = results.evidence.with_columns(
        pl.when(pl.col("system") == HUMAN)
        .then(pl.lit(_name(HUMAN, name)))
        .otherwise(pl.col("system"))
        .alias("system"),
        pl.col("id").replace(renamed),
    )
    return Results(
        tuple(rows),
        evidence,
        results.replicates.with_columns(pl.col("id").replace(renamed)),
        results.provenance,
    )
