"""Charts of a page in a browser."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def rendered_charts(tab: Page) -> Locator:
    """Render all charts, as before printing, and return their containers."""
    tab.wait_for_selector("html[data-library]", state="attached")
    tab.wait_for_selector("html[data-charts]", state="attached")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    plots = tab.locator(".plot")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"  # a print is light
    assert plots.locator("svg").count() == plots.count()
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    tab.wait_for_selector("html[data-charts]", state="attached")
    return plots
