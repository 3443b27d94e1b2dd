"""How like people's captions a caption is: the published scores, computed for a whole corpus at once."""
