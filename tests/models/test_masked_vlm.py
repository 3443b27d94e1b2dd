"""Masked VLMs: the numbers of the wrapped models, with or without an image, for every kind of query."""

from __future__ import annotations

import importlib.util
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from portrayal.errors import PortrayalError
from tests.models import tiny_masked

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "safetensors")),
    reason="the extra 'neural' is not installed",
)

PROMPT = "a [MASK] is in the picture"
OTHER_PROMPT = "the man is [MASK]"
CONCEPTS = """
    baking biking cleaning cooking crying driving exercising fishing hugging jumping kneeling lifting picking praying
    riding running sewing shouting skating smiling spying staring studying talking walking waving begging calling
    climbing coughing drinking eating falling hitting jogging kicking laughing painting pitching reading rowing serving
    shopping sitting sleeping speaking standing stretching sweeping throwing washing working
    athlete chef doctor engineer farmer footballer judge mechanic nurse pilot police runner soldier
"""


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


@pytest.fixture(scope="module")
def tokenizer():
    from portrayal.models.masked_vlm.vocabulary import TransformersTokenizer

    return TransformersTokenizer(tiny_masked.tokenizer(), 24)


@pytest.fixture(scope="module")
def single(tokenizer):
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single_stream import SingleNetwork

    return TorchMaskedVLM("single", SingleNetwork(tiny_masked.vilt()), tokenizer)


@pytest.fixture(scope="module")
def dual(tokenizer):
    from portrayal.models.masked_vlm import TorchMaskedVLM

    return TorchMaskedVLM("dual", tiny_masked.dual(), tokenizer)


@pytest.fixture(scope="module")
def bert(tokenizer):
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.text_only import TextNetwork

    return TorchMaskedVLM("bert", TextNetwork(tiny_masked.bert()), tokenizer)


@pytest.fixture(scope="module")
def pixels(torch):
    return torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(3))


def close(first, second, tolerance=1e-5) -> bool:
    return float((first - second).detach().abs().max()) < tolerance


def vilt_log_probs(torch, model, pixels, text, mask):
    """The log probabilities of ViltForMaskedLM at the mask of a text with an image."""
    encoded = tiny_masked.tokenizer()(text, return_tensors="pt")
    with torch.no_grad():
        logits = model(
            **encoded, pixel_values=(pixels[None] - 0.5) / 0.5, pixel_mask=torch.ones(1, *pixels.shape[1:])
        ).logits
    return logits[0][encoded["input_ids"][0] == mask].log_softmax(-1)


# -- agreement with wrapped models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(32, 32), (32, 48), (56, 32)])
def test_vilt_agrees_with_the_wrapped_model(torch, single, size):
    pixels = torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(5))
    result = single.log_probs(pixels, [PROMPT, OTHER_PROMPT])
    for number, text in enumerate((PROMPT, OTHER_PROMPT)):
        expected = vilt_log_probs(torch, single.network.inner, pixels[number], text, single.tokenizer.mask_id)
        assert close(result[number], expected)


def test_padding_images_of_several_shapes_changes_nothing(torch, single):
    random = torch.Generator().manual_seed(7)
    shapes = [
        torch.rand(3, height, width, generator=random) for height, width in ((32, 48), (64, 32), (32, 32))
    ]
    result = single.log_probs(shapes, [PROMPT, OTHER_PROMPT, PROMPT])
    for number, text in enumerate((PROMPT, OTHER_PROMPT, PROMPT)):
        expected = vilt_log_probs(torch, single.network.inner, shapes[number], text, single.tokenizer.mask_id)
        assert close(result[number], expected)


def test_bert_agrees_with_the_wrapped_model(torch, bert):
    result = bert.log_probs(None, [PROMPT, OTHER_PROMPT])
    for number, text in enumerate((PROMPT, OTHER_PROMPT)):
        encoded = tiny_masked.tokenizer()(text, return_tensors="pt")
        with torch.no_grad():
            logits = bert.network.inner(**encoded).logits[0]
        assert close(
            result[number], logits[encoded["input_ids"][0] == bert.tokenizer.mask_id].log_softmax(-1)
        )


def test_the_match_head_has_two_logits(torch, dual, pixels):
    result = dual.match_log_probs(pixels, ["a man", "the woman is in the picture", "a"])
    assert result.shape == (3,)
    assert (result < 0).all()
    ids = torch.tensor([dual.tokenizer.encode("a man")])
    network = dual.network
    scores = network.match_logits(
        network.cross_encode(network.encode_image(pixels[:1]), ids, torch.ones_like(ids).bool())
    )
    assert close(result[0], scores.log_softmax(1)[0, 1])


# -- kinds of queries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["single", "dual"])
def test_batches_padding_and_reuse_change_nothing(request, torch, pixels, kind):
    model = request.getfixturevalue(kind)
    together = model.log_probs(pixels, [PROMPT, OTHER_PROMPT, PROMPT])
    assert together.shape == (3, 1, len(tiny_masked.PIECES))
    assert close(together.exp().sum(-1), torch.ones(3, 1))
    embeddings = model.encode_images(pixels)
    assert close(model.log_probs(embeddings, [PROMPT, OTHER_PROMPT, PROMPT]), together)
    model.batch_size = 2
    try:
        assert close(model.log_probs(pixels, [PROMPT, OTHER_PROMPT, PROMPT]), together)
        assert close(model.log_probs(embeddings, [PROMPT, OTHER_PROMPT, PROMPT]), together)
    finally:
        model.batch_size = 64
    for number, text in enumerate((PROMPT, OTHER_PROMPT, PROMPT)):
        assert close(model.log_probs(pixels[number : number + 1], text)[0], together[number])


@pytest.mark.parametrize("batch_size", [1, 2, 64])
@pytest.mark.parametrize("kind", ["single", "dual"])
def test_several_texts_with_each_image(request, monkeypatch, torch, kind, batch_size):
    """Of several shapes where a model takes them, so that some images are filled up."""
    model = request.getfixturevalue(kind)
    random = torch.Generator().manual_seed(4)
    sides = [32, 48, 32] if kind == "single" else [32, 32, 32]
    images = [torch.rand(3, side, 32, generator=random) for side in sides]
    texts = [PROMPT, OTHER_PROMPT, OTHER_PROMPT, PROMPT, PROMPT, OTHER_PROMPT]
    expected = [model.log_probs([images[n // 2]], [text])[0] for n, text in enumerate(texts)]
    monkeypatch.setattr(model, "batch_size", batch_size)
    embeddings = model.encode_images(images).with_texts_per_image(2)
    assert len(embeddings) == 6
    assert close(model.log_probs(embeddings, texts), torch.stack(expected))
    for batch in (slice(2, 4), slice(1, 6), slice(0, 3), slice(0, 6, 2), torch.tensor([5, 0, 0, 3])):
        positions = torch.arange(6)[batch].tolist()
        batch_texts = [texts[position] for position in positions]
        assert close(
            model.log_probs(embeddings[batch], batch_texts),
            torch.stack([expected[position] for position in positions]),
        )


def test_a_batch_bounds_what_is_encoded_at_once(request, monkeypatch, torch):
    """A single stream bounds texts, a dual stream bounds images with their texts; both bound word logits."""
    for kind, max_size in (("single", 2), ("dual", 6)):
        model = request.getfixturevalue(kind)
        embeddings = model.encode_images(torch.rand(4, 3, 32, 32)).with_texts_per_image(3)
        encode_sizes, logit_sizes = [], []
        name = "cross_encode" if kind == "single" else "cross_encode_text"
        encode, word_logits = getattr(model.network, name), model.network.word_logits
        with monkeypatch.context() as patch:
            patch.setattr(model, "batch_size", 2)
            patch.setattr(
                model.network,
                name,
                lambda *args, f=encode, n=encode_sizes: (n.append(len(args[1])), f(*args))[1],
            )
            patch.setattr(
                model.network,
                "word_logits",
                lambda batch, w=word_logits, n=logit_sizes: (n.append(len(batch)), w(batch))[1],
            )
            model.log_probs(embeddings, [PROMPT] * 12)
        assert max(encode_sizes) == max_size
        assert max(logit_sizes) == 2


@pytest.mark.parametrize("kind", ["single", "dual"])
def test_gradients_reach_the_pixels(request, torch, pixels, kind):
    model = request.getfixturevalue(kind)
    pixels = pixels.clamp(0.05, 0.95)  # room for a step either way
    changed = pixels.clone().requires_grad_()
    model.word_log_probs(changed, PROMPT, ["man"]).sum().backward()
    gradient = changed.grad
    assert all(weight.grad is None for weight in model.network.parameters())
    steepest = gradient[1].abs().argmax()
    expected = float(gradient[1].view(-1)[steepest])
    assert abs(expected) > 1e-4
    step = torch.zeros_like(pixels)
    step[1].view(-1)[steepest] = 3e-2
    up, down = (float(model.word_log_probs(pixels + sign * step, PROMPT, ["man"])[1, 0]) for sign in (1, -1))
    assert (up - down) / 6e-2 == pytest.approx(expected, rel=0.05)
    reused = pixels.clone().requires_grad_()
    embeddings = model.encode_images(reused)
    model.word_log_probs(embeddings, PROMPT, ["man"]).sum().backward()
    assert close(reused.grad, gradient)


def test_images_are_encoded_a_batch_at_a_time(monkeypatch, torch, dual):
    batch_sizes = []
    encode_image = dual.network.encode_image
    monkeypatch.setattr(
        dual.network, "encode_image", lambda batch: (batch_sizes.append(len(batch)), encode_image(batch))[1]
    )
    monkeypatch.setattr(dual, "batch_size", 2)
    pixels = torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(9))
    words = ["fish", "skateboard"]
    result = dual.word_log_probs(pixels, PROMPT, words, normalize_over="candidates")
    assert batch_sizes == [2, 2, 1]
    assert close(result[4], dual.word_log_probs(pixels[4:], PROMPT, words, normalize_over="candidates")[0])


def test_several_masks(single, pixels):
    result = single.log_probs(pixels, "a [MASK] is [MASK]")
    assert result.shape == (3, 2, len(tiny_masked.PIECES))
    assert not close(result[:, 0], result[:, 1])
    with pytest.raises(PortrayalError, match=r"same number of \[MASK\].*found 1, 2"):
        single.log_probs(pixels[:2], ["a [MASK]", "a [MASK] is [MASK]"])
    with pytest.raises(PortrayalError, match="found 0"):
        single.log_probs(pixels, "a man")


@pytest.mark.parametrize("kind", ["single", "dual"])
def test_bfloat16_gives_nearly_the_same_predictions(request, torch, tokenizer, pixels, kind):
    from portrayal.models.masked_vlm import TorchMaskedVLM
    from portrayal.models.masked_vlm.single_stream import SingleNetwork

    model = request.getfixturevalue(kind)
    network = SingleNetwork(tiny_masked.vilt()) if kind == "single" else tiny_masked.dual()
    bfloat16_model = TorchMaskedVLM("short", network, tokenizer, precision="bfloat16")
    result, exact = bfloat16_model.log_probs(pixels, PROMPT), model.log_probs(pixels, PROMPT)
    assert result.dtype == torch.float32
    assert 0 < float((result - exact).abs().max()) < 0.5


# -- no image ---------------------------------------------------------------------------------------------------------


def test_without_an_image_vilt_attends_to_no_patch(torch, single, pixels):
    """As if every patch were masked out: then it does not matter which image it is."""
    text_only = single.log_probs(None, [PROMPT, OTHER_PROMPT])
    from portrayal.models.masked_vlm.network import ImageEmbeddings

    embeddings = single.encode_images(pixels[:2])
    without_patches = ImageEmbeddings(
        embeddings.tokens, torch.zeros(embeddings.tokens.shape[:2], dtype=torch.bool)
    )
    assert close(single.log_probs(without_patches, [PROMPT, OTHER_PROMPT]), text_only)
    assert not close(single.log_probs(embeddings, [PROMPT, OTHER_PROMPT]), text_only, 1e-2)


def test_without_an_image_the_dual_stream_skips_cross_attention(dual, pixels):
    """The same as a cross-attention layer that adds 0."""
    text_only = dual.log_probs(None, [PROMPT, OTHER_PROMPT])
    assert not close(dual.log_probs(pixels[:2], [PROMPT, OTHER_PROMPT]), text_only, 1e-2)
    ids = dual.tokenizer.encode(PROMPT)
    import torch

    hidden_states = dual.network.encode_text(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool))
    for layer in dual.network.text_encoder.bert.encoder.layer[2:]:
        hidden_states = layer.attention(hidden_states, hidden_states, None)
        inner = torch.nn.functional.gelu(layer.intermediate.dense(hidden_states))
        hidden_states = layer.output(inner, hidden_states)
    expected = dual.network.word_logits(hidden_states)[0, ids.index(dual.tokenizer.mask_id)].log_softmax(-1)
    assert close(text_only[0, 0], expected)


def test_gray_images_differ_from_no_image(dual):
    assert dual.gray_images(2).shape == (2, 3, 32, 32)
    assert not close(dual.log_probs(dual.gray_images(1), PROMPT), dual.log_probs(None, PROMPT), 1e-2)


# -- words ------------------------------------------------------------------------------------------------------------


def test_a_word_of_a_single_piece_has_the_log_probability_of_its_piece(single, pixels):
    full = single.log_probs(pixels, PROMPT)
    result = single.word_log_probs(pixels, PROMPT, ["woman", "man"])
    columns = [tiny_masked.PIECES.index(word) for word in ("woman", "man")]
    assert close(result, full[:, 0, columns])
    normalized = single.word_log_probs(pixels, PROMPT, ["woman", "man"], normalize_over="candidates").exp()
    assert close(normalized.sum(1), normalized.new_ones(3))
    assert close(normalized[:, 0] / normalized[:, 1], (result[:, 0] - result[:, 1]).exp(), 1e-4)


@pytest.mark.parametrize("kind", ["single", "dual"])
def test_a_word_of_several_pieces_is_a_product_of_conditionals(request, torch, pixels, kind):
    model = request.getfixturevalue(kind)
    skate, board = (tiny_masked.PIECES.index(piece) for piece in ("skate", "##board"))
    result = model.word_log_probs(pixels, "a man is [MASK]", ["fish", "skateboard"])
    first = model.log_probs(pixels, "a man is [MASK] [MASK]")[:, 0, skate]
    second = model.log_probs(pixels, "a man is skate [MASK]")[:, 0, board]
    assert close(result[:, 1], first + second)
    assert close(result[:, 0], model.word_log_probs(pixels, "a man is [MASK]", ["fish"])[:, 0])
    with pytest.raises(PortrayalError, match="several tokens: 'skateboard'"):
        model.word_log_probs(pixels, PROMPT, ["fish", "skateboard"], subword_policy="error")


def test_words_that_cannot_be_queried_are_refused(single, pixels):
    with pytest.raises(PortrayalError, match="'zebra' cannot be written"):
        single.word_log_probs(pixels, PROMPT, ["man", "zebra"])
    with pytest.raises(PortrayalError, match="one \\[MASK\\], and a text has 2"):
        single.word_log_probs(pixels, "a [MASK] [MASK]", ["man"])
    with pytest.raises(PortrayalError, match="at least one word"):
        single.word_log_probs(pixels, PROMPT, [])
    with pytest.raises(PortrayalError, match="must be distinct"):
        single.word_log_probs(pixels, PROMPT, ["man", "Man"], normalize_over="candidates")
    with pytest.raises(PortrayalError, match="Did you mean 'candidates'"):
        single.word_log_probs(pixels, PROMPT, ["man"], normalize_over="candidate")
    with pytest.raises(PortrayalError, match="Did you mean 'error'"):
        single.word_log_probs(pixels, PROMPT, ["man"], subword_policy="errors")
    for special in ("[SEP]", "[MASK]", "[CLS]"):
        with pytest.raises(PortrayalError, match="cannot be written"):
            single.word_log_probs(pixels, PROMPT, [special])
    with pytest.raises(PortrayalError, match=r"word of 2 tokens is longer .* at most 24 tokens, found 25"):
        single.word_log_probs(None, "a [MASK]" + " man" * 20, ["fish", "skateboard"])


def test_a_word_with_another_token_at_the_start_of_a_text_is_refused_there(monkeypatch, single):
    assert single.word_log_probs(None, "[MASK] is in the picture", ["man"]).shape == (1, 1)
    monkeypatch.setattr(type(single.tokenizer), "is_same_at_start", lambda self, word: word != "man")
    with pytest.raises(PortrayalError, match="differently at the start of a text \\('man'\\)"):
        single.word_log_probs(None, "[MASK] is in the picture", ["man"])
    assert single.word_log_probs(None, "the [MASK] is in the picture", ["man"]).shape == (1, 1)


def test_whole_words():
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    words = WordTokenizer(["a", "man", "t-shirt"], max_length=6)
    assert words.encode("A man, a T-shirt!") == [2, 5, 6, 5, 7, 3]
    assert words.encode("a zebra [MASK] [mask]") == [2, 5, 1, 4, 4, 3]
    assert words.encode_caption("a a a a a a a") == [2, 5, 5, 5, 5, 3]
    with pytest.raises(PortrayalError, match="at most 6 tokens, found 9"):
        words.encode_prompt("a a a a a a a")
    assert (words.tokenize_word("MAN"), words.id_to_token(6), len(words)) == ([6], "man", 8)
    for unknown in ("zebra", "[MASK]", "[PAD]"):
        with pytest.raises(PortrayalError, match="not in the model's vocabulary"):
            words.tokenize_word(unknown)
    with pytest.raises(PortrayalError, match="must be distinct"):
        WordTokenizer(["a", "a"])


def test_texts_are_tokenized_as_for_albef():
    from portrayal.models.masked_vlm.vocabulary import AlbefTokenizer

    albef = AlbefTokenizer(tiny_masked.tokenizer(), 6)
    number_of_piece = {piece: index for index, piece in enumerate(tiny_masked.PIECES)}
    words = ["[CLS]", "the", "man", "is", "[MASK]"]
    assert albef.encode("The man is [MASK].") == [number_of_piece[word] for word in words]
    assert albef.encode("The man, is-[MASK]!") == [number_of_piece[word] for word in words]
    assert albef.encode_caption("a a a a a a a a") == [number_of_piece["[CLS]"], *[number_of_piece["a"]] * 5]
    assert albef.tokenize_word("Man.") == [number_of_piece["man"]]


def test_the_words_of_the_paper_in_the_word_pieces_of_bert(shared):
    """Each of the 65 concepts is one piece; other activities are not."""
    import transformers

    from portrayal.models.masked_vlm.vocabulary import AlbefTokenizer

    words = (shared / "text" / "bert_uncased_vocab.txt").read_text(encoding="utf-8").splitlines()
    bert = transformers.BertTokenizer(vocab={word: number for number, word in enumerate(words)})
    albef = AlbefTokenizer(bert, 30)
    assert len(albef) == 30_522
    assert {len(albef.tokenize_word(word)) for word in CONCEPTS.split()} == {1}
    assert [albef.id_to_token(number) for number in albef.tokenize_word("juggling")] == ["jug", "##gling"]
    assert [albef.id_to_token(number) for number in albef.encode("The woman is [MASK].")] == [
        "[CLS]", "the", "woman", "is", "[MASK]",
    ]  # fmt: skip


# -- what is refused --------------------------------------------------------------------------------------------------


def test_pixels_have_a_range_a_size_and_a_text_each(torch, dual, bert, pixels):
    with pytest.raises(PortrayalError, match="values from 0 to 1, got 0 to 255"):
        dual.encode_images(torch.tensor([0.0, 255.0]).repeat(1, 3, 32, 16))
    with pytest.raises(PortrayalError, match="values from 0 to 1, got nan"):
        dual.encode_images(torch.full((1, 3, 32, 32), math.nan))
    with pytest.raises(PortrayalError, match="32 by 32 pixels, got 48 by 32"):
        dual.encode_images(torch.rand(1, 3, 48, 32))
    with pytest.raises(PortrayalError, match="3 images, 2 texts"):
        dual.log_probs(pixels, [PROMPT, PROMPT])
    with pytest.raises(PortrayalError, match="takes no images"):
        bert.log_probs(pixels, PROMPT)
    with pytest.raises(PortrayalError, match="no head that matches"):
        bert.match_log_probs(None, [PROMPT])
    with pytest.raises(PortrayalError, match="at most 24 tokens, found 42"):
        dual.log_probs(None, "a [MASK]" + " man" * 38)


def test_sides_are_multiples_of_a_patch(torch, single):
    with pytest.raises(PortrayalError, match="multiples of 8, got 32 by 36"):
        single.encode_images(torch.rand(1, 3, 32, 36))


# -- images -----------------------------------------------------------------------------------------------------------


def test_images_become_pixels_of_the_models_size(torch, single, dual):
    from portrayal.models.masked_vlm.pixels import preprocess_images

    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8))
    square = dual.preprocess([image, image.resize((7, 7))])
    assert square.shape == (2, 3, 32, 32)
    assert 0 <= float(square.min()) < float(square.max()) <= 1
    wide, tall = single.preprocess([image, image.transpose(Image.Transpose.ROTATE_90)])
    assert (wide.shape, tall.shape) == ((3, 32, 48), (3, 48, 32))
    # The longer side is at most 1333/800 of the shorter, as ViLT has it: here 53, and 48 as a multiple of 8.
    assert single.preprocess([image.resize((400, 50))]).shape == (1, 3, 8, 48)
    # At the published size, what the image processor of Transformers makes of these: height, width.
    large = SimpleNamespace(square=False, image_size=384, patch_size=32)
    for size, expected in (
        ((640, 360), (352, 608)), ((1920, 1080), (352, 608)), ((500, 300), (352, 608)), ((800, 400), (320, 608)),
        ((640, 480), (384, 512)), ((427, 640), (576, 384)), ((30, 30), (384, 384)),
    ):  # fmt: skip
        assert preprocess_images([Image.new("RGB", size)], large)[0].shape[1:] == expected
    own_size = dual.preprocess([image.resize((32, 32))])[0]
    assert close(own_size, torch.tensor(np.asarray(image.resize((32, 32)))).permute(2, 0, 1) / 255)


# -- a function -------------------------------------------------------------------------------------------------------


def test_any_function_is_a_model(torch, pixels):
    from portrayal.models.masked_vlm import FunctionModel, MaskedVLM

    def brightness_log_probs(images, texts):
        brightness = images.mean(dim=(1, 2, 3)) if images is not None else torch.full((len(texts),), 0.5)
        return torch.stack([brightness, 1 - brightness], dim=1).log()

    model: MaskedVLM = FunctionModel(brightness_log_probs, ["day", "night"], image_size=32)
    changed = pixels.clone().requires_grad_()
    result = model.word_log_probs(changed, PROMPT, ["night"])
    assert result[:, 0].exp().tolist() == pytest.approx((1 - pixels.mean(dim=(1, 2, 3))).tolist())
    result.sum().backward()
    assert float(changed.grad.abs().min()) > 0
    assert model.log_probs(None, [PROMPT]).exp().tolist() == [[[0.5, 0.5]]]
    assert model.encode_images(pixels) is pixels
    assert model.preprocess([Image.new("RGB", (9, 9))]).shape == (1, 3, 32, 32)
    with pytest.raises(PortrayalError, match="does not know 'dusk'"):
        model.word_log_probs(pixels, PROMPT, ["dusk"])
    with pytest.raises(PortrayalError, match=r"one \[MASK\] for each text"):
        model.log_probs(pixels, "a man")
    with pytest.raises(PortrayalError, match=r"return a tensor \(3, 2\), got \(3, 1\)"):
        FunctionModel(lambda images, texts: torch.zeros(len(texts), 1), ["a", "b"], 32).log_probs(
            pixels, PROMPT
        )
    with pytest.raises(PortrayalError, match="3 images, 1 texts"):
        model.log_probs(pixels, [PROMPT])
    with pytest.raises(PortrayalError, match="values from 0 to 1"):
        model.log_probs(pixels * 255, PROMPT)
    with pytest.raises(PortrayalError, match="at least one text"):
        model.log_probs(None, [])
    with pytest.raises(PortrayalError, match="named twice"):
        model.word_log_probs(pixels, PROMPT, ["day", "day"])
    with pytest.raises(PortrayalError, match="add up to 2"):
        FunctionModel(lambda images, texts: torch.zeros(len(texts), 2), ["a", "b"], 32).log_probs(
            pixels, PROMPT
        )


# -- by name ----------------------------------------------------------------------------------------------------------


def test_models_of_transformers_load_by_folder(torch, tmp_path, pixels, single, bert):
    from portrayal.models.masked_vlm import load_masked

    result = load_masked(tiny_masked.save(tiny_masked.vilt(), tmp_path / "vilt"), "cpu")
    assert close(result.log_probs(pixels, PROMPT), single.log_probs(pixels, PROMPT))
    assert not result.network.has_match_head
    result = load_masked(tiny_masked.save(tiny_masked.bert(), tmp_path / "bert"), "cpu")
    assert close(result.log_probs(None, [PROMPT]), bert.log_probs(None, [PROMPT]))


def test_a_vilt_for_retrieval_has_no_mlm_head(torch, tmp_path, pixels):
    import transformers

    from portrayal.models.masked_vlm import load_masked

    model = tiny_masked.with_random_weights(
        transformers.ViltForImageAndTextRetrieval(tiny_masked.vilt().config)
    )
    result = load_masked(tiny_masked.save(model, tmp_path), "cpu")
    encoded = tiny_masked.tokenizer()("a man", return_tensors="pt")
    with torch.no_grad():
        score = model(**encoded, pixel_values=(pixels[:1] - 0.5) / 0.5).logits
    assert close(result.match_logits(pixels[:1], ["a man"]), torch.tensor([[0.0, float(score)]]))
    with pytest.raises(PortrayalError, match="no masked-language-model head"):
        result.log_probs(pixels[:1], [PROMPT])


@pytest.mark.parametrize("plain_vocabulary", [False, True])
@pytest.mark.parametrize("extension", ["pth", "safetensors"])
def test_a_checkpoint_of_albef_loads_with_the_tokenizer_beside_it(
    torch, tmp_path, dual, pixels, extension, plain_vocabulary
):
    from safetensors.torch import save_file

    from portrayal.models.masked_vlm import load_masked

    if plain_vocabulary:  # as BERT's vocabulary is published
        (tmp_path / "vocab.txt").write_text("\n".join(tiny_masked.PIECES) + "\n")
    else:
        tiny_masked.tokenizer().save_pretrained(tmp_path)
    weights = {name: value.clone() for name, value in dual.network.state_dict().items()}
    weights["image_queue"] = torch.zeros(8, 4)
    weights["vision_proj_m.weight"] = torch.zeros(8, 64)
    file = tmp_path / f"albef.{extension}"
    torch.save({"model": weights}, file) if extension == "pth" else save_file(weights, file)
    result = load_masked(str(file), "cpu")
    from portrayal.models.masked_vlm import TorchMaskedVLM

    reference = TorchMaskedVLM("same", dual.network, result.tokenizer)
    assert close(result.log_probs(pixels, PROMPT), reference.log_probs(pixels, PROMPT))
    assert close(
        result.match_log_probs(pixels, ["a man"] * 3), reference.match_log_probs(pixels, ["a man"] * 3)
    )
    assert result.tokenizer.encode("The man is [MASK].") == [2, 9, 6, 8, 4]
    larger = load_masked(str(file), "cpu", image_size=64)
    assert larger.log_probs(torch.rand(1, 3, 64, 64), PROMPT).shape == (1, 1, len(tiny_masked.PIECES))


def test_what_is_no_masked_model_is_named(tmp_path):
    from portrayal.models.masked_vlm import load_masked
    from tests.models import tiny_vision

    with pytest.raises(PortrayalError, match="is a vit: expected a masked model"):
        load_masked(tiny_vision.classifier(tmp_path / "vit"), "cpu")
    with pytest.raises(PortrayalError, match="Unknown model of the lab 'lab-dual-hal'"):
        load_masked("lab-dual-hal", "cpu")
    with pytest.raises(PortrayalError, match="has its own image size and tokenizer"):
        load_masked(str(tmp_path / "vit"), "cpu", image_size=96)
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(PortrayalError, match="expected weights alone"):
        load_masked(str(tmp_path / "text.pth"), "cpu")
    (tmp_path / "text.safetensors").write_text("no weights")
    with pytest.raises(PortrayalError, match="expected"):
        load_masked(str(tmp_path / "text.safetensors"), "cpu")
    with pytest.raises(PortrayalError, match="found no file"):
        load_masked(str(tmp_path / "missing.safetensors"), "cpu")


@pytest.mark.parametrize("stream", ["single", "dual"])
def test_a_model_is_saved_and_loaded_again(torch, tmp_path, stream):
    from portrayal.models.masked_vlm import TorchMaskedVLM, load_masked
    from portrayal.models.masked_vlm.folder import save_model
    from portrayal.models.masked_vlm.single_stream import SingleNetwork
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    words = WordTokenizer(tiny_masked.WORDS, max_length=24)
    network = (
        SingleNetwork(tiny_masked.vilt(), has_new_match_head=True, square=True)
        if stream == "single"
        else tiny_masked.dual()
    )
    for weight in network.parameters():
        weight.data = weight.data.half().float()  # as they are kept
    save_model(tmp_path, network, words)
    result = load_masked(str(tmp_path), "cpu")
    before = TorchMaskedVLM("before", network, words)
    pixels = torch.rand(2, 3, 32, 32)
    assert torch.equal(result.log_probs(pixels, PROMPT), before.log_probs(pixels, PROMPT))
    assert torch.equal(
        result.match_log_probs(pixels, ["a man"] * 2), before.match_log_probs(pixels, ["a man"] * 2)
    )
    if stream == "single":  # Transformers opens the folder too
        import transformers

        transformers.utils.logging.disable_progress_bar()
        reloaded = transformers.ViltForMaskedLM.from_pretrained(tmp_path)
        assert close(reloaded.mlm_score.decoder.bias.float(), network.inner.mlm_score.decoder.bias)


BROKEN = {
    "no words": lambda folder, config: (folder / "vocab.txt").unlink(),
    "few words": lambda folder, config: (folder / "vocab.txt").write_text(
        "\n".join(tiny_masked.PIECES[:9]) + "\n"
    ),
    "no letters": lambda folder, config: (folder / "vocab.txt").write_bytes(b"\xff\xfe\x00"),
    "other layers": lambda folder, config: config.update(text_layers=3),
    "no heads": lambda folder, config: config.pop("text_heads"),
    "odd heads": lambda folder, config: config.update(text_heads=7),
    "a text for a number": lambda folder, config: config.update(text_width="wide"),
    "longer texts": lambda folder, config: config["portrayal"].update(max_length=400),
    "no kind": lambda folder, config: config.pop("model_type"),
    "nothing of ours": lambda folder, config: config["portrayal"].clear(),
    "no weights": lambda folder, config: (folder / "model.safetensors").unlink(),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_folder_whose_parts_do_not_fit_is_refused(tmp_path, fault):
    from portrayal.models.masked_vlm import load_masked
    from portrayal.models.masked_vlm.folder import save_model
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer

    save_model(tmp_path, tiny_masked.dual(), WordTokenizer(tiny_masked.WORDS, max_length=24))
    config = json.loads((tmp_path / "config.json").read_text())
    BROKEN[fault](tmp_path, config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(PortrayalError, match="expected"):
        load_masked(str(tmp_path), "cpu")


def test_comparing_is_a_product_of_vectors(torch, dual, single, pixels):
    images, texts = (
        dual.image_features(pixels),
        dual.text_features(["a man", "the woman is in the picture"]),
    )
    assert close(images.norm(dim=1), torch.ones(3))
    assert close(texts.norm(dim=1), torch.ones(2))
    assert close(texts[0], dual.text_features(["a man"])[0])
    with pytest.raises(PortrayalError, match="no separate encoders"):
        single.text_features(["a man"])
    for bad_texts in ([], "a man"):
        with pytest.raises(PortrayalError, match="a list of texts"):
            dual.text_features(bad_texts)


# -- cached image keys and values -------------------------------------------------------------------------------------


def test_image_keys_and_values_are_cached_across_texts(torch, dual):
    pixels = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        embeddings = dual.encode_images(pixels)
        first = dual.log_probs(embeddings, PROMPT)
        n_cached = len(embeddings._cache)
        assert (
            n_cached == dual.network.shape.text_layers - dual.network.shape.fusion_layer
        )  # of each layer with cross-attention
        second = dual.log_probs(embeddings, OTHER_PROMPT)
        assert len(embeddings._cache) == n_cached
        assert torch.allclose(first, dual.log_probs(dual.encode_images(pixels), PROMPT), atol=1e-6)
        assert torch.allclose(second, dual.log_probs(dual.encode_images(pixels), OTHER_PROMPT), atol=1e-6)
        assert torch.allclose(
            dual.log_probs(embeddings[torch.tensor([2, 0])], OTHER_PROMPT), second[[2, 0]], atol=1e-6
        )
    assert embeddings[:] is embeddings
    assert embeddings[:2] is not embeddings


def test_with_gradients_nothing_is_cached(torch, dual):
    pixels = torch.rand(2, 3, 32, 32, requires_grad=True)
    embeddings = dual.encode_images(pixels)
    for text in (PROMPT, OTHER_PROMPT):
        dual.log_probs(embeddings, text).sum().backward(retain_graph=True)
    assert not embeddings._cache


def test_a_dual_network_encodes_images_alike_in_training_and_evaluation(torch, dual):
    """Both ways to take patches and to attend are the same sums in another order."""
    pixels = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    network = tiny_masked.dual(dropout=0.0)
    with torch.no_grad():
        evaluating = network.eval().encode_image(pixels).tokens
        training = network.train().encode_image(pixels).tokens
    assert torch.allclose(evaluating, training, atol=1e-5)
    assert float(evaluating.std()) > 0.1
