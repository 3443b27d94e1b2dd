"""Findings: the sentences an audit or a comparison may say, and the comparisons behind them."""
