"""Only the person changes: the other picture (an attack, or one that is given) and the other text (a word swap)."""
