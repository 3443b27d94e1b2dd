"""What several metrics share: mentions, co-occurrence, the text classifier, language-model scores."""
