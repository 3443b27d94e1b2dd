"""What a type checker sees of the public functions; `make lint` checks this file, and no test runs it.

A call that a checker must refuse bears an ignore comment with the reason; mypy reports comments that are not needed.
"""

from typing import assert_type

import portrayal
from portrayal.metrics import METRICS, Metric, lic, quality
from portrayal.results import Results

study = portrayal.read_study("my-study")

assert_type(lic(study, split="paper", seeds=[1, 2], attribute="gender"), Results)
assert_type(quality(study, systems=["oscar"]), Results)
assert_type(METRICS["lic"], Metric)

lic(study, folds="ten")  # type: ignore[arg-type]
lic(study, split="random")  # type: ignore[arg-type]
lic(study, fold=10)  # type: ignore[call-arg]
lic("my-study")  # type: ignore[arg-type]
