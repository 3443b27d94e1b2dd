"""How the numbers of CounterBias are put together from what a model says of each picture."""
