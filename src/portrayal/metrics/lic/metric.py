"""LIC (leakage for image captioning): how well masked captions predict the group, beside human captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import Lexicon
from portrayal.metrics.base.options import Bootstrap, unique_names
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.lic.card import CARD
from portrayal.metrics.lic.measurements import LicMeasurements
from portrayal.metrics.lic.settings import LicSettings, variants
from portrayal.metrics.shared.classifier.corpus_builder import CorpusBuilder, all_captions, default_vocabulary
from portrayal.metrics.shared.classifier.cross_validation import PUBLISHED
from portrayal.metrics.shared.classifier.linear_classifier import MAX_C
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.classifier.neural import Trainer
from portrayal.metrics.shared.classifier.splits import FOLDS, PAPER_SEEDS, REPEATS
from portrayal.models.text_classifiers.configs import (
    ENCODER,
    FINE_TUNED,
    FROZEN,
    ClassifierConfig,
    LstmConfig,
)
from portrayal.results import HUMAN
from portrayal.stats import RESAMPLES
from portrayal.study import Study

SplitName = Literal["crossfit", "common", "paper", "paper-unseen"]
N_PERMUTATIONS = 200  # of the leak-safe splits
DEFAULT_C = 0.1


@metric(
    CARD,
    slow=True,
    audit_options={"split": ("crossfit", "paper", "paper-unseen")},
    quick_options={"split": ("crossfit",), "permutations": 40},
    not_general=("encoder",),
    sources_together=lambda options: options.get("classifier", "linear") != "linear",
)
def lic(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    classifier: Annotated[
        Literal["linear", "lstm", "bert-ft", "bert-pre"],
        "Classifier that predicts the group: logistic regression on unigrams and bigrams, or a published neural "
        "network (bert-ft fine-tunes the encoder, bert-pre trains only its head).",
    ] = "linear",
    split: Annotated[
        tuple[SplitName, ...],
        "Train/test split; repeat the option to compare several.",
    ] = ("crossfit",),
    vocabulary: Annotated[
        Literal["system", "observed", "common", "none"] | None,
        "Vocabulary that human captions are restricted to. By default the system's vocabulary file, else the "
        "words it uses here.",
    ] = None,
    balance: Annotated[
        Literal["weights", "subsample"],
        "How groups of different size are balanced: class weights or subsampling. The published split subsamples.",
    ] = "weights",
    seeds: Annotated[
        tuple[int, ...] | None,
        "One seed per repeat, separated by commas. By default five repeats; for the published split its ten.",
        0,
    ] = None,
    permutations: Annotated[
        int | None,
        "Number of label permutations for the chance level. By default 200; 0 for the published split, for neural "
        "classifiers and with --sensitivity.",
        0,
    ] = None,
    lexicon: Annotated[str | Lexicon | None, "Words to hide: a shipped list or a TOML file."] = None,
    mask: Annotated[
        bool | None,
        "Hide the words that name the group. By default as the attribute's list says (race words stay); a list given "
        "with --lexicon is hidden. An attribute without a list needs --no-mask.",
    ] = None,
    mask_mode: Annotated[
        Literal["replace", "remove"], "Replace hidden words by a mask token, or remove them."
    ] = "replace",
    C: Annotated[float, "Inverse regularisation strength C of the logistic regression.", 1e-6] = DEFAULT_C,
    folds: Annotated[int, "Number of cross-validation folds.", 2] = FOLDS,
    references: Annotated[
        int | None, "Human captions used per image. By default 5, or as many as most images have.", 1
    ] = None,
    encoder: Annotated[
        str, "For bert-ft and bert-pre: name of a Hugging Face encoder, or a folder."
    ] = ENCODER,
    epochs: Annotated[
        int | None,
        "Training epochs of a neural classifier. By default as published: lstm 20, bert-ft 5, bert-pre 20.",
        1,
    ] = None,
    learning_rate: Annotated[
        float | None,
        "Learning rate of a neural classifier. By default as published: lstm 5e-5, bert-ft 1e-5, bert-pre 5e-5.",
        1e-9,
    ] = None,
    encoder_dropout: Annotated[
        bool, "For bert-pre: keep the frozen encoder's dropout on, as the published code does."
    ] = True,
    unknown: Annotated[
        Literal["word", "pieces"],
        "For lstm: tokenize a word outside the vocabulary as one unknown word, or as '<', 'unk', '>', as the "
        "published code does.",
    ] = "word",
    precision: Annotated[
        Literal["bfloat16", "float32"], "Precision of a neural classifier's matrix products."
    ] = "bfloat16",
    explain: Annotated[
        int,
        "For a neural classifier: steps of integrated gradients per test caption, for word attributions; "
        "0: none. 50 are enough. (The linear classifier always has exact word contributions.)",
        0,
    ] = 0,
    device: Annotated[
        Literal["auto", "cpu", "cuda", "deferred"],
        "Device of a neural classifier: by default a GPU if there is one. 'deferred' writes the training tasks "
        "to a plan for another machine.",
    ] = "auto",
    cache_dir: Annotated[
        str | None,
        "Folder that caches predictions of trained classifiers, so that a long run can resume, here or elsewhere.",
    ] = None,
    sensitivity: Annotated[
        bool, "Also vary the word list, mask, vocabulary, balance and C, one at a time."
    ] = False,
) -> ResultBuilder:
    """LIC of each system: how well its masked captions predict the group, compared with human captions.

    Returns the scores with their chance level, confidence intervals and reasons, also under other
    configurations if asked.

    >>> import polars as pl, portrayal
    >>> n = 200
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(n), "system": ["s"] * n,
    ...                            "caption": [f"a man {'cooks' if i % 2 else 'skis'} {i}" for i in range(n)]}),
    ...     attributes=pl.DataFrame({"image_id": range(n), "gender": ["female", "male"] * (n // 2)}))
    >>> results = portrayal.metrics.lic(study, permutations=0)
    >>> next(m.value for m in results.measurements if m.term == "accuracy" and m.group is None)
    100.0
    """
    groups = study.groups(attribute)
    if len(groups) < 2:
        raise Undefined(f"A group can only be predicted among several, and '{attribute}' has {len(groups)}.")
    if not C <= MAX_C:
        raise PortrayalError(f"The option 'C' must be {MAX_C:g} or less. Got {C!r} instead.")
    _check_classifier(classifier, unknown, epochs, learning_rate, explain, cache_dir)
    splits = dict.fromkeys(unique_names(split))
    text_mask = Mask.for_attribute(attribute, lexicon, mask, mask_mode == "remove").checked(
        all_captions(study)
    )
    preconditions_met()
    config = _classifier_config(classifier, encoder, epochs, learning_rate, encoder_dropout, precision)
    folder = None if cache_dir is None else Path(cache_dir)
    base = LicSettings(
        split="",
        balance=balance,
        seeds=(),
        folds=folds,
        C=C,
        vocabulary=vocabulary,
        mask=text_mask,
        permutations=0,
        references=references,
        classifier=classifier,
        trainer=None if config is None else Trainer(config, explain, device, folder, unknown == "pieces"),
    )
    truth = {image: groups.index(group) for image, group in study.labels(attribute).iter_rows()}
    builder = ResultBuilder(CARD, attribute, {})
    jobs: list[tuple[LicMeasurements, bool]] = []
    for name in splits:
        published = name in PUBLISHED
        default_seeds = PAPER_SEEDS if published else tuple(range(REPEATS * seed, REPEATS * (seed + 1)))
        default_permutations = 0 if published or sensitivity or config else N_PERMUTATIONS
        settings = replace(
            base,
            split=name,
            seeds=tuple(seeds) if seeds else default_seeds,
            seeds_follow=not seeds and not published,
            permutations=default_permutations if permutations is None else permutations,
        )
        for system in sources:
            if system == HUMAN:  # human captions are measured in each system's vocabulary
                continue
            default_rule = default_vocabulary(study, system)
            for variant in [
                settings,
                *(variants(settings, study, attribute, default_rule) if sensitivity else ()),
            ]:
                corpus_builder = CorpusBuilder(study, truth, variant.mask, keep_file_order=variant.published)
                row_settings = variant.row_settings(variant.vocabulary or default_rule)
                own_builder = replace(builder, settings=row_settings, caution=variant.mask.caution)
                in_full = variant is settings and name == next(iter(splits))
                jobs.append(
                    (
                        LicMeasurements(
                            own_builder, system, variant, corpus_builder, groups, seed, bootstrap
                        ),
                        in_full,
                    )
                )
    if base.trainer is not None:  # many networks train together in the time of one
        base.trainer.predictions([task for measurements, _ in jobs for task in measurements.tasks()])
    for measurements, in_full in jobs:
        measurements.measure(in_full)
    return builder


def _check_classifier(
    classifier: str,
    unknown: str,
    epochs: int | None,
    learning_rate: float | None,
    explain: int,
    cache_dir: str | None,
) -> None:
    """Refuse options that would have no effect."""
    neural = {
        "epochs": epochs,
        "learning_rate": learning_rate,
        "explain": explain or None,
        "cache_dir": cache_dir,
    }
    given = [name for name, value in neural.items() if value is not None]
    if classifier == "linear" and given:
        raise PortrayalError(f"The option '{given[0]}' is for neural classifiers, and 'linear' is not one.")
    if unknown == "pieces" and classifier != "lstm":
        raise PortrayalError("The option 'unknown' can be 'pieces' for the classifier 'lstm' only.")
    if cache_dir is not None and Path(cache_dir).exists() and not Path(cache_dir).is_dir():
        raise PortrayalError(f"The option 'cache_dir' must be a folder, and {cache_dir} is a file.")


def _classifier_config(
    classifier: str,
    encoder: str,
    epochs: int | None,
    learning_rate: float | None,
    encoder_dropout: bool,
    precision: str,
) -> ClassifierConfig | None:
    """Return the published configuration with the given changes; None for the linear classifier."""
    if classifier == "linear":
        return None
    options = {"epochs": epochs, "learning_rate": learning_rate, "precision": precision}
    given = {name: value for name, value in options.items() if value is not None}
    if classifier == "lstm":
        return replace(LstmConfig(), **given)  # type: ignore[arg-type]
    config = FINE_TUNED if classifier == "bert-ft" else replace(FROZEN, encoder_dropout=encoder_dropout)
    return replace(config, model=encoder, **given)  # type: ignore[arg-type]
