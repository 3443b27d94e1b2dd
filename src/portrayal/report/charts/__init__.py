"""Charts of the page and of exports, as Vega-Lite specifications."""
