"""Finding things on a page."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def number_of(tab: Page, what: str, column: str) -> Locator:
    """The first number in a row about `what` under this heading."""
    table = tab.locator("table", has=tab.get_by_role("columnheader", name=column, exact=True)).first
    place = table.locator("thead th").all_inner_texts().index(column)
    row = table.locator(f"tr[data-what*={what!r}]").first
    return row.locator("th, td").nth(place).locator("button")
