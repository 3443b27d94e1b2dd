"""A synthetic world with planted bias: studies whose truth is known."""

from portrayal.lab.captioners import DEMO_CAPTIONERS, Captioner
from portrayal.lab.make import make_study

__all__ = ["DEMO_CAPTIONERS", "Captioner", "make_study"]
