"""Lists that a search gives: reading them, what they are held against, and what chance would make of them."""
