"""CounterBias: what a masked vision-language model says when only the person changes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.counterfactual.concepts import (
    BIAS_PROMPT,
    CONTROL_PROMPT,
    CONTROL_WORDS,
    STEREOTYPES,
    templates_named,
)
from portrayal.counterfactual.manifest import Manifest, read_manifest
from portrayal.engine import Progress
from portrayal.errors import PortrayalError, need
from portrayal.lexicon import Lexicon
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.options import several
from portrayal.metrics.counterbias.groups import (
    asked_about,
    check_words,
    described,
    lexicon_of,
    ordered_groups,
    readable,
    word_for,
)
from portrayal.models.masked_vlm.requirements import need_packages
from portrayal.results import Results, command_line, provenance
from portrayal.statements import IDEAL, Statement
from portrayal.stats import RESAMPLES

CARD = Card(
    name="counterbias",
    title="CounterBias: change only the person",
    question="When only the person in a picture or text is changed, how much does what the model says of them change?",
    formula="bias(T, B) = (P(T | cf) - P(T | f)) / (P(B | cf) - P(B | f)) for a concept T at the mask and a group B, "
    "f the picture and text as they are and cf with the other group. b@v-l: both changed, P(B) the mean of "
    "P(B | V) and P(B | L); b@v: the picture alone; b@l: the text alone. Times 100, and times -1 where B is "
    "the second group. Of a concept: the mean of both groups' means, then over templates; of all: the mean "
    "over concepts of absolute values. P(B | V) is asked at a prompt; an instance is defined where it falls "
    "by .1 or more. b@text: log P(T | first group's text) - log P(T | second group's), without a picture.",
    range="any number; 0: nothing changes; positive: leans to the first group",
    needs=("pictures", "attributes", "model"),
    paper="Zhang, Wang and Sang, Counterfactually Measuring and Eliminating Social Bias in Vision-Language Pre- "
    "training Models, ACM Multimedia 2022",
    caveats=(
        "An attack moves more than the person: read a bias beside its placebo, an attack as large on the "
        "place. What is left after that (corrected) is what such damage does not explain. Where the place matters "
        "much to what people do, the placebo takes too much away: then corrected says what is certain, and excess "
        "what is likely. Of a concept the placebo's noise is taken off too, so that corrected errs toward nothing.",
        "A mean of absolute values is above 0 without any bias: read it with its floor, or read the excess.",
        "An attack finds the pixels that this model reads as a group, which need not look like anybody. Where "
        "pictures exist that differ in nothing but the person (--attack exact), those are better.",
        "Where what people do tells who they are, a model may read the group off what is done; an attack on "
        "the group then changes what is done as well.",
        "Pooled means of an unbalanced set of pictures lean by the damage that any attack does; group- "
        "balanced ones do not.",
        "A word stands for a group and a softmax for what a model expects: neither is what anybody is.",
        "No curve of the lab: it measures a model and not captions. docs/counterbias.md holds it against "
        "models of the lab whose data bias is known.",
    ),
    statements=(
        Statement(
            "excess",
            IDEAL,
            "When only the person changes, what {system} predicts of them changes more than chance explains ({kind}, "
            "{attack})",
            "what {system} predicts changes with the person ({kind}, {attack})",
            "When only the person changes, what {system} predicts of them changes less than chance explains ({kind}, "
            "{attack})",
            settings={"of": "b@v-l"},
            remainder="corrected",
            no_remainder="When only the person changes, what {system} predicts changes no more than when something "
            "else is attacked ({kind}, {attack})",
            open_remainder="Not significant: whether what {system} predicts changes more with the person than when "
            "something else is attacked ({kind}, {attack})",
        ),
    ),
    terms=(
        Term("b@v-l", "bias when picture and text change", "percent", "closer", 0.0, depends_on_n=True),
        Term("b@v", "bias when the picture changes", "percent", "closer", 0.0, depends_on_n=True),
        Term("b@l", "bias when the text changes", "percent", "closer", 0.0, depends_on_n=True),
        Term("excess", "mean absolute bias less its floor", "percent", "lower", 0.0),
        Term("corrected", "bias less that of the placebo, whichever way that leans: of a concept its size less the "
             "placebo's, of all the mean size less the placebo's; nothing where the placebo does more", "percent",
             "closer", 0.0),
        Term("placebo", "the same, by an attack as large on the place", "percent", depends_on_n=True),
        Term("floor", "mean absolute bias if the signs of images meant nothing", "percent", depends_on_n=True),
        Term("pooled", "bias as the mean over all instances, whichever group they are of", "percent", "closer", 0.0),
        Term("observed", "P(T) of the first group's pictures less that of the second's, as they are", "percent"),
        Term("agreement", "concepts that lean to the group that raters tie them to", "percent"),
        Term("b@text", "bias without a picture", "log-probability difference", "closer", 0.0),
        Term("attack-success", "pictures that the model takes for the other group after the attack", "percent",
             "higher", 100.0),
        Term("drift", "how far what the model says of the place moves with the attack (half the sum of differences)",
             "percent", "lower", 0.0),
        Term("p-before", "P(B | V) of pictures as they are", "percent"),
        Term("p-after", "P(B | V) of their counterfactuals", "percent"),
        Term("moved", "by how many of 255 levels a pixel is moved, on average", "levels"),
        Term("undefined", "instances whose P(B | V) does not fall by .1", "count", "lower", 0.0),
    ),
)  # fmt: skip


def counterbias(
    manifest: Manifest | Path | str,
    model: Any,
    *,
    images: Path | str | None = None,
    attribute: str = "gender",
    groups: Sequence[str] | None = None,
    words: Mapping[str, str] | None = None,
    lexicon: Lexicon | str | None = None,
    concepts: Sequence[str] | None = None,
    templates: Sequence[str] | None = None,
    normalize_over: str = "vocabulary",
    bias_normalize_over: str = "vocabulary",
    bias_prompt: str = BIAS_PROMPT,
    control_prompt: str = CONTROL_PROMPT,
    control_words: Sequence[str] = CONTROL_WORDS,
    attack: str | Sequence[str] = "pgd",
    epsilon: float | None = None,
    steps: int | None = None,
    step_size: float | None = None,
    norm: str | None = None,
    stop_at: float = 0.9,
    placebo: bool = True,
    blank_image: str = "text",
    stereotypes: Mapping[str, str] = STEREOTYPES,
    device: str = "auto",
    precision: str = "float32",
    batch_size: int = 64,
    tokenizer: str | None = None,
    seed: int = 0,
    bootstrap: int = RESAMPLES,
    skip_bad: bool = False,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Results:
    """Measure one model, or several, on the pictures of a manifest.

    `model` is a name that `load_masked` knows, a model, or a list of them. `words` says how texts name the groups; by
    default as the `lexicon` does (that of the attribute, where it has one), else by the groups' own names. Bias is
    toward the first of `groups`, by default in the lexicon's order; of more than two every pair is measured. With
    `concepts`, every picture is asked about each of these instead of about the manifest's. `norm` is by
    default l2 (of fgsm linf), `epsilon` 8/255, in 20 steps of .5/255 (linf: 10 of 2/255).

    >>> import pathlib, tempfile
    >>> from portrayal.lab.folder import Recipe, write_lab
    >>> from portrayal.lab.world import World
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = write_lab(Recipe(scenes=60, pictures=64, world=World(data_bias=0)), pathlib.Path(folder) / "lab")
    ...     found = counterbias(pathlib.Path(folder) / "lab" / "manifest.csv", "lab-dual-full", bootstrap=50, steps=3)
    >>> bias = next(m for m in found.measurements if m.term == "b@v-l")
    >>> bias.system, bias.item, bias.value > 10
    ('lab-dual-full', None, True)
    """
    several_models = [model] if isinstance(model, str) or not isinstance(model, Sequence) else list(model)
    need("torch", "neural", "CounterBias")
    for one in several_models:
        if isinstance(one, str):
            need_packages(one, "CounterBias")
    from portrayal.metrics.counterbias.run import Run, Settings, loaded, names_of

    started = time.time()
    read = manifest if isinstance(manifest, Manifest) else read_manifest(manifest, images, skip_bad)
    instances = asked_about(read, concepts)
    listed = lexicon_of(attribute, lexicon)
    ordered = ordered_groups(instances, groups, listed)
    instances = [one for one in instances if one.group in ordered]
    check_words(words, ordered)
    named = {group: (words or {}).get(group) or word_for(group, listed) for group in ordered}
    settings = Settings(
        attacks=tuple(several(attack)), epsilon=epsilon, steps=steps, step_size=step_size, norm=norm, stop_at=stop_at,
        placebo=placebo, normalize_over=normalize_over, bias_normalize_over=bias_normalize_over, bias_prompt=bias_prompt, control_prompt=control_prompt,
        control_words=tuple(control_words), templates=templates_named(templates), blank_image=blank_image, batch_size=batch_size,
        seed=seed, n_resamples=bootstrap, stereotypes=dict(stereotypes),
    )  # fmt: skip
    if settings.exact and len(ordered) > 2:
        raise PortrayalError(
            "A picture has one given counterfactual: with --attack exact name two of the groups."
        )
    instances, bad = readable(instances, skip_bad, settings.exact)
    ordered = ordered_groups(instances, groups, listed)
    models = names_of(several_models)
    parts = []
    for one in several_models:
        asked, known_as = loaded(one, device, precision, batch_size, tokenizer)
        for pair in combinations(ordered, 2):
            here = [instance for instance in instances if instance.group in pair]
            run = Run(asked, known_as, attribute, {group: named[group] for group in pair}, here, settings)
            parts.append(run.results(CARD, checkpoint, progress))
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=described(read, instances, bad, models),
        cards={CARD.name: CARD.as_dict()},
        skipped=[],
        stereotypes={concept: group for concept, group in stereotypes.items() if group in ordered},
    )
    pictures = pl.concat([part.pictures for part in parts]).unique("image_id", maintain_order=True)
    return replace(Results.join(parts, origin), pictures=pictures)
