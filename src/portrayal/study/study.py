"""What is audited: captions, references, the people shown, the objects seen, the lists a search gives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.errors import PortrayalError, Problems, find_name, unknown_name
from portrayal.results import HUMAN
from portrayal.study import tables
from portrayal.study.formats.parquet import of_frame
from portrayal.study.formats.raw_table import RawTable
from portrayal.study.image_ids import picture_files

COMBINED = "+"  # between attributes whose groups are crossed: "gender+age"
_ABOUT_IMAGES = ("captions", "references", "attributes", "people", "objects")
TABLES = (*_ABOUT_IMAGES, "rankings")


@dataclass(frozen=True, eq=False)  # compared by identity: what is derived from a study is cached by it
class Study:
    """Tables keyed by `image_id`. A table that the study does not have is an empty frame, never None."""

    name: str = "study"
    captions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.CAPTIONS))
    references: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.REFERENCES))
    attributes: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.ATTRIBUTES))
    people: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.PEOPLE))
    objects: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.OBJECTS))
    rankings: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=tables.RANKINGS))
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    images: Path | None = None
    left_out: int = 0  # bad rows that were left out when the study was read or imported
    # By source (a system, or `human`) how many captions were too long and were cut when the study was read.
    shortened: Mapping[str, int] = field(default_factory=dict)
    # What values of label columns were before they were mapped to groups: attribute -> value -> group.
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
        """A study from polars or pandas frames, checked like files are.

        >>> import polars as pl
        >>> study = Study.from_frames(
        ...     captions=pl.DataFrame({"image_id": [1, 2], "system": ["a", "a"], "caption": ["a man", "a cat"]})
        ... )
        >>> study.systems
        ('a',)
        """
        problems = Problems(skip_bad)
        readers: dict[str, tuple[Any, Callable[[RawTable], pl.DataFrame]]] = {
            "captions": (captions, lambda raw: tables.captions(raw, "system", problems)),
            "references": (references, lambda raw: tables.references(raw, problems)),
            "attributes": (attributes, lambda raw: tables.attributes(raw, problems)),
            "people": (people, lambda raw: tables.people(raw, problems)),
            "objects": (objects, lambda raw: tables.objects(raw, problems)),
            "rankings": (rankings, lambda raw: tables.rankings(raw, "system", problems)),
        }
        made: dict[str, Any] = {
            table: read(of_frame(frame, Path(f"<{table}>")))
            for table, (frame, read) in readers.items()
            if frame is not None
        }
        problems.settle()
        made["vocabularies"] = {system: tuple(words) for system, words in (vocabularies or {}).items()}
        from portrayal.study.truncation import shortened  # here, since it knows what a study is

        study = cls(name=name, images=Path(images) if images else None, left_out=problems.count, **made)
        return shortened(study)

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The systems that wrote captions, in the order in which they first appear."""
        return tuple(self.captions.get_column("system").unique(maintain_order=True))

    @cached_property
    def rankers(self) -> tuple[str, ...]:
        """The systems that ranked items, whether or not they wrote captions too."""
        return tuple(self.rankings.get_column("system").unique(maintain_order=True))

    @cached_property
    def labellers(self) -> tuple[str, ...]:
        """The models that labelled objects, by name."""
        return tuple(sorted(set(self.annotated.get_column("source")) - {HUMAN}))

    @cached_property
    def annotated(self) -> pl.DataFrame:
        """What was seen in images: the table of objects without words found in captions, which are no ground truth."""
        return self.objects.filter(pl.col("source") != tables.FROM_CAPTIONS)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The systems, and `human` where people's captions are there too."""
        return (*self.systems, HUMAN) if self.references.height else self.systems

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """What is known of the person an image shows. (Several people of one image stand in `people`.)"""
        columns = self.attributes.columns
        return tuple(name for name in columns if name != "image_id" and not name.endswith(tables.CERTAINTY))

    @cached_property
    def ranked_attributes(self) -> tuple[str, ...]:
        """What may be known of ranked items: the columns that rankings have for it, and the study's attributes."""
        if not self.rankings.height:
            return ()
        own = [name for name in self.rankings.columns if name not in tables.RANKINGS]
        named = [name for name in own if not name.endswith(tables.CERTAINTY)]
        return tuple(dict.fromkeys((*named, *self.attribute_names)))

    @cached_property
    def image_ids(self) -> pl.Series:
        """The images of the study: those that are captioned, described by people, or labelled."""
        columns: list[pl.DataFrame] = [getattr(self, table).select("image_id") for table in _ABOUT_IMAGES]
        return pl.concat(columns).unique(maintain_order=True).get_column("image_id")

    @cached_property
    def pictures(self) -> dict[str, Path]:
        """Image id to picture file, for the pictures that are there."""
        return picture_files(self.images) if self.images else {}

    def has_attribute(self, attribute: str) -> bool:
        """Whether the study knows it, or all of those that it combines ("gender+age")."""
        parts = attribute.split(COMBINED)
        known = self.attribute_names
        return attribute in known or (len(set(parts)) == len(parts) and all(part in known for part in parts))

    def groups(self, attribute: str) -> tuple[str, ...]:
        """The groups of an attribute that the study holds, sorted by name."""
        labels = self.labels(attribute).get_column(attribute)
        return tuple(sorted(labels.unique()))

    def group_counts(self, attribute: str) -> dict[str, int]:
        """How many images of each group there are."""
        return dict(self.labels(attribute).group_by(attribute).len().sort(attribute).iter_rows())

    def labels(self, attribute: str) -> pl.DataFrame:
        """`image_id` and the group of each image that has one; of several attributes combined, of all of them.

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

    def ranked(self, attribute: str) -> pl.DataFrame:
        """`query`, `system`, `image_id`, `score` and the group of every ranked item, missing where it is not known.

        A column of the rankings themselves goes before the study's attribute of that name.

        >>> import polars as pl
        >>> lists = {"query": ["a nurse"] * 2, "item": ["1", "2"], "score": [0.9, 0.7], "gender": ["male", None]}
        >>> Study.from_frames(rankings=pl.DataFrame(lists)).ranked("gender").rows()
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

    def spoken(self, source: str) -> pl.DataFrame:
        """`image_id`, `sample`, `caption` of one system, or the references where the speaker is `human`.

        Where there are systems, references of images that none of them captions are left out: numbers of human captions
        stand beside those of systems, and would be of other images.
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

    def only(self, systems: Sequence[str]) -> Study:
        """The same study with some of its systems, in the order given. Labels of models stay, unless one is named.

        Upper and lower case are the same, unless two systems differ by it.
        """
        known = dict.fromkeys((*self.systems, *self.rankers, *self.labellers))
        systems = [find_name("system", system, known) for system in systems]
        if not systems:
            raise PortrayalError("No system was named; name at least one of the study's systems.")
        captions, rankings = (
            pl.concat([table.filter(pl.col("system") == system) for system in dict.fromkeys(systems)])
            for table in (self.captions, self.rankings)
        )
        kept = {name: words for name, words in self.vocabularies.items() if name in systems}
        objects = self.objects
        if any(system in self.labellers for system in systems):
            objects = objects.filter(pl.col("source").is_in([HUMAN, tables.FROM_CAPTIONS, *systems]))
        return replace(self, captions=captions, rankings=rankings, vocabularies=kept, objects=objects)

    @cached_property
    def digest(self) -> str:
        """A short name for the study's contents: equal contents in equal order, equal digest."""
        digest = hashlib.sha256()
        for table in TABLES if self.rankings.height else _ABOUT_IMAGES:
            digest.update(table.encode() + getattr(self, table).write_csv().encode())
        for system in sorted(self.vocabularies):
            digest.update("\n".join([system, *self.vocabularies[system]]).encode())
        return digest.hexdigest()[:16]
