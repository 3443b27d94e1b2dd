"""Names that the rows of CounterBias share."""

ALL = "all"  # templates
BOTH, PICTURE, TEXT = "b@v-l", "b@v", "b@l"
BIASES = (BOTH, PICTURE, TEXT)
