"""LIC: what masked captions reveal about the group of the person shown."""
