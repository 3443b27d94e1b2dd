"""The study: captions, references, attributes of the people shown, object labels, and search rankings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.errors import PortrayalError, Problems, counted, find_name, listed, shown, unknown_name
from portrayal.results import HUMAN
from portrayal.study import tables
from portrayal.study.formats.parquet import from_frame
from portrayal.study.formats.raw_table import RawTable
from portrayal.study.image_ids import find_image_files

COMBINED = "+"  # joins intersected attributes: "gender+age"
_ABOUT_IMAGES = ("captions", "references", "attributes", "people", "objects")
TABLES = (*_ABOUT_IMAGES, "rankings")


@dataclass(frozen=True, eq=False)  # compared by identity: cached values are keyed by it
class Study:
    """The audited data: tables keyed by `image_id`. A missing table is an empty frame, never None.

    Parameters
    ----------
    name : str
        Name of the study.
    captions : polars.DataFrame
        Captions of systems: `image_id`, `system`, `sample`, `caption`.
    references : polars.DataFrame
        Human captions: `image_id`, `caption`; several rows per image.
    attributes : polars.DataFrame
        Attributes of the person shown: `image_id` and one column per attribute.
    people : polars.DataFrame
        Attributes of each person in images of several: `image_id`, `person`, attributes, box.
    objects : polars.DataFrame
        Object labels: `image_id`, `label`, `kind`, `source`, `confidence`, box.
    rankings : polars.DataFrame
        Search results: `query`, `system`, `image_id`, `score`, attributes.
    vocabularies : mapping of str to tuple of str
        Vocabulary of each system.
    images : Path, optional
        Folder of the image files.
    left_out : int
        Number of bad rows that were left out when the study was read or imported.
    truncated : mapping of str to int
        Number of captions of each source that were truncated when the study was read.
    mapped : mapping of str to mapping of str to str
        Label values that were mapped to groups: attribute -> value -> group.
    """

    name: str = "study"
    captions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.CAPTIONS))
    references: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.REFERENCES))
    attributes: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.ATTRIBUTES))
    people: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.PEOPLE))
    objects: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.OBJECTS))
    rankings: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.RANKINGS))
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    images: Path | None = None
    left_out: int = 0
    truncated: Mapping[str, int] = field(default_factory=dict)
    mapped: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def from_frames(
        cls,
        *,
        name: str = "study",
        captions: Any = None,
        references: Any = None,
        attributes: Any = None,
        people: Any = None,
        objects: Any = None,
        rankings: Any = None,
        vocabularies: Mapping[str, Sequence[str]] | None = None,
        images: Path | str | None = None,
        skip_bad: bool = False,
    ) -> Study:
        """Create a study from polars, pandas or Arrow tables, which are validated like files.

        Parameters
        ----------
        name : str
            Name of the study.
        captions, references, attributes, people, objects, rankings : table, optional
            Tables with the columns that files have: polars or pandas frames, `pyarrow.Table`, or any object with the
            Arrow PyCapsule interface (`__arrow_c_stream__`).
        vocabularies : mapping of str to sequence of str, optional
            Vocabulary of each system.
        images : Path or str, optional
            Folder of the image files.
        skip_bad : bool
            Leave out bad rows instead of raising an error.

        Returns
        -------
        Study

        Examples
        --------
        >>> import polars as pl
        >>> study = Study.from_frames(
        ...     captions=pl.DataFrame({"image_id": [1, 2], "system": ["a", "a"], "caption": ["a man", "a cat"]})
        ... )
        >>> study.systems
        ('a',)
        """
        problems = Problems(skip_bad)
        readers: dict[str, tuple[Any, Callable[[RawTable], pl.DataFrame]]] = {
            "captions": (captions, lambda raw: tables.parse_captions(raw, "system", problems)),
            "references": (references, lambda raw: tables.parse_references(raw, problems)),
            "attributes": (attributes, lambda raw: tables.parse_attributes(raw, problems)),
            "people": (people, lambda raw: tables.parse_people(raw, problems)),
            "objects": (objects, lambda raw: tables.parse_objects(raw, problems)),
            "rankings": (rankings, lambda raw: tables.parse_rankings(raw, "system", problems)),
        }
        frames: dict[str, Any] = {
            table: read(from_frame(frame, Path(f"<{table}>")))
            for table, (frame, read) in readers.items()
            if frame is not None
        }
        problems.settle()
        frames["vocabularies"] = {system: tuple(words) for system, words in (vocabularies or {}).items()}
        from portrayal.study.truncation import truncate_captions  # imported here: truncation imports Study

        study = cls(name=name, images=Path(images) if images else None, left_out=problems.count, **frames)
        return truncate_captions(study)

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The systems that wrote captions, in the order of their first appearance."""
        return tuple(self.captions.get_column("system").unique(maintain_order=True))

    @cached_property
    def rankers(self) -> tuple[str, ...]:
        """The systems that ranked items, with or without captions."""
        return tuple(self.rankings.get_column("system").unique(maintain_order=True))

    @cached_property
    def labellers(self) -> tuple[str, ...]:
        """The models that labelled objects, by name."""
        return tuple(sorted(set(self.annotations.get_column("source")) - {HUMAN}))

    @cached_property
    def annotations(self) -> pl.DataFrame:
        """Object labels of images, without labels that are words found in captions, which are not ground truth."""
        return self.objects.filter(pl.col("source") != tables.FROM_CAPTIONS)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The systems, and `human` if the study has human captions."""
        return (*self.systems, HUMAN) if self.references.height else self.systems

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The attributes of the person shown. (Several people of one image are in `people`.)"""
        columns = self.attributes.columns
        return tuple(
            name for name in columns if name != "image_id" and not name.endswith(tables.CERTAINTY_SUFFIX)
        )

    @cached_property
    def ranked_attributes(self) -> tuple[str, ...]:
        """The attributes of ranked items: attribute columns of the rankings, and the study's attributes."""
        if not self.rankings.height:
            return ()
        own = [name for name in self.rankings.columns if name not in tables.RANKINGS]
        named = [name for name in own if not name.endswith(tables.CERTAINTY_SUFFIX)]
        return tuple(dict.fromkeys((*named, *self.attribute_names)))

    @cached_property
    def image_ids(self) -> pl.Series:
        """The images that have a caption, a human caption or a label."""
        columns: list[pl.DataFrame] = [getattr(self, table).select("image_id") for table in _ABOUT_IMAGES]
        return pl.concat(columns).unique(maintain_order=True).get_column("image_id")

    @cached_property
    def image_files(self) -> dict[str, Path]:
        """Image id to image file, for the files that exist."""
        return find_image_files(self.images) if self.images else {}

    def has_attribute(self, attribute: str) -> bool:
        """Whether the study has the attribute, or all attributes of an intersection ("gender+age")."""
        parts = attribute.split(COMBINED)
        known = self.attribute_names
        return attribute in known or (len(set(parts)) == len(parts) and all(part in known for part in parts))

    def groups(self, attribute: str) -> tuple[str, ...]:
        """The groups of an attribute in the study, sorted by name."""
        labels = self.labels(attribute).get_column(attribute)
        return tuple(sorted(labels.unique()))

    def group_counts(self, attribute: str) -> dict[str, int]:
        """The number of images of each group."""
        return dict(self.labels(attribute).group_by(attribute).len().sort(attribute).iter_rows())

    def labels(self, attribute: str) -> pl.DataFrame:
        """The group of each labelled image.

        Parameters
        ----------
        attribute : str
            An attribute, or an intersection of several ("gender+age").

        Returns
        -------
        polars.DataFrame
            `image_id` and the attribute. An image needs a label for all intersected attributes.

        Examples
        --------
        >>> import polars as pl
        >>> people = {"image_id": [1, 2], "gender": ["female", "male"], "age": ["old", None]}
        >>> Study.from_frames(attributes=pl.DataFrame(people)).labels("gender+age").rows()
        [('1', 'female+old')]
        """
        if not self.has_attribute(attribute):
            unknown = [part for part in attribute.split(COMBINED) if part not in self.attribute_names]
            raise unknown_name("attribute", unknown[0] if unknown else attribute, self.attribute_names)
        if attribute in self.attribute_names:
            return self.attributes.select("image_id", attribute).drop_nulls()
        parts = attribute.split(COMBINED)
        labelled = self.attributes.select("image_id", *parts).drop_nulls()
        return labelled.select("image_id", pl.concat_str(parts, separator=COMBINED).alias(attribute))

    def ranked_items(self, attribute: str) -> pl.DataFrame:
        """The ranked items with their groups.

        Parameters
        ----------
        attribute : str
            An attribute, or an intersection of several. A column of the rankings takes precedence over the study's
            attribute of that name.

        Returns
        -------
        polars.DataFrame
            `query`, `system`, `image_id`, `score` and the attribute, which is null where it is unknown.

        Examples
        --------
        >>> import polars as pl
        >>> rankings = {"query": ["a nurse"] * 2, "item": ["1", "2"], "score": [0.9, 0.7], "gender": ["male", None]}
        >>> Study.from_frames(rankings=pl.DataFrame(rankings)).ranked_items("gender").rows()
        [('a nurse', 'system', '1', 0.9, 'male'), ('a nurse', 'system', '2', 0.7, None)]
        """
        known = self.ranked_attributes
        parts = [attribute] if attribute in known else attribute.split(COMBINED)
        unknown = [part for part in parts if part not in known]
        if unknown or len(set(parts)) < len(parts):
            raise unknown_name("attribute", unknown[0] if unknown else attribute, known)
        items = self.rankings
        for part in parts:
            if part not in items.columns:
                items = items.join(self.labels(part), on="image_id", how="left", maintain_order="left")
        return items.select(*tables.RANKINGS, pl.concat_str(parts, separator=COMBINED).alias(attribute))

    def captions_of(self, source: str) -> pl.DataFrame:
        """The captions of one source.

        Parameters
        ----------
        source : str
            A system, or `human` for the references. If the study has systems, references of images that no system
            captions are left out, so that human and system numbers are of the same images.

        Returns
        -------
        polars.DataFrame
            `image_id`, `sample` and `caption`.
        """
        if source == HUMAN:
            number = pl.int_range(pl.len()).over("image_id").alias("sample")
            references = self.references.select("image_id", number, "caption")
            return (
                references.join(self.captions, on="image_id", how="semi")
                if self.captions.height
                else references
            )
        if source not in self.systems:
            raise unknown_name("system", source, self.systems)
        return self.captions.filter(pl.col("system") == source).select("image_id", "sample", "caption")

    def select_systems(self, systems: Sequence[str]) -> Study:
        """The study with some of its systems only.

        Parameters
        ----------
        systems : sequence of str
            Names of systems, in the order of the result. Case is ignored unless two systems differ by it. Labels of
            all models are kept, unless one of the names is a model that labelled objects.

        Returns
        -------
        Study
        """
        known = dict.fromkeys((*self.systems, *self.rankers, *self.labellers))
        systems = [find_name("system", system, known) for system in systems]
        if not systems:
            raise PortrayalError("No system was named; name at least one of the study's systems.")
        captions, rankings = (
            pl.concat([table.filter(pl.col("system") == system) for system in dict.fromkeys(systems)])
            for table in (self.captions, self.rankings)
        )
        vocabularies = {name: words for name, words in self.vocabularies.items() if name in systems}
        objects = self.objects
        if any(system in self.labellers for system in systems):
            objects = objects.filter(pl.col("source").is_in([HUMAN, tables.FROM_CAPTIONS, *systems]))
        return replace(self, captions=captions, rankings=rankings, vocabularies=vocabularies, objects=objects)

    @cached_property
    def digest(self) -> str:
        """Short hash of the study's contents and their order."""
        digest = hashlib.sha256()
        for table in TABLES if self.rankings.height else _ABOUT_IMAGES:
            digest.update(table.encode() + getattr(self, table).write_csv().encode())
        for system in sorted(self.vocabularies):
            digest.update("\n".join([system, *self.vocabularies[system]]).encode())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        return f"<Study {shown(self.name)}: {'; '.join(describe(self))}>"

    def _repr_html_(self) -> str:
        from portrayal.study.notebook import study_html  # imported here: the view imports Study

        return study_html(self)


def describe(study: Study) -> list[str]:
    """The contents of a study in a few words each: images, captions, rankings, and groups of attributes."""
    parts = [counted(study.image_ids.len(), "image")]
    if study.systems:
        parts.append(f"{counted(study.captions.height, 'caption')} of {listed(study.systems)}")
    if study.references.height:
        parts.append(counted(study.references.height, "human caption"))
    if study.rankings.height:
        parts.append(f"{counted(study.rankings.height, 'ranked item')} of {listed(study.rankers)}")
    return [*parts, *(f"{name}: {groups_text(study, name)}" for name in study.attribute_names)]


def groups_text(study: Study, attribute: str) -> str:
    """The groups of an attribute with the number of images of each."""
    return listed(f"{group} {count:,}" for group, count in study.group_counts(attribute).items())
