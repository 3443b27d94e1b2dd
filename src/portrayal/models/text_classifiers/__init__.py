"""Text classifiers that predict a group from a caption: logistic regression, LSTM, pretrained encoder."""
