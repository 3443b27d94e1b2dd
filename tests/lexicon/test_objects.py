"""Objects in captions: plurals, synonyms, longest names first, and a user's own list."""

from __future__ import annotations

import pytest

from portrayal.errors import InputError
from portrayal.lexicon import ObjectFinder, read_synonyms
from portrayal.lexicon.objects import shipped_synonyms

COCO = [
    "dog",
    "hot dog",
    "bear",
    "teddy bear",
    "bat",
    "baseball bat",
    "cell phone",
    "dining table",
    "tv",
    "knife",
    "bus",
]
FINDER = ObjectFinder(COCO)

LABELS = {
    "two dogs and a bus": ("dog", "bus"),
    "a hot dog": ("hot dog",),
    "hot dogs and a dog": ("hot dog", "dog"),
    "a teddy bear and a bear": ("teddy bear", "bear"),
    "a man swinging a baseball bat": ("baseball bat",),
    "talking on a phone": ("cell phone",),
    "a TELEVISION on a table": ("tv", "dining table"),
    "knives": ("knife",),
    "the dog's bed, a dog": ("dog",),
    "doggedly": (),
    "": (),
}


@pytest.mark.parametrize("caption", LABELS)
def test_labels(caption):
    assert FINDER.labels(caption) == LABELS[caption]


def test_the_shipped_words_are_for_labels_of_coco(shared):
    import json

    labels = {category["name"] for category in json.loads((shared / "coco" / "categories.json").read_text())}
    assert set(shipped_synonyms()) <= labels


def test_no_two_labels_of_coco_share_a_shipped_word(shared):
    import json

    owner: dict[str, str] = {
        c["name"]: c["name"] for c in json.loads((shared / "coco" / "categories.json").read_text())
    }
    for label, words in shipped_synonyms().items():
        for word in words:
            assert owner.setdefault(word, label) == label, word


def test_the_public_format_is_read(shared):
    words = read_synonyms(shared / "coco" / "object_synonyms.txt")
    assert len(words) == 80
    assert "bike" in words["bicycle"]


def test_an_empty_list_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("\n , \n")
    with pytest.raises(InputError, match="expected lines of a label and its synonyms, found none"):
        read_synonyms(tmp_path / "x.txt")
