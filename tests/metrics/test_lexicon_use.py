"""An attribute selects its lexicon by any of its names; words that cannot be masked and other languages are refused."""

from __future__ import annotations

import polars as pl
import pytest

import portrayal
from portrayal.cli.main import run
from portrayal.errors import PortrayalError, Undefined
from portrayal.metrics import error, harms, lic, quality, word_odds
from portrayal.metrics.leakage.labels import HumanLabels
from portrayal.metrics.shared.lexicon_use import lexicon_remarks
from portrayal.study import write_study

GERMAN = """Ein Mann mit Hut steht auf der Straße
Eine Frau sitzt auf einer Bank im Park
Zwei Kinder spielen Fußball auf einer Wiese
Ein Hund rennt am Strand entlang
Ein Mann fährt mit dem Fahrrad durch die Stadt
Eine Frau hält einen roten Regenschirm
Ein kleiner Junge isst ein Stück Pizza
Ein Mädchen reitet auf einem braunen Pferd
Eine Gruppe von Menschen wartet auf den Bus
Ein Mann in einem Anzug spricht in ein Mikrofon
Eine Katze liegt auf einem Laptop
Ein Teller mit Nudeln und Gemüse steht auf dem Tisch
Ein Mann springt mit einem Snowboard über die Schanze
Eine ältere Frau kocht in der Küche
Mehrere Leute fahren Ski in den Bergen
Ein Tennisspieler schlägt den Ball
Ein Zug fährt in den Bahnhof ein
Ein Surfer reitet auf einer großen Welle
Eine Frau mit Brille liest ein Buch
Ein Mann repariert ein altes Motorrad
Zwei Männer sitzen in einem Restaurant und trinken Wein
Ein Baby schläft in einem Kinderbett
Die Frau telefoniert mit ihrem Handy
Ein Skateboarder macht einen Trick auf der Rampe
Ein Koch schneidet Tomaten in der Küche
Ein Flugzeug steht auf der Landebahn
Eine Familie macht ein Picknick am See
Ein Polizist steht neben einem Auto
Das Kind hat einen Ball in der Hand
Ein Mann wirft eine Frisbee im Park
Drei Giraffen stehen neben einem Baum""".splitlines()
ENGLISH = [
    f"a {'man' if n % 2 else 'woman'} with a {'dog' if n % 3 else 'kite'} on street {n}" for n in range(62)
]
GROUPS = ["female", "male"]
FEW = {"permutations": 0, "bootstrap": 20, "seeds": (0,)}


def study_of(attribute="gender", groups=GROUPS, objects=None, **captions):
    rows = [(n, system, text) for system, texts in captions.items() for n, text in enumerate(texts)]
    columns = dict(zip(("image_id", "system", "caption"), zip(*rows, strict=True), strict=True))
    images = sorted({n for n, _, _ in rows})
    labels = {"image_id": images, attribute: [groups[n % 2] for n in images]}
    return portrayal.Study.from_frames(
        captions=pl.DataFrame(columns), attributes=pl.DataFrame(labels), objects=objects
    )


def row_values(results):
    return [(m.term, m.item, m.value, m.low, m.high, m.p) for m in results.measurements]


@pytest.mark.parametrize("name", ["Gender", "GENDER", "sex", "Sex"])
def test_an_attribute_of_another_name_gives_the_same_numbers(name):
    usual, renamed = study_of(c=ENGLISH), study_of(name, ["F", "M"], c=ENGLISH)
    assert row_values(lic(renamed, **FEW)) == row_values(lic(usual, **FEW))
    assert row_values(error(renamed, bootstrap=20)) == row_values(error(usual, bootstrap=20))
    assert row_values(word_odds(renamed, bootstrap=20)) == row_values(word_odds(usual, bootstrap=20))
    assert {m.attribute for m in error(renamed, attribute="gender", bootstrap=20).measurements} == {name}
    labels = pl.DataFrame({"image_id": range(62), "label": ["man", "dog"] * 31, "source": "human"})
    with_objects = study_of(name, c=ENGLISH, objects=labels)
    assert HumanLabels.of(with_objects, {}, name).names == ("dog",)


def test_two_attributes_of_the_same_name_are_ambiguous():
    study = study_of("sex", c=ENGLISH)
    both = portrayal.Study.from_frames(
        captions=study.captions, attributes=study.attributes.with_columns(Sex=pl.col("sex"))
    )
    with pytest.raises(PortrayalError, match="'gender' can be 'sex' or 'Sex' of this study"):
        error(both, attribute="gender")


@pytest.mark.parametrize("metric", [lic, word_odds])
def test_an_attribute_that_cannot_be_masked_is_refused_without_no_mask(metric):
    options = FEW if metric is lic else {"bootstrap": 20}
    hair = study_of("hair", ["dark", "fair"], c=ENGLISH)
    with pytest.raises(
        Undefined, match=r"No shipped lexicon has words that name 'hair'.*--lexicon FILE.*--no-mask"
    ):
        metric(hair, attribute="hair", **options)
    crossed = portrayal.Study.from_frames(
        captions=hair.captions, attributes=hair.attributes.with_columns(gender=pl.col("hair"))
    )
    with pytest.raises(Undefined, match="words that name 'hair'"):
        metric(crossed, attribute="gender+hair", **options)
    results = metric(hair, attribute="hair", mask=False, **options)
    assert {m.caution for m in results.measurements} == {
        "No words for hair were hidden, as was asked (--no-mask)."
    }
    assert {m.settings["mask"] for m in results.measurements} == {None}
    assert {m.caution for m in metric(study_of(c=ENGLISH), **options).measurements} == {None}


def test_a_lexicon_without_mentions_is_refused_and_neutral_captions_are_not():
    with pytest.raises(Undefined, match=r"No caption has a word of the lexicon 'gender' \(language: en\)"):
        lic(study_of(c=[text.replace("woman", "dog").replace("man", "cat") for text in ENGLISH]), **FEW)
    neutral = [text.replace("woman", "person").replace("man", "person") for text in ENGLISH]
    results = lic(study_of(c=neutral), **FEW)
    assert {m.caution for m in results.measurements} == {
        "No word of the lexicon 'gender' stands in a caption: nothing was hidden."
    }


def test_words_that_the_published_protocol_leaves_in_bear_a_caution():
    results = lic(study_of("skin", ["dark", "light"], c=ENGLISH), **FEW)
    assert {m.caution for m in results.measurements} == {
        "No words for skin were hidden, as published; --mask hides them."
    }


def test_labels_of_the_same_group_are_refused():
    with pytest.raises(
        Undefined, match=r"'M', 'man' of 'gender' all mean 'male'.*--map gender:M=male,man=male"
    ):
        error(study_of(groups=["M", "man"], c=ENGLISH))


def test_captions_in_another_language_are_refused_and_the_others_measured(tmp_path, capsys):
    study = study_of(german=GERMAN, english=ENGLISH)
    results = error(study, bootstrap=20)
    assert {m.system for m in results.measurements} == {"english"}
    (skip,) = results.provenance["skipped"]
    assert skip["reason"].startswith(
        "Of 31 captions of 'german' that were read, 0 seem to be in the language"
    )
    for metric in (error, lic, word_odds, harms):
        with pytest.raises(Undefined, match="captions of 'german'"):
            metric(study, attribute="gender", systems=["german"])
    assert lic(study, systems=["german"], mask=False, **FEW).measurements  # no words are needed
    write_study(study, tmp_path)
    assert run(["score", "error", str(tmp_path), "--bootstrap", "20"]) == 0
    assert "Not measured: error, gender. Of 31 captions of 'german'" in " ".join(
        capsys.readouterr().out.split()
    )


def test_captions_of_two_languages_bear_a_caution():
    mixed = study_of(c=ENGLISH + GERMAN)
    sentence = (
        "Of 93 captions of 'c' that were read, 62 seem to be in the language of the word lists (en); words in others "
        "are not found."
    )
    assert all((m.caution or "").endswith(sentence) for m in error(mixed, bootstrap=20).measurements)
    objects = pl.DataFrame({"image_id": range(93), "label": "dog", "source": "human"})
    rows = quality(study_of(c=ENGLISH + GERMAN, objects=objects), bootstrap=20).measurements
    assert {m.term for m in rows if m.caution} == {"chair-i", "chair-s"}


def test_a_lexicon_of_the_captions_language_reads_them(tmp_path):
    words = '[groups]\nmale = ["mann", "männer", "junge"]\nfemale = ["frau", "mädchen"]\n'
    german = tmp_path / "de.toml"
    german.write_text(f'name = "de"\nattribute = "gender"\nlanguage = "de"\n{words}')
    study = study_of(german=GERMAN)
    assert error(study, lexicon=str(german), bootstrap=20).measurements
    german.write_text(f'name = "de"\nattribute = "gender"\n{words}')  # without a language: English
    with pytest.raises(Undefined, match='a line such as language = "de"'):
        error(study, attribute="gender", lexicon=str(german), bootstrap=20)
    german.write_text('name = "fr"\nlanguage = "fr"\n[groups]\nmale = ["homme"]\nfemale = ["femme"]\n')
    with pytest.raises(Undefined, match=r"0 seem to be in the language of the word lists \(fr\)"):
        error(study, attribute="gender", lexicon=str(german), bootstrap=20)


def test_lexicon_remarks_name_the_lexicon_of_each_attribute():
    assert lexicon_remarks(study_of("Sex", c=ENGLISH)) == ["Sex: the lexicon 'gender' (en) is used."]
    assert "no lexicon is used" in lexicon_remarks(study_of("hair", c=ENGLISH))[0]
    assert "LIC does not hide its words" in lexicon_remarks(study_of("race", ["dark", "light"], c=ENGLISH))[0]
    assert "--map gender:0=...,1=..." in lexicon_remarks(study_of(groups=["0", "1"], c=ENGLISH))[0]
    assert "Of 31 captions of 'c'" in lexicon_remarks(study_of(c=GERMAN))[1]


@pytest.mark.parametrize("metric", [lic, word_odds, error])
def test_two_spellings_of_a_group_are_refused_by_every_metric(metric):
    """A study that was not imported may hold both M and male: LIC would distinguish four genders."""
    study = study_of(groups=["M", "male", "F", "female"], c=ENGLISH)
    with pytest.raises(
        Undefined, match=r"all mean '(fe)?male'.*portrayal import .*\[mapped.gender\] in study.toml"
    ):
        metric(study, attribute="gender")


def test_two_words_of_a_group_may_be_groups():
    study = study_of(groups=["man", "boy"], c=ENGLISH)
    assert {m.group for m in lic(study, **FEW).measurements} >= {"man", "boy"}
