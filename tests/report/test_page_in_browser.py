"""Page of an audit in a real browser: opened from disk, with the network off."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from playwright.sync_api import Locator, Page, expect

import portrayal
from portrayal.lab import make_study
from portrayal.lab.folder import LabRecipe, write_lab
from portrayal.metrics import METRICS
from portrayal.report import thumbnail_images, write_page
from portrayal.results import Measurement, Results
from portrayal.study.thumbnails import thumbnails
from tests.conftest import small_study
from tests.report.finding import number_button
from tests.report.test_page import HOSTILE


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens the page of a study; fails on any console message or request."""
    context = browser.new_context(offline=True)
    complaints: list[str] = []

    def open_tab(study: portrayal.Study) -> Page:
        results = portrayal.audit(study, quick=True)
        thumbnail_table = thumbnails(study.image_files, thumbnail_images(results))
        path = write_page(replace(results, thumbnails=thumbnail_table), tmp_path)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request",
            lambda request: (
                complaints.append(request.url)
                if request.url != path.as_uri()
                and not request.url.startswith(("data:image/webp;", "blob:null/"))
                else None
            ),
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-loaded]")
        return tab

    yield open_tab
    context.close()
    assert complaints == []


def open_evidence(tab: Page, button: Locator) -> None:
    """Press the button, and wait for the evidence.

    The keyboard is used, since a click may miss: charts are drawn, and the page may move, when they come into view.
    """
    button.press("Enter")
    expect(tab.locator("#evidence")).to_be_visible()


def test_every_number_opens_its_evidence(open_page):
    tab = open_page(make_study(scenes=80))
    buttons = tab.locator("td button")
    assert buttons.count() > 50
    for index in range(0, buttons.count(), buttons.count() // 20):
        open_evidence(tab, buttons.nth(index))
        assert tab.locator("#evidence-table tbody tr").count() > 0
        assert tab.locator("#evidence-title").inner_text().endswith(buttons.nth(index).inner_text())
        tab.keyboard.press("Escape")
        assert not tab.locator("#evidence").is_visible()


def test_evidence_shows_its_image(open_page, tmp_path):
    tab = open_page(write_lab(LabRecipe(scenes=40, image_size=96), tmp_path / "study"))
    assert tab.locator(".examples img").count() == 6
    for chart in tab.locator(".chart .plot").all():  # bias against quality, by attribute
        chart.scroll_into_view_if_needed()
        chart.locator("svg").wait_for()
        height, reserved = chart.bounding_box()["height"], int(chart.get_attribute("data-height"))
        assert abs(height - reserved) <= 8  # what is below hardly moves when it is drawn
    open_evidence(tab, tab.locator("td button").first)
    images = tab.locator("#evidence-table img")
    assert images.count() == tab.locator("#evidence-table tbody tr").count()
    assert images.evaluate_all("all => all.every(image => image.complete && image.naturalWidth === 72)")


def test_matched_words_are_marked(open_page):
    tab = open_page(small_study([("1", "male", "a Man's hat"), ("2", "female", "a woman")]))
    open_evidence(tab, tab.locator("td button").first)
    assert tab.locator("#evidence mark").all_inner_texts() == ["Man", "woman"]


def test_hostile_captions_are_shown_as_text_and_run_nothing(open_page):
    study = small_study(
        [(f"<b>{n}</b>", ("male", "female")[n % 2], caption) for n, caption in enumerate(HOSTILE)]
    )
    tab = open_page(study)
    shown = set()
    for button in tab.locator("td button").all():
        open_evidence(tab, button)
        shown |= set(
            tab.locator("#evidence .caption").evaluate_all("all => all.map(element => element.textContent)")
        )
        tab.keyboard.press("Escape")
    assert shown == set(HOSTILE)
    assert tab.evaluate("window.hacked") is None


def test_a_narrow_screen_does_not_scroll_sideways(open_page):
    tab = open_page(make_study(scenes=40))
    tab.set_viewport_size({"width": 360, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_captions_show_word_contributions(open_page):
    tab = open_page(make_study(scenes=400))
    open_evidence(tab, number_button(tab, "all people", "lic_m"))
    words = tab.locator("#evidence-table tbody tr").first.locator(".parts span")
    assert words.count() > 3
    assert len(set(words.evaluate_all("all => all.map(element => element.style.backgroundColor)"))) > 1
    assert tab.locator("#evidence-legend").is_visible()
    tab.keyboard.press("Escape")
    open_evidence(tab, number_button(tab, "all people", "wrong"))
    assert not tab.locator("#evidence-legend").is_visible()


def test_a_finding_opens_its_captions(open_page):
    tab = open_page(make_study(scenes=80))
    tab.locator(".verdict details").evaluate_all("all => all.forEach((details) => (details.open = true))")
    finding = tab.locator(".verdict li button").first
    sentence = finding.locator("xpath=..").inner_text()
    open_evidence(tab, finding)
    assert tab.locator("#evidence-table tbody tr").count() > 0
    assert sentence.startswith(tab.locator("#evidence-title").inner_text())


def test_the_reader_chooses_light_or_dark(open_page):
    tab = open_page(small_study([("1", "male", "a man"), ("2", "female", "a woman")]))
    background = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(background)
    tab.locator("#theme").click()
    dark = tab.evaluate(background)
    assert light != dark
    assert tab.locator("#theme").inner_text().lower() == "light"
    tab.locator("#theme").click()
    assert tab.evaluate(background) == light


def test_the_results_can_be_saved_from_the_page(open_page, tmp_path):
    tab = open_page(small_study([("1", "male", "a man"), ("2", "female", "a woman")]))
    with tab.expect_download() as download:
        tab.locator("#save").click()
    saved = tmp_path / "saved.json"
    download.value.save_as(saved)
    assert json.loads(saved.read_text())["schema"] == "portrayal.results/1"


def test_no_table_is_cut_off_in_a_window_of_1280_pixels(browser, tmp_path):
    """Twelve numbers with intervals, and a table with a column for each of seven systems."""
    fields = {"attribute": "gender", "unit": "percent", "n": 10780, "value": 48.6, "low": 47.1, "high": 50.0}
    terms = [Measurement("lic", f"lic_m_{number}", system="a_captioner_ft", **fields) for number in range(12)]
    harms = [
        Measurement("harms", "demeaning.words", system=f"snowboard_baseline_{name}", settings={"stage": "4"}, **fields)
        for name in "abcdefg"
    ]  # fmt: skip
    cards = {"harms": METRICS["harms"].card.as_dict()}
    path = write_page(Results((*terms, *harms), provenance={"cards": cards}), tmp_path)
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(path.as_uri())
    count_cut_off = "all => all.filter((element) => element.scrollWidth > element.clientWidth + 1).length"
    assert tab.locator(".scroll").count() > 1
    assert tab.locator(".scroll").evaluate_all(count_cut_off) == 0
    tab.close()
