"""Object distance: similarity of objects to the words for each group."""
