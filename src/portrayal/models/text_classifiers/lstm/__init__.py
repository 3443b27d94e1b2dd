"""The published LSTM classifier: many of them trained as one on a GPU, one after the other on a processor."""

from portrayal.models.text_classifiers.lstm.train import train

__all__ = ["train"]
