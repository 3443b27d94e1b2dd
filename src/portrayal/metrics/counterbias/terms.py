"""Names that the measurements of CounterBias share."""

ALL = "all"  # templates
BOTH, IMAGE, TEXT = "b@v-l", "b@v", "b@l"
BIASES = (BOTH, IMAGE, TEXT)
