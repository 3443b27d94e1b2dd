"""Pictures of the lab's scenes, drawn by rule."""

from portrayal.lab.images.image import SIZE, counterfactual, draw, looks, person_boxes
from portrayal.lab.images.sheet import contact_sheet, world_rows

__all__ = ["SIZE", "contact_sheet", "counterfactual", "draw", "looks", "person_boxes", "world_rows"]
