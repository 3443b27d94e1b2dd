"""The dual network computes what the public code of ALBEF does, and takes its checkpoints name by name.

The numbers below were made by that code (github.com/salesforce/ALBEF at commit b9727e43c304, with Transformers 4.8.1
and timm 0.4.9, which it asks for) on the weights, images and texts of `weight_values` and `hashed_numbers`, in double
precision. For the texts without an image its layers' cross-attention was switched off. TCL's code
(github.com/uta-smile/TCL at commit 74a3e4f963a7) made the same numbers and has the same names. `albef_names.csv` lists
the names and shapes of everything in a pre-training checkpoint of the published size.
"""

from __future__ import annotations

import csv
import hashlib
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from portrayal.errors import PortrayalError

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")

from portrayal.models.masked_vlm.checkpoints import (  # noqa: E402
    dual_network,
    infer_shape,
    is_training_only,
    read_weights,
    resize_position_embeddings,
)
from portrayal.models.masked_vlm.dual_stream import DualNetwork, DualShape  # noqa: E402

NAMES = Path(__file__).with_name("albef_names.csv")
TINY = DualShape(
    image_size=32,
    patch_size=8,
    image_width=128,
    image_layers=3,
    image_heads=2,
    vocab_size=50,
    text_width=192,
    text_layers=5,
    fusion_layer=2,
    text_heads=3,
    intermediate_size=256,
    max_position_embeddings=16,
    embed_dim=32,
)
EMBEDDING = "text_encoder.bert.embeddings.word_embeddings.weight"
DECODER = "text_encoder.cls.predictions.decoder.weight"
BIAS = "text_encoder.cls.predictions.bias"
DECODER_BIAS = "text_encoder.cls.predictions.decoder.bias"
TIED = {DECODER: EMBEDDING, DECODER_BIAS: BIAS}
LENGTHS = (9, 5, 12)
POSITIONS = ((0, 4), (1, 4), (2, 11))  # (text, position) of the words below

WORDS = [
    [-1.964161, 1.156403, 1.286539, -0.807776, 0.701193, -0.517784],
    [-1.163909, 0.655381, 1.668282, -1.591000, -0.960573, 4.274586],
    [-0.370872, -3.300944, 0.257867, -2.490569, 3.159624, 2.561210],
]
WORDS_ALONE = [
    [0.387081, -0.786639, 0.387829, 5.753081, 2.111362, -0.698763],
    [-0.280361, -1.457442, -0.195217, 4.475054, 3.292956, 0.590193],
    [-1.632350, -2.071397, 0.553980, 2.616848, 3.793017, 1.958649],
]
MATCHES = [[-1.387203, 0.486537], [-0.257695, 4.172462], [0.317283, 1.862878]]  # of texts with their images
SIMILARITIES = [  # of each image with each text
    [0.066605, -0.069409, -0.001299],
    [0.292684, 0.187719, 0.277404],
    [0.041887, 0.063779, 0.205238],
]
RESIZED_EMBEDDINGS = [
    [0.306390, 0.539993, 1.036751],
    [0.089913, 0.841331, 0.576844],
    [0.686238, 0.569937, 0.513787],
]


def hashed_numbers(name: str, shape: tuple[int, ...]):
    """Numbers from 0 to 1 from the hash of a name: the same with every version of every library."""
    integers = np.frombuffer(hashlib.shake_256(name.encode()).digest(2 * math.prod(shape)), "<u2")
    return torch.from_numpy(integers.astype(np.float64).reshape(shape) / 65535)


def weight_values(name: str, shape: tuple[int, ...]):
    """Large enough for attention that is not even and for logits from -8 to 8."""
    if name.endswith("position_ids"):
        return torch.arange(shape[1]).expand(shape)
    if name == "temp":
        return torch.tensor(0.07)
    noise = (hashed_numbers(TIED.get(name, name), shape) - 0.5) * 0.52
    mean = 1 if "norm" in name.lower() and name.endswith("weight") else 0
    return (mean + noise).float()


def images():
    return hashed_numbers("pictures", (3, 3, TINY.image_size, TINY.image_size))


def texts():
    """Three texts of different lengths, padded with 0, and their attention mask."""
    attention_mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    return (1 + (hashed_numbers("texts", (3, max(LENGTHS))) * 48.99).long()) * attention_mask, attention_mask


def shapes_of(shape: DualShape) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return {name: tuple(value.shape) for name, value in DualNetwork(shape).state_dict().items()}


@pytest.fixture(scope="module")
def weights():
    return {name: weight_values(name, shape) for name, shape in shapes_of(TINY).items()}


@pytest.fixture(scope="module")
def published() -> dict[str, tuple[int, ...]]:
    with NAMES.open(encoding="utf-8", newline="") as file:
        return {
            row["name"]: tuple(int(edge) for edge in row["shape"].split("x") if edge)
            for row in csv.DictReader(file)
        }


def close(result, expected: list[list[float]]) -> None:
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=1e-4)


# -- names ----------------------------------------------------------------------------------------------------------


def test_every_name_of_a_published_checkpoint_is_used_or_skipped(published):
    needed = {name: shape for name, shape in published.items() if not is_training_only(name)}
    assert (len(published), len(needed)) == (844, 422)
    assert needed == shapes_of(DualShape())


def test_only_queues_and_momentum_copies_are_skipped(published):
    skipped = {name: shape for name, shape in published.items() if is_training_only(name)}
    queues = {name for name in skipped if "_m." not in name}
    assert queues == {"image_queue", "text_queue", "queue_ptr"}
    for name in set(skipped) - queues:
        assert published[name.replace("_m.", ".", 1)] == skipped[name]


def test_the_shape_of_a_published_checkpoint_is_read_off_its_weights(published):
    needed = {name: shape for name, shape in published.items() if not is_training_only(name)}
    assert infer_shape({name: torch.empty(needed[name], device="meta") for name in needed}) == DualShape()


# -- numbers --------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_masked_words_are_predicted_as_by_the_authors_code(weights):
    network = dual_network(weights).eval()
    assert network.shape == TINY
    logits = network.word_logits(network.cross_encode(network.encode_image(images()), *texts()))
    close(torch.stack([logits[position][:6] for position in POSITIONS]), WORDS)


@torch.no_grad()
def test_without_an_image_the_cross_attention_is_skipped(weights):
    network = dual_network(weights).eval()
    logits = network.word_logits(network.cross_encode(None, *texts()))
    close(torch.stack([logits[position][:6] for position in POSITIONS]), WORDS_ALONE)


@torch.no_grad()
def test_images_and_texts_are_matched_and_compared_as_by_the_authors_code(weights):
    network = dual_network(weights).eval()
    ids, attention_mask = texts()
    image_embeddings, text_embeddings = (
        network.encode_image(images()),
        network.encode_text(ids, attention_mask),
    )
    close(
        network.match_logits(network.cross_encode_text(image_embeddings, text_embeddings, attention_mask)),
        MATCHES,
    )
    close(network.image_features(image_embeddings) @ network.text_features(text_embeddings).T, SIMILARITIES)


@torch.no_grad()
def test_padding_does_not_change_the_outputs(weights):
    network = dual_network(weights).eval()
    ids, attention_mask = texts()
    embeddings, length = network.encode_image(images()), LENGTHS[1]
    alone = network.cross_encode(embeddings[1:2], ids[1:2, :length], attention_mask[1:2, :length])
    torch.testing.assert_close(
        network.cross_encode(embeddings, ids, attention_mask)[1:2, :length], alone, rtol=0, atol=1e-4
    )


# -- checkpoints ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_a_retrieval_checkpoint_has_a_match_head_and_no_mlm_head(weights):
    retrieval_weights = {
        name.replace(".bert.", "."): value for name, value in weights.items() if ".cls." not in name
    }
    network = dual_network(retrieval_weights).eval()
    assert not network.has_mlm_head
    assert network.has_match_head
    close(network.match_logits(network.cross_encode(network.encode_image(images()), *texts())), MATCHES)


def test_momentum_copies_and_queues_are_skipped(weights):
    training_weights = {
        "text_encoder_m.bert.encoder.layer.0.output.dense.bias": torch.ones(3),
        "temp_m": torch.ones(1),
    }
    training_weights |= {
        "image_queue": torch.ones(32, 8),
        "idx_queue": torch.ones(1, 8),
        "queue_ptr": torch.ones(1),
    }
    network = dual_network({**weights, **training_weights})
    assert network.has_mlm_head
    assert network.has_match_head
    for name, value in network.state_dict().items():
        assert torch.equal(value, weights[name]), name


def test_tied_weights_need_only_a_single_name(weights):
    untied = {name: value for name, value in weights.items() if name not in TIED}
    network = dual_network(untied)
    assert network.has_mlm_head
    predictions = network.text_encoder.cls.predictions
    assert predictions.decoder.weight is network.text_encoder.bert.embeddings.word_embeddings.weight
    assert predictions.decoder.bias is predictions.bias
    assert torch.equal(predictions.decoder.weight, weights[EMBEDDING])
    assert torch.equal(predictions.bias, weights[BIAS])


@pytest.mark.parametrize("name", TIED)
def test_tied_weights_that_differ_are_refused(weights, name):
    with pytest.raises(PortrayalError, match="to be the same"):
        dual_network({**weights, name: weights[name] + 1})


def test_an_unknown_name_is_refused(weights):
    with pytest.raises(PortrayalError, match=r"no place for: visual_encoder\.head\.weight\."):
        dual_network({**weights, "visual_encoder.head.weight": torch.ones(2, 128)})


@pytest.mark.parametrize(
    "name",
    ["visual_encoder.blocks.1.norm1.bias", "text_encoder.bert.encoder.layer.3.attention.self.key.weight"],
)
def test_a_missing_name_is_refused(weights, name):
    with pytest.raises(PortrayalError, match=f"lacks weights that the network has: {name}"):
        dual_network({other: value for other, value in weights.items() if other != name})


def test_another_shape_is_refused(weights):
    with pytest.raises(PortrayalError, match=r"has other shapes: text_proj\.weight"):
        dual_network({**weights, "text_proj.weight": torch.ones(31, 192)})


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [True, False])
def test_weights_are_read_from_files_with_and_without_what_training_adds(tmp_path, wrapped):
    weights = {"module.temp": torch.tensor(0.07), "module.itm_head.bias": torch.tensor([1.0, 2.0])}
    file = tmp_path / "model.pth"
    torch.save({"model": weights, "config": {"image_res": 256}, "epoch": 29} if wrapped else weights, file)
    result = read_weights(file)
    assert list(result) == ["temp", "itm_head.bias"]
    assert torch.equal(result["itm_head.bias"], weights["module.itm_head.bias"])


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.mark.parametrize("serialization", ["zip", "old", "pickle"])
def test_code_in_a_file_is_not_run(tmp_path, serialization):
    marker, file = tmp_path / "ran", tmp_path / "model.pth"
    content = {"model": {"temp": torch.tensor(0.07)}, "more": Harmful(marker)}
    if serialization == "pickle":
        file.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, file, _use_new_zipfile_serialization=serialization == "zip")
    with pytest.raises(PortrayalError, match="expected weights alone"):
        read_weights(file)
    assert not marker.exists()
    if serialization == "pickle":
        pickle.loads(file.read_bytes())
    else:
        torch.load(file, weights_only=False)
    assert marker.exists()  # it would have


# -- other sizes ----------------------------------------------------------------------------------------------------


def test_position_embeddings_of_the_same_size_are_unchanged():
    positions = hashed_numbers("places", (1, 257, 8))
    assert torch.equal(resize_position_embeddings(positions, 256), positions)


@pytest.mark.parametrize("side", [224, 384])
def test_position_embeddings_are_resized_to_other_numbers_of_patches(side):
    positions = hashed_numbers("places", (1, 257, 8))
    patches = (side // 16) ** 2
    resized = resize_position_embeddings(positions, patches)
    assert resized.shape == (1, patches + 1, 8)
    assert torch.equal(resized[:, 0], positions[:, 0])
    constant = resize_position_embeddings(torch.full((1, 257, 8), 0.3), patches)
    torch.testing.assert_close(constant, torch.full((1, patches + 1, 8), 0.3))


def test_position_embeddings_are_resized_as_by_the_authors_code():
    close(
        resize_position_embeddings(hashed_numbers("places", (1, 257, 8)), 576)[0, [1, 100, 576], :3],
        RESIZED_EMBEDDINGS,
    )


def test_resized_position_embeddings_keep_rows_and_columns():
    grid = torch.arange(4.0)[:, None].expand(4, 4)  # each row its number
    positions = torch.cat([torch.zeros(1), grid.flatten()])[None, :, None]
    resized = resize_position_embeddings(positions, 64)[0, 1:, 0].unflatten(0, (8, 8))
    torch.testing.assert_close(resized, resized[:, :1].expand(8, 8))
    assert (resized[1:, 0] > resized[:-1, 0]).all()


@torch.no_grad()
def test_a_checkpoint_takes_images_of_another_size(weights):
    network = dual_network(weights, image_size=48).eval()
    assert network.shape.image_size == network.image_size == 48
    assert network.encode_image(torch.rand(1, 3, 48, 48)).tokens.shape == (1, 37, 128)
