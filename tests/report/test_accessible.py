"""Accessibility of the pages: axe-core reports no violations, light or dark, wide or narrow."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import pytest
from playwright.sync_api import expect

import portrayal
from portrayal.comparing import compare
from portrayal.lab.folder import LabRecipe, write_lab
from portrayal.report import thumbnail_images, write_page
from portrayal.report.live import ImageFolder
from portrayal.report.page.comparison import write_comparison
from portrayal.study.thumbnails import thumbnails
from tests.report.drawn import rendered_charts
from tests.report.test_live import served

SCHEMES = ("light", "dark")
WIDTHS = (1100, 360)


@pytest.fixture(scope="module")
def axe() -> str:
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def audit_folder(tmp_path_factory):
    """A folder with the results and the page of a small study with images."""
    folder = tmp_path_factory.mktemp("audited")
    study = write_lab(LabRecipe(scenes=60, image_size=64), folder / "study")
    results = portrayal.audit(study, quick=True)
    results = replace(results, thumbnails=thumbnails(study.image_files, thumbnail_images(results)))
    results.save(folder)
    write_page(results, folder)
    return folder


@pytest.fixture(params=[(scheme, width) for scheme in SCHEMES for width in WIDTHS], ids=str)
def tab(browser, request):
    scheme, width = request.param
    # axe-core is put into the page from outside, which the page's own policy forbids.
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    yield context.new_page()
    context.close()


def violations(tab, axe):
    tab.evaluate(axe)
    axe_violations = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (violation["id"], violation["impact"], violation["nodes"][0]["html"]) for violation in axe_violations
    ]


def test_audit_page_has_no_violations(tab, axe, audit_folder):
    tab.goto((audit_folder / "index.html").as_uri())
    tab.wait_for_selector("html[data-loaded]")
    tab.wait_for_selector("html[data-charts]", state="attached")
    tab.locator(".plot").first.scroll_into_view_if_needed()
    tab.locator(".plot svg").first.wait_for()
    assert violations(tab, axe) == []
    tab.locator("td button").first.click()
    assert violations(tab, axe) == []
    tab.locator("#evidence-table thead button").nth(1).click()  # sorted
    assert violations(tab, axe) == []
    tab.locator("button.image").first.click()  # one image, side by side
    assert violations(tab, axe) == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_comparison_page_has_no_violations(tab, axe, audit_folder, tmp_path):
    results = portrayal.Results.load(audit_folder)
    faithful, stereotyping = (
        replace(results, measurements=tuple(m for m in results.measurements if m.system == system))
        for system in ("faithful", "stereotyping")
    )
    tab.goto(write_comparison(compare(faithful, stereotyping), tmp_path).as_uri())
    rendered_charts(tab)
    assert violations(tab, axe) == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_live_page_has_no_violations(tab, axe, audit_folder):
    with served(audit_folder, ImageFolder(audit_folder, {})) as server:
        tab.goto(server.address)
        expect(tab.locator("#rows li").first).to_be_visible()
        assert violations(tab, axe) == []
        tab.locator("#rows li button").first.click()
        tab.wait_for_timeout(500)
        assert violations(tab, axe) == []


def test_violations_are_detected(tab, axe):
    """An image without alternative text is reported."""
    tab.set_content("<html lang=en><title>t</title><main><h1>t</h1><img src=x></main>")
    assert [name for name, _, _ in violations(tab, axe)] == ["image-alt"]
