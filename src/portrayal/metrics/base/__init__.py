"""Building blocks of every metric: card, options, preconditions and result rows."""
