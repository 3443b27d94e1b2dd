"""CounterBias: how a masked vision-language model's predictions change when only the person changes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from portrayal.counterfactual.concepts import (
    BIAS_PROMPT,
    CONTROL_PROMPT,
    CONTROL_WORDS,
    STEREOTYPES,
    find_templates,
)
from portrayal.counterfactual.manifest import Manifest, read_manifest
from portrayal.engine import Progress
from portrayal.errors import PortrayalError, need
from portrayal.lexicon import Lexicon
from portrayal.metrics.base.options import unique_names
from portrayal.metrics.base.registry import register_card
from portrayal.metrics.counterbias.card import CARD
from portrayal.metrics.counterbias.groups import (
    check_group_words,
    group_word,
    ordered_groups,
    readable_instances,
    resolve_lexicon,
    select_instances,
    study_summary,
)
from portrayal.models.masked_vlm.requirements import need_packages
from portrayal.provenance import command_line, provenance
from portrayal.results import Results
from portrayal.stats import RESAMPLES

__all__ = ["CARD", "counterbias"]

register_card(CARD)


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
    """Measure one model, or several, on the images of a manifest.

    Parameters
    ----------
    manifest
        The images with their groups and concepts, or the file that lists them.
    model
        A name that `load_masked` knows, a model, or a list of them.
    images
        Folder of the images, if not that of the manifest.
    attribute
        The attribute of the person that changes.
    groups
        The groups to compare; bias is toward the first. Default: the lexicon's order. With more than two,
        every pair is measured.
    words
        Group -> word that names it in texts. Default: the lexicon's word, else the group's own name.
    lexicon
        Default: the lexicon of the attribute, if it has one.
    concepts
        Measure every image with each of these concepts, instead of with the manifest's.
    templates
        Names of the text templates. Default: all.
    normalize_over, bias_normalize_over
        Words that probabilities of concepts and of groups are normalized over.
    bias_prompt, control_prompt, control_words
        Prompts for the group and for the placebo, and the placebo's candidate words.
    attack
        "pgd", "fgsm" or "exact" (counterfactual images that the manifest names), or several.
    epsilon, steps, step_size, norm
        Size of the attack. The default norm is l2 (of fgsm linf), with epsilon 8/255, in 20 steps of .5/255
        (linf: 10 of 2/255).
    stop_at
        Stop attacking an image once the other group has this share of the two groups' probability.
    placebo
        Whether to measure an attack of the same size on the place.
    blank_image
        How text-only probabilities are measured: "text", without an image, or "gray", with a gray one.
    stereotypes
        Concept -> group that raters associate with it.
    device, precision, batch_size, tokenizer
        See `load_masked`.
    seed, bootstrap
        Random seed and number of bootstrap resamples.
    skip_bad
        Skip images that cannot be read.
    checkpoint
        Folder in which finished parts are kept, so that the same call can resume.
    progress
        Progress listener.

    Returns
    -------
    Results

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from portrayal.lab.folder import LabRecipe, write_lab
    >>> from portrayal.lab.world import World
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lab = pathlib.Path(folder) / "lab"
    ...     study = write_lab(LabRecipe(scenes=60, image_size=64, world=World(data_bias=0)), lab)
    ...     results = counterbias(lab / "manifest.csv", "lab-dual-full", bootstrap=50, steps=3)
    >>> bias = next(m for m in results.measurements if m.term == "b@v-l")
    >>> bias.system, bias.item, bias.value > 10
    ('lab-dual-full', None, True)
    """
    models = [model] if isinstance(model, str) or not isinstance(model, Sequence) else list(model)
    need("torch", "neural", "CounterBias")
    for name in models:
        if isinstance(name, str):
            need_packages(name, "CounterBias")
    from portrayal.metrics.counterbias.run import CounterbiasRun, CounterbiasSettings, load_model, model_names

    started = time.time()
    read = manifest if isinstance(manifest, Manifest) else read_manifest(manifest, images, skip_bad)
    instances = select_instances(read, concepts)
    resolved_lexicon = resolve_lexicon(attribute, lexicon)
    ordered = ordered_groups(instances, groups, resolved_lexicon)
    instances = [instance for instance in instances if instance.group in ordered]
    check_group_words(words, ordered)
    word_of_group = {
        group: (words or {}).get(group) or group_word(group, resolved_lexicon) for group in ordered
    }
    settings = CounterbiasSettings(
        attacks=tuple(unique_names(attack)),
        epsilon=epsilon,
        steps=steps,
        step_size=step_size,
        norm=norm,
        stop_at=stop_at,
        placebo=placebo,
        normalize_over=normalize_over,
        bias_normalize_over=bias_normalize_over,
        bias_prompt=bias_prompt,
        control_prompt=control_prompt,
        control_words=tuple(control_words),
        templates=find_templates(templates),
        blank_image=blank_image,
        batch_size=batch_size,
        seed=seed,
        n_resamples=bootstrap,
        stereotypes=dict(stereotypes),
    )
    if settings.exact and len(ordered) > 2:
        raise PortrayalError(
            "An image has one given counterfactual: with --attack exact name two of the groups."
        )
    instances, bad = readable_instances(instances, skip_bad, settings.exact)
    ordered = ordered_groups(instances, groups, resolved_lexicon)
    names = model_names(models)
    parts = []
    for requested in models:
        loaded, model_key = load_model(requested, device, precision, batch_size, tokenizer)
        for pair in combinations(ordered, 2):
            pair_instances = [instance for instance in instances if instance.group in pair]
            pair_words = {group: word_of_group[group] for group in pair}
            run = CounterbiasRun(loaded, model_key, attribute, pair_words, pair_instances, settings)
            parts.append(run.results(CARD, checkpoint, progress))
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=study_summary(read, instances, bad, names),
        cards={CARD.name: CARD.as_dict()},
        skipped=[],
        stereotypes={concept: group for concept, group in stereotypes.items() if group in ordered},
    )
    return Results.join(parts, origin)
