"""A synthetic world with planted bias: studies whose truth is known."""

from portrayal.lab.annotators import Annotators
from portrayal.lab.captioners import DEMO_CAPTIONERS, FAITHFUL, Captioner
from portrayal.lab.make import make_study
from portrayal.lab.world import Scene, World, make_scenes

__all__ = [
    "DEMO_CAPTIONERS",
    "FAITHFUL",
    "Annotators",
    "Captioner",
    "Scene",
    "World",
    "make_scenes",
    "make_study",
]
