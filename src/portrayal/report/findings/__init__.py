"""The sentences that an audit or a comparison concludes, and the tests behind them."""
