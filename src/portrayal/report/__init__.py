"""Results made readable: CSV, Markdown, and one self-contained page."""

from portrayal.report.page.page import pictured_images, write_page
from portrayal.report.tables.text import to_csv, to_markdown

__all__ = ["pictured_images", "to_csv", "to_markdown", "write_page"]
