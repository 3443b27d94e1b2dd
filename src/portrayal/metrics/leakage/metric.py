"""Leakage: what the labels that a system gives tell of the group of the person shown, beyond what true labels tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from portrayal.errors import PortrayalError, Undefined
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Synonyms
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.leakage.labels import Labels, Named
from portrayal.metrics.leakage.measurements import Case
from portrayal.metrics.lic.settings import MAX_C
from portrayal.metrics.shared.classifier.linear import Guesser
from portrayal.metrics.shared.classifier.protocol import BY_IMAGE, Protocol
from portrayal.metrics.shared.classifier.splits import FOLDS, REPEATS
from portrayal.metrics.shared.mentions import object_finder
from portrayal.statements import IDEAL, Statement
from portrayal.stats import RESAMPLES
from portrayal.study import Study

NULL = 200  # dealings of labels behind the null
STRENGTH = 0.1
CONFIDENCE = 0.5

CARD = Card(
    name="leakage",
    title="What named objects give away (leakage)",
    question="How well can the group of the person shown be guessed from the objects that a system names, and is it "
    "easier than from the objects that are there?",
    formula=(
        "An attacker (logistic regression, each image guessed by one that did not learn from it) guesses the group "
        "from the labels of an image. Its accuracy is the mean over groups of the share of the group's images that "
        "are guessed right, so that chance is 1 / groups. on-outputs: from the labels that the system gives. "
        "on-truth: from the labels that people gave, made as wrong as the system's without regard to the group, so "
        "that micro-F1 is the same. difference = on-outputs - on-truth. "
        "predictability = (on-outputs - on-truth) / (on-outputs + on-truth). on-labels: from people's labels as they "
        "are. f1 = 2 x right / (said + true), over all images and labels. "
        "p of on-outputs: how often chance labels of groups reach it, (1 + times) / (1 + dealings); of difference "
        "and predictability: from the paired bootstrap."
    ),
    range="on-outputs, on-truth, on-labels, f1: 0 to 1. difference, predictability: -1 to 1; above 0 the system's "
    "labels give away more than true ones that are as wrong.",
    needs=("attributes", "objects"),
    paper=(
        "Wang, Zhao, Yatskar, Chang and Ordonez, Balanced Datasets Are Not Enough, ICCV 2019 (leakage). "
        "predictability: the relative form of Tokas, Nair and Kerner, Making Bias Amplification in Balanced Datasets "
        "Directional and Interpretable, 2024."
    ),
    caveats=(
        "What the world ties to a group gives it away too: where true labels do (on-labels), labels that are right do, "
        "and that is not the system's. Read difference, not on-outputs.",
        "Mistakes hide a group, so true labels get as many (--mistakes). 'label': what is said of each label is dealt "
        "anew among the images that have it, and among those that do not, so that each label keeps its precision, "
        "recall and F1. 'overall' keeps them over all labels together, and 'flip', the published way, turns any label "
        "at random until F1 is reached. Both treat labels that a system always names like those it never does: in the "
        "lab, where captions leave out what hardly tells the group, on-truth falls too far and a faithful system seems "
        "to leak (by .07 and .04).",
        "Labels say what is anywhere in an image, captions what matters in it, which may be tied to a group more "
        "closely. People's captions can lie above 0 for that reason (system human; .02 in COCO): read a system's "
        "difference beside theirs.",
        "F1 is matched over all people, not for each group: where labels are worse for one group, that itself tells "
        "the group, and counts as the system's. f1 stands there for each group.",
        "Mistakes are dealt label by label: what is left out together, as by a short caption, is no longer together.",
        "A group's own accuracy also says to which side images fall that tell nothing: where one group's is high for "
        "that reason, the others' are low. Only their mean is to be read against chance, and only it is compared.",
        "A linear attacker is a lower bound: what it does not find may still be there.",
        "Labels of people (person, man, rider) are left out. An image without labels counts as one where none of the "
        "objects is. Objects in captions are found by word (the label, its plural, common synonyms), not by meaning.",
        "The group is what annotators saw, not what the person would say of themselves.",
    ),
    terms=(
        Term("on-outputs", "guessed from what the system names (ideal: by chance labels)", "share", "lower",
             depends_on_n=True),
        Term("on-truth", "guessed from true labels that are as wrong", "share", depends_on_n=True),
        Term("difference", "what the system gives away beyond them", "share", "lower", 0.0, depends_on_n=True),
        Term("predictability", "the same, relative to their sum", "share", "lower", 0.0, depends_on_n=True),
        Term("on-labels", "guessed from true labels", "share", depends_on_n=True),
        Term("f1", "how well what is named agrees with true labels", "share", "higher", 1.0),
    ),
    statements=(
        Statement(
            "difference",
            IDEAL,
            "A classifier predicts {attribute} better from the objects {system} names than from those in the image",
            "a classifier predicts {attribute} better from the objects {system} names than from those in the image",
            "A classifier predicts {attribute} worse from the objects {system} names than from those in the image",
            smallest=0.005,
        ),
    ),
    responds_to={"difference": "amplification", "predictability": "amplification"},
    uses=("captions",),
    should_ignore=("wrong-group", "neutral", "hallucination", "length", "vocabulary", "repetition", "data-bias"),
    learns=True,
    lab_notes=dict.fromkeys(
        ("difference", "predictability"),
        "the more the world itself ties to a group, the less is left that amplification could add; without "
        "amplification, data bias does not move it",
    ),
)  # fmt: skip


@metric(
    CARD,
    slow=True,
    quick={"permutations": 40},
    own=("confidence",),
    voices=lambda study, options: study.labellers if options.get("outputs") == "labels" else study.sources,
    english=True,
)
def leakage(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    outputs: Annotated[
        Literal["captions", "labels"],
        "What a system gives: the objects that its captions name, or its labels among the study's objects.",
    ] = "captions",
    confidence: Annotated[float, "How sure a model must be of a label for it to count.", 0] = CONFIDENCE,
    mistakes: Annotated[
        Literal["label", "overall", "flip"],
        "How true labels are made as wrong as the system's: with its precision and recall of each label, or over all "
        "labels, or by turning labels at random until F1 is reached, as published.",
    ] = "label",
    permutations: Annotated[int, "How often groups are dealt at random to know chance; 0: never.", 0] = NULL,
    C: Annotated[float, "How freely the attacker learns (inverse regularisation, C).", 1e-6] = STRENGTH,
    folds: Annotated[int, "Parts into which images are cut, each tested once.", 2] = FOLDS,
    repeats: Annotated[int, "How often folds and mistakes are drawn.", 1] = REPEATS,
    synonyms: Synonyms = None,
) -> ResultBuilder:
    """Leakage of each system, and of people's captions, against true labels that are as wrong.

    >>> import polars as pl, portrayal
    >>> n, skis = 200, lambda i: i % 2 == 0 or i % 8 == 1
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(n), "system": ["s"] * n,
    ...                            "caption": ["a person with skis" if skis(i) else "a person" for i in range(n)]}),
    ...     attributes=pl.DataFrame({"image_id": range(n), "gender": ["male", "female"] * (n // 2)}),
    ...     objects=pl.DataFrame({"image_id": range(n), "labels": [["skis"] if skis(i) else [] for i in range(n)]}))
    >>> found = portrayal.metrics.leakage(study, permutations=0)
    >>> {m.term: m.value for m in found.measurements if m.group is None and m.system == "s"}
    {'on-outputs': 0.875, 'on-truth': 0.875, 'difference': 0.0, 'predictability': 0.0, 'on-labels': 0.875, 'f1': 1.0}
    """
    groups = study.groups(attribute)
    if len(groups) < 2:
        raise Undefined(f"A group can only be guessed among several, and '{attribute}' has {len(groups)}.")
    if not C <= MAX_C:
        raise PortrayalError(f"The option 'C' must be {MAX_C:g} or less. Got {C!r} instead.")
    by_captions = outputs == "captions"
    if synonyms is not None and not by_captions:
        raise PortrayalError("The option 'synonyms' is for objects found in captions, and these are labels.")
    group_of = {image: groups.index(group) for image, group in study.labels(attribute).iter_rows()}
    labels = Labels.of(study, group_of, attribute)
    preconditions_met()
    settings = {
        "outputs": "captions" if by_captions else "labels",
        "confidence": None if by_captions else confidence,
        "mistakes": mistakes,
        "permutations": permutations,
        "C": C,
        "folds": folds,
        "repeats": repeats,
        "synonyms": None,
    }
    named: dict[str, Named] = {}
    if by_captions:
        finder, settings["synonyms"] = object_finder(labels.names, synonyms)
        named = {source: labels.of_captions(source, finder) for source in sources}
    else:
        named = {source: labels.of_source(source, confidence) for source in sources}
    builder = ResultBuilder(CARD, attribute, settings)
    seeds = tuple(range(repeats * seed, repeats * (seed + 1)))
    protocol = Protocol(BY_IMAGE, "weights", seeds, folds, Guesser(len(groups), C, by="hits"))
    for system, said in named.items():
        Case(
            builder, system, said, labels.names, groups, protocol, mistakes, permutations, seed, bootstrap
        ).measure()
    return builder
