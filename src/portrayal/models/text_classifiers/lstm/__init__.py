"""The published LSTM classifier: many networks trained together on a GPU, or one after the other on a CPU."""

from portrayal.models.text_classifiers.lstm.train import train

__all__ = ["train"]
