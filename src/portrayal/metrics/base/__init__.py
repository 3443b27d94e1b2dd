"""What every metric is made of: its card, its options, its preconditions and its results."""
