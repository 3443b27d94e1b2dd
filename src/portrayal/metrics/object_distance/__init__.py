"""Object distance: how close objects are to the words for each group."""
