"""Live page in a real browser: search, opening and paging."""

from __future__ import annotations

import re

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from portrayal.report.live import Guard, ImageFolder
from portrayal.results import EVIDENCE_SCHEMA, Measurement, Results
from tests.report.test_live import encoded_image, served
from tests.report.test_page import HOSTILE

WRONG = Measurement("error", "wrong", system="<i>sys</i>", attribute="gender", value=0.25, n=120)
ODD = Measurement("word-odds", "z", system="other", attribute="age", item="<b>word</b>", value=2.0, n=6)
NONE = Measurement("error", "ratio", system="other", attribute="gender", reason="nobody was <b>named</b>")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    rows = [(WRONG.id, f"image {n}", "one" if n % 2 else "two", f"caption {n:03}", "{}") for n in range(120)]
    rows += [
        (ODD.id, f"<b>{n}</b>", "other", caption, '{"words": ["man", 3]}')
        for n, caption in enumerate(HOSTILE)
    ]
    folder = tmp_path_factory.mktemp("results")
    unrelated = [Measurement("many", "t", item=f"i{n}", value=float(n)) for n in range(60)]
    evidence = pl.DataFrame(rows, schema=EVIDENCE_SCHEMA, orient="row")
    Results((WRONG, ODD, NONE, *unrelated), evidence).save(folder)
    return folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    (folder / "0.png").write_bytes(encoded_image(size=300))
    (folder / "2.png").write_bytes(b"no picture")
    return ImageFolder(folder, {f"image {n}": folder / f"{n}.png" for n in (0, 2)})


@pytest.fixture
def tab(browser, results, images):
    """The page; fails on any console message and on requests to elsewhere."""
    complaints: list[str] = []
    with served(results, images) as server:
        context = browser.new_context()
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                complaints.append(request.url) if not request.url.startswith(server.address) else None
            ),
        )
        page.goto(server.address)
        expect(page.locator("#rows li")).to_have_count(50)
        yield page
        context.close()
    missing = re.compile("Failed to load resource: .* 404")  # the file that is no image
    assert [complaint for complaint in complaints if not missing.match(complaint)] == []


def captions(tab: Page) -> list[str]:
    return tab.locator("#captions .caption").evaluate_all("all => all.map(element => element.textContent)")


def test_measurements_are_searched_filtered_and_paged(tab):
    tab.locator("#list-pages button", has_text="›").click()
    expect(tab.locator("#list-count")).to_have_text("51–63 of 63 measurements")
    tab.locator("#find [name=search]").fill("error")
    expect(tab.locator("#rows li")).to_have_count(2)
    tab.locator("#find [name=term]").select_option("ratio")
    expect(tab.locator("#rows .number")).to_have_text(["–"])
    tab.locator("#clear").click()
    expect(tab.locator("#rows li")).to_have_count(50)
    tab.locator("#find [name=sort]").select_option("value down")
    expect(tab.locator("#rows .what").first).to_have_text("many · t · i59")


def test_evidence_is_opened_paged_searched_and_sorted(tab):
    tab.locator("#rows button").first.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("#captions li")).to_have_count(50)
    expect(tab.locator("#evidence-title")).to_have_text("error · wrong · <i>sys</i> · all people")
    tab.locator("#evidence-pages button", has_text="›").click()
    expect(tab.locator("#captions .caption").first).to_have_text("caption 050")
    tab.locator("#evidence-pages button", has_text="»").click()
    expect(tab.locator("#captions li")).to_have_count(20)
    tab.locator("#narrow [name=find]").fill("CAPTION 01")
    expect(tab.locator("#captions li")).to_have_count(10)
    assert tab.locator("#captions mark").first.inner_text() == "caption 01"
    tab.locator("#narrow [name=of]").select_option("one")
    expect(tab.locator("#captions li")).to_have_count(5)
    tab.locator("#narrow [name=by]").select_option("image")
    expect(tab.locator("#captions .caption").first).to_have_text("caption 011")
    tab.reload()  # the address holds the state
    expect(tab.locator("#captions li")).to_have_count(5)
    tab.go_back()
    expect(tab.locator("#nothing")).to_be_visible()


def test_hostile_captions_are_shown_as_text_and_run_nothing(tab):
    tab.locator("#rows button", has_text="word-odds").click()
    expect(tab.locator("#captions li")).to_have_count(len(HOSTILE))
    assert captions(tab) == HOSTILE
    assert tab.locator("#captions b, #captions script, #evidence-title b, #rows i").count() == 0
    assert tab.evaluate("window.hacked") is None


def test_undefined_number_has_its_reason(tab):
    tab.locator("#rows button", has_text="ratio").click()
    expect(tab.locator("#evidence-value")).to_have_text("Undefined: nobody was <b>named</b>")
    expect(tab.locator("#evidence-count")).to_have_text("No caption was kept for this number.")


def test_images_open_in_full_size(tab):
    tab.locator("#rows button").first.click()
    shown = tab.locator("#captions .thumbnail")
    expect(shown).to_have_count(1)  # the file that is no image is removed
    shown.click()
    expect(tab.locator("#large")).to_be_visible()
    assert (
        tab.locator("#large-image").evaluate("image => image.decode().then(() => image.naturalWidth)") == 300
    )
    tab.keyboard.press("Escape")
    expect(tab.locator("#large")).not_to_be_visible()


def test_narrow_screen_shows_one_panel_at_a_time(tab):
    tab.set_viewport_size({"width": 360, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.locator("#rows button").nth(1).click()
    expect(tab.locator("#captions li")).to_have_count(len(HOSTILE))
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    expect(tab.locator("#list")).not_to_be_visible()
    tab.locator("#back").click()
    expect(tab.locator("#rows button").nth(1)).to_be_focused()


def test_token_is_removed_from_the_address(browser, results):
    with served(results, guard=Guard.for_remote("127.0.0.1")) as server:
        context = browser.new_context()
        tab = context.new_page()
        address = f"http://127.0.0.1:{server.port}/"
        assert tab.goto(address).status == 401
        tab.goto(f"{address}?token={server.guard.token}")
        expect(tab.locator("#rows li")).to_have_count(50)
        assert "token" not in tab.url
        assert tab.evaluate("document.cookie") == ""
        tab.reload()
        expect(tab.locator("#rows li")).to_have_count(50)
        context.close()
