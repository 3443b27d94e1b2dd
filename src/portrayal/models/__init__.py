"""Models that metrics use. They work on plain arrays and need few other packages."""
