"""Locators of elements of a page."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def number_button(tab: Page, row_label: str, column: str) -> Locator:
    """Button of the first number of `column` in a row whose label contains `row_label`."""
    table = tab.locator("table", has=tab.get_by_role("columnheader", name=column, exact=True)).first
    column_index = table.locator("thead th").all_inner_texts().index(column)
    row = table.locator(f"tr[data-what*={row_label!r}]").first
    return row.locator("th, td").nth(column_index).locator("button")
