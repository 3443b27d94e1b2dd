"""The charts of a page in a browser."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def all_drawn(tab: Page) -> Locator:
    """The places of all charts, each of them drawn, as before printing."""
    tab.wait_for_selector("html[data-library]", state="attached")
    tab.wait_for_selector("html[data-charts]", state="attached")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    plots = tab.locator(".plot")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"  # paper is
    assert plots.locator("svg").count() == plots.count()
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    tab.wait_for_selector("html[data-charts]", state="attached")
    return plots
