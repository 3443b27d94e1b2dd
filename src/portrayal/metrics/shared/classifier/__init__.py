"""Guessing a person's group from a caption: what is read and who is tested, for metrics that ask what captions leak."""
