"""Models that metrics use. They work on plain arrays, so that they run on a machine that has little else installed."""
