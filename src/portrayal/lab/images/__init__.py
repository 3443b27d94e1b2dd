"""Images of the lab's scenes, rendered procedurally."""

from portrayal.lab.images.image import SIZE, appearance, counterfactual, draw, person_boxes
from portrayal.lab.images.sheet import contact_sheet, world_rows

__all__ = ["SIZE", "appearance", "contact_sheet", "counterfactual", "draw", "person_boxes", "world_rows"]
