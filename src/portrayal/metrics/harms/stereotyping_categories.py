"""Stereotyping by the worlds that groups are shown in: categories of what is said, and what a system adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.amplification.formulas import a_to_t, lean_of
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.categories import KINDS, Categories, category_shares, chi_squared, cramers_v
from portrayal.metrics.harms.counts import OF_KIND, Sample
from portrayal.metrics.harms.image_records import Scene
from portrayal.metrics.harms.measurement import (
    NO_GROUPS,
    NO_OBJECTS,
    NO_REFERENCES,
    Measure,
)
from portrayal.metrics.harms.parsed_captions import Telling
from portrayal.metrics.harms.rule import Rule
from portrayal.metrics.harms.setup import Setup
from portrayal.metrics.harms.stereotyping import ALARM, HARM
from portrayal.results import TOO_FEW
from portrayal.stats import (
    Estimate,
    bootstrap,
    permutation_test,
    resampler,
)

Array = NDArray[np.float64]


class _OfCategories(Measure):
    """What is said of each image, as shares of categories: kept for every image, since groups are dealt anew."""

    streams: ClassVar[bool] = False
    needs_vectors: ClassVar[bool] = True

    def __init__(self, setup: Setup):
        super().__init__(setup)
        self.categories = Categories(setup.taxonomy, setup.vectors, setup.framing)
        self.images: list[str] = []
        self.groups: list[str] = []
        self.rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        self.sample = Sample(setup.evidence)

    def merge(self, other: Any) -> None:
        raise NotImplementedError("permutations cannot be added up")

    def lacking(self) -> str | None:
        if len(self.setup.groups) < 2:
            return NO_GROUPS if not self.setup.groups else "the study has one group"
        if self.setup.stage == "1":
            return None if self.setup.has_objects else NO_OBJECTS
        return NO_REFERENCES if self.setup.stage == "3" and not self.setup.has_references else None

    def _matrix(self, names: Sequence[str], rows: Sequence[Mapping[str, float]]) -> Array:
        place = {name: number for number, name in enumerate(names)}
        made = np.zeros((len(rows), len(names)))
        for number, row in enumerate(rows):
            for name, share in row.items():
                if name in place:
                    made[number, place[name]] = share
        return made

    def _members(self) -> tuple[list[str], Array]:
        names = sorted(set(self.groups))
        place = {name: number for number, name in enumerate(names)}
        made = np.zeros((len(self.groups), len(names)))
        made[np.arange(len(self.groups)), [place[group] for group in self.groups]] = 1
        return names, made

    def _too_few(self) -> str | None:
        """Leave out the images of groups that are too small; why nothing can be said where fewer than two remain."""
        sizes = Counter(self.groups)
        keep = [place for place, group in enumerate(self.groups) if sizes[group] >= TOO_FEW]
        if sum(size >= TOO_FEW for size in sizes.values()) < 2:
            return f"fewer than two groups have {TOO_FEW} images"
        if len(keep) < len(self.groups):
            for kept in self._kept():
                kept[:] = [kept[place] for place in keep]
        return None

    def _kept(self) -> list[list[Any]]:
        """What is kept of every image, in the order of images."""
        return [self.images, self.groups, *self.rows.values()]


class Distributions(_OfCategories):
    rule = Rule(
        harm=HARM,
        name="distributions",
        verdicts=True,
        question="whether objects, attributes and actions of different kinds are said of different groups",
        rule=(
            "Nouns, adjectives and verbs (or people's labels, at stage 1) are put into categories; a word outside "
            "the taxonomy goes to the category of the nearest word in it by word vectors. Chi-squared of "
            "categories by group, with the p of dealing groups to images anew. The headline counts which of the "
            "three differ (p below 5 %, corrected for three); Cramér's V says how much, from 0 to 1."
        ),
        published="the taxonomies (COCO supercategories for objects), the nearest word by embedding, chi-squared.",
        reconstructed="p by permutation, since words of one image are not independent; the lists of words are ours.",
        stages=("1", "3", "4"),
        items=KINDS,
        caveats=("Images differ between groups before anybody says a word: compare with stages 1 and 3.",),
    )

    def see(self, scene: Scene, said: Sequence[Telling], people: Sequence[Telling]) -> None:  # noqa: ARG002
        if scene.group is None or (not said and self.setup.stage != "1"):
            return
        self.images.append(scene.image)
        self.groups.append(scene.group)
        if self.setup.stage == "1":
            told = self.categories.of_labels(scene)
        else:
            told = category_shares([self.categories.of(one) for one in said])
        for kind in KINDS:
            self.rows[kind].append(told[kind])
        detail = {kind: sorted(told[kind]) for kind in KINDS} | {"group": scene.group}
        if self.setup.stage == "1":
            self.sample.add(scene.image, ", ".join(scene.labels or ()), detail)
            return
        for one in said:
            for part in one.parts:
                self.sample.add(scene.image, part.caption, detail)

    def write(self, builder: ResultBuilder, source: str) -> None:
        term, few = self.rule.term, self._too_few()
        if few is not None:
            builder.add(term, None, system=source, n=len(self.images), reason=few)
            return
        groups, members = self._members()
        tables: dict[str, tuple[list[str], Array, float, float]] = {}
        for kind in KINDS:
            names = sorted({name for row in self.rows[kind] for name in row})
            matrix = self._matrix(names, self.rows[kind])
            if len(names) < 2:
                continue
            observed = members.T @ matrix

            def statistic(order: NDArray[np.int64], matrix: Array = matrix) -> Array:
                return np.array([chi_squared(members[order].T @ matrix)])

            p = float(
                permutation_test(statistic, len(self.images), self.setup.seed, self.setup.n_resamples)[0]
            )
            v = cramers_v(chi_squared(observed), observed)
            tables[kind] = (names, observed, v, p)
        if not tables:
            reason = "captions name fewer than two categories"
            builder.add(term, None, system=source, n=len(self.images), reason=reason)
            return
        differing = [kind for kind in tables if tables[kind][3] * len(tables) < ALARM]
        evidence = self.sample.frame()
        self.verdicts(builder, source, len(differing), len(tables), evidence, n=len(self.images))
        for kind, (names, observed, v, p) in tables.items():
            builder.add(
                term, v, system=source, item=kind, n=len(self.images), unit="v", p=p,
                evidence=evidence, in_brief=True,
            )  # fmt: skip
            shares = observed / np.maximum(observed.sum(axis=1, keepdims=True), 1e-12)
            for number, name in enumerate(names):
                for place, group in enumerate(groups):
                    builder.add(
                        term, float(shares[place, number]), system=source, group=group,
                        item=f"{kind}{OF_KIND}{name}", n=self.groups.count(group), unit="share",
                        evidence=evidence, in_brief=True,
                    )  # fmt: skip


class Amplification(_OfCategories):
    """What a system says beside what people say of the same images."""

    rule = Rule(
        harm=HARM,
        name="amplification",
        verdicts=True,
        question="whether a system ties groups to kinds of objects, attributes and actions more than people do",
        rule=(
            "Bias amplification from attribute to task between people's captions and a system's: by how much more "
            "the system says a category of a group that people say it of more often than chance, and less of one "
            "that they say it of less often, averaged over categories and groups. The headline counts which of "
            "objects, attributes and relations are amplified: an interval above 0."
        ),
        published="bias amplification between stages, over the same categories.",
        reconstructed="the form from attribute to task; what systems say less often of everybody is scaled out.",
        stages=("4",),
        items=KINDS,
        caveats=(
            "Which way a category leans is read off people's captions once; intervals do not cover that.",
        ),
    )

    def __init__(self, setup: Setup):
        super().__init__(setup)
        self.before: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}

    def lacking(self) -> str | None:
        return super().lacking() or (None if self.setup.has_references else NO_REFERENCES)

    def _kept(self) -> list[list[Any]]:
        return [*super()._kept(), *self.before.values()]

    def see(self, scene: Scene, said: Sequence[Telling], people: Sequence[Telling]) -> None:  # noqa: ARG002
        if scene.group is None or not said or not scene.people:
            return
        self.images.append(scene.image)
        self.groups.append(scene.group)
        after = category_shares([self.categories.of(one) for one in said])
        before = category_shares([self.categories.of(one) for one in self.setup.lists.read_all(scene.people)])
        for kind in KINDS:
            self.rows[kind].append(after[kind])
            self.before[kind].append(before[kind])
        detail = {kind: [sorted(before[kind]), sorted(after[kind])] for kind in KINDS}
        for one in said:
            for part in one.parts:
                self.sample.add(scene.image, part.caption, detail)

    def write(self, builder: ResultBuilder, source: str) -> None:
        term, few = self.rule.term, self._too_few()
        if few is not None:
            builder.add(term, None, system=source, n=len(self.images), reason=few)
            return
        _, members = self._members()
        order = np.argsort(self.images)
        draw = resampler(
            tuple(np.array(self.images)[order].tolist()), self.setup.seed, self.setup.n_resamples
        )
        found: dict[str, Estimate] = {}
        for kind in KINDS:
            names = sorted({name for row in self.before[kind] for name in row})
            if len(names) < 2:
                continue
            parts = [self._matrix(names, rows)[order] for rows in (self.before[kind], self.rows[kind])]
            found[kind] = _amplified(parts[0], parts[1], members[order], draw)
        found = {kind: estimate for kind, estimate in found.items() if estimate.value is not None}
        if not found:
            reason = "captions name fewer than two categories, or none that leans to a group"
            builder.add(term, None, system=source, n=len(self.images), reason=reason)
            return
        evidence = self.sample.frame()
        amplified = [kind for kind, one in found.items() if one.low is not None and one.low > 0]
        self.verdicts(builder, source, len(amplified), len(found), evidence, n=len(self.images))
        for kind, estimate in found.items():
            builder.add(
                term, estimate, system=source, item=kind, n=len(self.images), unit="change", ideal=0.0,
                evidence=evidence, in_brief=True,
            )  # fmt: skip


def _amplified(before: Array, after: Array, members: Array, draw: Any) -> Estimate:
    """a-to-t of categories by group, with its interval; a category that is said less of everybody counts as often."""
    categories, groups = before.shape[1], members.shape[1]
    counts = np.hstack(
        [np.repeat(members, categories, axis=1) * np.tile(part, (1, groups)) for part in (before, after)]
        + [members]
    )

    def tables(totals: Array) -> tuple[Array, Array, Array]:
        size = groups * categories
        cut = [totals[:, :size], totals[:, size : 2 * size]]
        first, second = (part.reshape(-1, groups, categories).transpose(0, 2, 1) for part in cut)
        return first, second, totals[:, 2 * size :]

    first, _, people = tables(counts.sum(axis=0)[None])
    lean = lean_of(first, first.sum(axis=2), people, people.sum(axis=1), "drop")

    def statistic(totals: Array) -> Array:
        truth, said, people = tables(totals)
        usual, now = truth.sum(axis=2, keepdims=True), said.sum(axis=2, keepdims=True)
        scaled = said * np.divide(usual, now, out=np.full_like(usual, np.nan), where=now > 0)
        return a_to_t(truth, scaled, people, lean)

    return bootstrap(counts, statistic, draw)[0]
