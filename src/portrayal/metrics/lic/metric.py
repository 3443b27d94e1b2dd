"""LIC: what masked captions still give away about the person shown, and whether people's captions give away as much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import Lexicon
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, several
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.lic.measurements import Case
from portrayal.metrics.lic.settings import MAX_C, Setup, variants
from portrayal.metrics.shared.classifier.captions import Reader, captions_of, usual_vocabulary
from portrayal.metrics.shared.classifier.masking import Mask
from portrayal.metrics.shared.classifier.neural import Trainer
from portrayal.metrics.shared.classifier.protocol import PUBLISHED
from portrayal.metrics.shared.classifier.splits import FOLDS, PAPER_SEEDS, REPEATS
from portrayal.models.text_classifiers.schedules import ENCODER, FINE_TUNED, FROZEN, Classifier, Lstm
from portrayal.results import HUMAN
from portrayal.statements import IDEAL, Statement
from portrayal.stats import RESAMPLES
from portrayal.study import Study
from portrayal.study.cautions import LENGTH

Name = Literal["crossfit", "common", "paper", "paper-unseen"]
NULL = 200  # dealings of labels behind the null of the leak-safe splits
STRENGTH = 0.1

CARD = Card(
    name="lic",
    title="What captions give away (LIC)",
    question="How well can a classifier predict the group of the person shown from a caption, and is it easier than "
    "from human captions of the same images?",
    formula=(
        "The words of the list that the settings name (mask) are hidden; where none are, a caution says so. A "
        "classifier learns to guess the group from these captions. A tested caption scores "
        "the confidence in the true group where that is the guess, else 0. lic_m = 100 x the mean over groups of the "
        "groups' mean scores, over the system's captions; lic_d = the same over people's captions of the same images, "
        "in words that the system knows; lic = lic_m_paired - lic_d, both on the images that people described often "
        "enough. null_m and null_d: the same with labels dealt at random. "
        "lic_excess = (lic_m_paired - its null) - (lic_d - null_d). "
        "p of lic_m and lic_d: how often chance labels reach them, (1 + times) / (1 + dealings); of lic and "
        "lic_excess: from the paired bootstrap. word: what a word adds to the log odds of the group, mean over the "
        "group's tested captions that have it."
    ),
    range="lic_m, lic_d: 0 to 100. lic: -100 to 100; above 0 the system gives away more than people do.",
    needs=("captions", "attributes"),
    paper=(
        "Hirota, Nakashima and Garcia, Quantifying Societal Bias Amplification in Image Captioning, CVPR 2022; "
        "reproduced and extended by Türk et al., Exploring the Explainability of Bias in Image Captioning Models, "
        "2023, and by Antequera et al., RELIC, 2023."
    ),
    caveats=(
        "Chance is not 25 (for two groups): a classifier that has learnt nothing is still sure of something. Read "
        "lic_m against its null, and lic_excess rather than lic.",
        "A classifier that learns from more captions guesses better: on one system's captions lic_m is 45.7 with "
        "10,780 images and 42.2 with 1,000 of them. Compare lic_m, accuracy and the nulls only between equally many "
        "images; compare says where they are not.",
        "Captions of one system repeat each other. The published split learns and tests the same caption; 'crossfit' "
        "never does. A system that repeats itself looks different under the two, and both are shown.",
        "What gives a group away is not wrong in itself: an activity that the image shows and more of one group do "
        "gives it away too. lic holds the system against people who saw the same images.",
        "It depends on the classifier, the word list and the vocabulary: --sensitivity shows by how much.",
        "The label is what annotators saw, not what the person would say of themselves.",
    ),
    terms=(
        Term("lic_m", "what the system's captions give away (ideal: its null)", "percent", "lower", depends_on_n=True),
        Term("lic_m_calibrated", "the same by a classifier that is as sure as it is right", "percent", "lower",
             depends_on_n=True),
        Term("lic_d", "what people's captions of the same images give away", "percent", depends_on_n=True),
        Term("lic_m_paired", "lic_m on the images that people described often enough", "percent", "lower",
             depends_on_n=True),
        Term("lic", "what the system gives away beyond people", "percent", "lower", 0.0, depends_on_n=True),
        Term("lic_excess", "lic with chance taken off both sides", "percent", "lower", 0.0, depends_on_n=True),
        Term("null_m", "lic_m with labels dealt at random; the interval holds 95 % of the dealings", "percent",
             depends_on_n=True),
        Term("null_d", "lic_d with labels dealt at random", "percent", depends_on_n=True),
        Term("accuracy", "captions whose group is guessed, mean over groups", "percent", depends_on_n=True),
        Term("confidence", "how sure the classifier is of what it guesses, mean over groups", "percent",
             depends_on_n=True),
        Term("duplicates", "captions said of another image too; under a published split, tested ones that were learnt",
             "percent", depends_on_n=True),
        Term("unseen", "lic_m on the tested captions that were not learnt (n: how many; raw or masked text)", "percent",
             "lower", depends_on_n=True),
        Term("word", "what the word adds for this group in the captions that have it", "contribution", None, 0.0),
        Term("attribution", "what the words of a caption that was guessed right add up to (neural classifiers, with "
             "--explain); over groups their sum", "contribution"),
    ),
    statements=(
        Statement(
            "lic",
            IDEAL,
            "Captions of {system} are easier to classify by {attribute} than human captions",
            "captions of {system} are easier to classify by {attribute} than human captions",
            "Captions of {system} are harder to classify by {attribute} than human captions",
            findings=(),
            note="no finding by itself: captions that say only what is in the images can differ as much",
        ),
    ),
    cautioned={LENGTH: ("lic", "lic_excess")},
    responds_to={"lic_m": "data-bias", "lic": "amplification", "lic_excess": "amplification"},
    uses=("references",),
    beside=("lic_m_paired", "lic_d"),
    should_ignore=("wrong-group", "neutral", "hallucination", "length", "vocabulary", "repetition"),
    learns=True,
    lab_notes=dict.fromkeys(
        ("lic", "lic_excess"),
        "a captioner that truthfully names what is shown uses fewer different words for it than five annotators, and "
        "what is said in few words is learnt more easily; dials that change how many different captions there are move "
        "it for the same reason",
    ),
)  # fmt: skip


@metric(
    CARD,
    slow=True,
    audit={"split": ("crossfit", "paper", "paper-unseen")},
    quick={"split": ("crossfit",), "permutations": 40},
    own=("encoder",),
    at_once=lambda options: options.get("classifier", "linear") != "linear",
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
        "What guesses the group: logistic regression on words and pairs of words, or a published neural network "
        "(bert-ft trains the encoder, bert-pre only its head).",
    ] = "linear",
    split: Annotated[
        tuple[Name, ...],
        "What is learnt and what is tested; give it several times to see them side by side.",
    ] = ("crossfit",),
    vocabulary: Annotated[
        Literal["system", "observed", "common", "none"] | None,
        "The words that people's captions are told in. By default those of the system's vocabulary file, else "
        "those it uses here.",
    ] = None,
    balance: Annotated[
        Literal["weights", "subsample"],
        "How groups of different size count alike; the published split always draws a sample.",
    ] = "weights",
    seeds: Annotated[
        tuple[int, ...] | None,
        "A number for each repeat, separated by commas. By default five repeats; for the published split its ten.",
        0,
    ] = None,
    permutations: Annotated[
        int | None,
        "How often labels are dealt at random to know chance. By default 200; 0 for the published split, for neural "
        "classifiers and with --sensitivity.",
        0,
    ] = None,
    lexicon: Annotated[str | Lexicon | None, "Words to hide: a shipped list or a TOML file."] = None,
    mask: Annotated[
        bool | None,
        "Hide the words that name the group. By default as the attribute's list says (race words stay); a list that "
        "is named is hidden. An attribute without a list needs --no-mask.",
    ] = None,
    mask_mode: Annotated[
        Literal["replace", "remove"], "Put one token in place of hidden words, or nothing."
    ] = "replace",
    C: Annotated[float, "How freely the classifier learns (inverse regularisation, C).", 1e-6] = STRENGTH,
    folds: Annotated[int, "Parts into which captions are cut, each tested once.", 2] = FOLDS,
    references: Annotated[
        int | None, "People's captions used of each image. By default 5, or what most images have.", 1
    ] = None,
    encoder: Annotated[
        str, "For bert-ft and bert-pre: a Hugging Face encoder by name, or a folder."
    ] = ENCODER,
    epochs: Annotated[
        int | None,
        "How often a neural network sees each caption. By default as published: lstm 20, bert-ft 5, bert-pre 20.",
        1,
    ] = None,
    learning_rate: Annotated[
        float | None,
        "Its learning rate. By default as published: lstm 5e-5, bert-ft 1e-5, bert-pre 5e-5.",
        1e-9,
    ] = None,
    encoder_dropout: Annotated[
        bool, "For bert-pre: leave the frozen encoder's dropout on, as the published code does."
    ] = True,
    unknown: Annotated[
        Literal["word", "pieces"],
        "For lstm: read a word that is not in the vocabulary as one unknown word, or as '<', 'unk', '>', which is what "
        "the published code does.",
    ] = "word",
    precision: Annotated[
        Literal["bfloat16", "float32"], "Of a neural network's matrix products."
    ] = "bfloat16",
    explain: Annotated[
        int,
        "For a neural network: steps of integrated gradients for each tested caption, to tell what each word adds; "
        "0: none. 50 are enough. (The linear classifier always tells, exactly.)",
        0,
    ] = 0,
    device: Annotated[
        Literal["auto", "cpu", "cuda", "deferred"],
        "Where a neural network is trained: by default on a GPU if there is one. 'later' writes the trainings down "
        "for another machine.",
    ] = "auto",
    cache_dir: Annotated[
        str | None,
        "A folder that keeps what was trained, so that a long run goes on where it stopped, or elsewhere.",
    ] = None,
    sensitivity: Annotated[
        bool, "Also change the word list, mask, vocabulary, balance and strength, one at a time."
    ] = False,
) -> ResultBuilder:
    """LIC of each system, with its null, its intervals, its reasons, and what it looks like under other settings.

    >>> import polars as pl, portrayal
    >>> n = 200
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(n), "system": ["s"] * n,
    ...                            "caption": [f"a man {'cooks' if i % 2 else 'skis'} {i}" for i in range(n)]}),
    ...     attributes=pl.DataFrame({"image_id": range(n), "gender": ["female", "male"] * (n // 2)}))
    >>> found = portrayal.metrics.lic(study, permutations=0)
    >>> next(m.value for m in found.measurements if m.term == "accuracy" and m.group is None)
    100.0
    """
    groups = study.groups(attribute)
    if len(groups) < 2:
        raise Undefined(f"A group can only be guessed among several, and '{attribute}' has {len(groups)}.")
    if not C <= MAX_C:
        raise PortrayalError(f"The option 'C' must be {MAX_C:g} or less. Got {C!r} instead.")
    _check_classifier(classifier, unknown, epochs, learning_rate, explain, cache_dir)
    splits = dict.fromkeys(several(split))
    masked = Mask.for_attribute(attribute, lexicon, mask, mask_mode == "remove").checked(captions_of(study))
    preconditions_met()
    network = _network(classifier, encoder, epochs, learning_rate, encoder_dropout, precision)
    folder = None if cache_dir is None else Path(cache_dir)
    base = Setup(
        split="",
        balance=balance,
        seeds=(),
        folds=folds,
        C=C,
        vocabulary=vocabulary,
        mask=masked,
        permutations=0,
        references=references,
        classifier=classifier,
        trainer=None if network is None else Trainer(network, explain, device, folder, unknown == "pieces"),
    )
    truth = {image: groups.index(group) for image, group in study.labels(attribute).iter_rows()}
    builder = ResultBuilder(CARD, attribute, {})
    cases: list[tuple[Case, bool]] = []
    for name in splits:
        published = name in PUBLISHED
        usual_seeds = PAPER_SEEDS if published else tuple(range(REPEATS * seed, REPEATS * (seed + 1)))
        usual_null = 0 if published or sensitivity or network else NULL
        setup = replace(
            base,
            split=name,
            seeds=tuple(seeds) if seeds else usual_seeds,
            seeds_follow=not seeds and not published,
            permutations=usual_null if permutations is None else permutations,
        )
        for system in sources:
            if system == HUMAN:  # people's captions are measured in the words of each system
                continue
            usual = usual_vocabulary(study, system)
            for each in [setup, *(variants(setup, study, attribute, usual) if sensitivity else ())]:
                reader = Reader(study, truth, each.mask, in_order=each.published)
                how = each.settings(each.vocabulary or usual)
                under = replace(builder, settings=how, caution=each.mask.visible)
                in_full = each is setup and name == next(iter(splits))
                cases.append((Case(under, system, each, reader, groups, seed, bootstrap), in_full))
    if base.trainer is not None:  # many networks train side by side as fast as one
        base.trainer.answers([task for case, _ in cases for task in case.tasks()])
    for case, in_full in cases:
        case.measure(in_full)
    return builder


def _check_classifier(
    classifier: str,
    unknown: str,
    epochs: int | None,
    learning_rate: float | None,
    explain: int,
    cache_dir: str | None,
) -> None:
    """An option that would do nothing is a mistake."""
    neural = {
        "epochs": epochs,
        "learning_rate": learning_rate,
        "explain": explain or None,
        "cache_dir": cache_dir,
    }
    asked = [name for name, value in neural.items() if value is not None]
    if classifier == "linear" and asked:
        raise PortrayalError(f"The option '{asked[0]}' is for neural classifiers, and 'linear' is not one.")
    if unknown == "pieces" and classifier != "lstm":
        raise PortrayalError("The option 'unknown' can be 'pieces' for the classifier 'lstm' only.")
    if cache_dir is not None and Path(cache_dir).exists() and not Path(cache_dir).is_dir():
        raise PortrayalError(f"Trainings are kept in a folder, and {cache_dir} is a file.")


def _network(
    classifier: str,
    encoder: str,
    epochs: int | None,
    learning_rate: float | None,
    noisy: bool,
    precision: str,
) -> Classifier | None:
    """The published one, but for what is asked to be otherwise; None for the linear classifier."""
    if classifier == "linear":
        return None
    asked = {"epochs": epochs, "learning_rate": learning_rate, "precision": precision}
    given = {name: value for name, value in asked.items() if value is not None}
    if classifier == "lstm":
        return replace(Lstm(), **given)  # type: ignore[arg-type]
    made = FINE_TUNED if classifier == "bert-ft" else replace(FROZEN, noisy=noisy)
    return replace(made, model=encoder, **given)  # type: ignore[arg-type]
