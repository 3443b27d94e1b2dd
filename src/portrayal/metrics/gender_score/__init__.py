"""Gender Score: how strongly a caption's group and the objects in its image go together."""
