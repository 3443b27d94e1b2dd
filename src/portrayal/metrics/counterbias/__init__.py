"""CounterBias: bias of a masked vision-language model, measured with counterfactual images and texts."""
