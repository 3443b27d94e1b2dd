"""Results made readable: CSV, Markdown, and one self-contained page."""

from portrayal.report.page import write_page
from portrayal.report.text import to_csv, to_markdown

__all__ = ["to_csv", "to_markdown", "write_page"]
