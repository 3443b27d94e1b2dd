"""Language-model and sentence-encoder scores, which the Gender Score family of metrics shares."""
