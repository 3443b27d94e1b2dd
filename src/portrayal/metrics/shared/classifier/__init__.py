"""The classifier ("attacker") that LIC and leakage share: it predicts a person's group from captions or
labels.
"""
