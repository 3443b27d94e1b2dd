"""Dry runs of metrics: a metric's own code checks its preconditions, and nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from portrayal.errors import Undefined

_dry_run: ContextVar[bool] = ContextVar("dry_run", default=False)


class _PreconditionsMet(Exception):
    """Ends a dry run."""


def preconditions_met() -> None:
    """Ends a dry run. A metric calls this after its last check and before its first computation."""
    if _dry_run.get():
        raise _PreconditionsMet


def unmet_precondition(compute: Callable[[], object]) -> str | None:
    """The reason why `compute` cannot run, or None where its preconditions hold.

    >>> unmet_precondition(lambda: preconditions_met())
    """
    token = _dry_run.set(True)
    try:
        compute()
    except _PreconditionsMet:
        return None
    except Undefined as reason:
        return str(reason)
    finally:
        _dry_run.reset(token)
    raise AssertionError("A metric was computed in a dry run: it does not call preconditions_met().")
