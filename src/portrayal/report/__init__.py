"""Results as CSV, as Markdown, and as one self-contained HTML page."""

from portrayal.report.page.page import thumbnail_images, write_page
from portrayal.report.tables.csv import to_csv
from portrayal.report.tables.markdown import to_markdown

__all__ = ["thumbnail_images", "to_csv", "to_markdown", "write_page"]
