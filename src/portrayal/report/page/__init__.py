"""The page: one self-contained HTML file in which every number opens its evidence."""
