"""The charts of pages and exports, as Vega-Lite specifications."""
