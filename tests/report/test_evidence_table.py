"""Evidence table of a number in a browser: search, filters, sorting, paging, and one image side by side."""

from __future__ import annotations

import base64
import io
import json

import polars as pl
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from portrayal.report import write_page
from portrayal.results import EVIDENCE_SCHEMA, THUMBNAILS_SCHEMA, Measurement, Results
from tests.report.finding import number_button
from tests.report.test_page import HOSTILE

SCORES = [10, 9, 2.5, -1, 100, 0.05]


def evidence_rows(m: Measurement, count: int, system: str = "camera") -> list[dict[str, str]]:
    return [
        {
            "id": m.id,
            "image_id": f"image {n}",
            "system": system,
            "caption": f"{system} sees a {('dog', 'cat', 'bird')[n % 3]} number {n}",
            "detail": json.dumps(
                {
                    "guessed": ("male", "female")[n % 2],
                    "score": SCORES[n % 6] + n // 6 * 1000,
                    "words": ["dog"],
                    "people": [f"a person tells at some length what is in picture {n}", "another one says more"],
                    **({"seldom": n} if n % 4 else {}),
                }
            ),
        }
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens the page of two systems with 60 captions each; fails on any console message."""
    complaints: list[str] = []
    contexts = []

    def open_tab(results: Results | None = None, width: int = 1200) -> Page:
        if results is None:
            measurements = [Measurement("m", "t", system=name, value=0.5) for name in ("camera", "robot")]
            rows = [row for m in measurements for row in evidence_rows(m, 60, m.system)]
            results = Results(tuple(measurements), pl.DataFrame(rows, schema=EVIDENCE_SCHEMA))
        context = browser.new_context(offline=True, viewport={"width": width, "height": 800})
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(write_page(results, tmp_path).as_uri())
        tab.wait_for_selector("html[data-loaded]")
        tab.locator("td button").first.click()
        expect(tab.locator("#evidence-table tbody tr").first).to_be_visible()
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    assert complaints == []


def column(tab: Page, name: str) -> list[str]:
    return tab.locator(f'#evidence-table tbody [data-label="{name}"]').all_inner_texts()


def heading(tab: Page, name: str):
    return tab.get_by_role("columnheader", name=name, exact=True)


def test_a_column_for_each_fact(open_page):
    tab = open_page()
    names = tab.locator("#evidence-table thead th").all_inner_texts()
    assert names == ["image", "caption", "guessed", "score", "seldom", "more"]
    first = tab.locator("#evidence-table tbody tr").first
    assert first.get_by_role("rowheader").inner_text() == "image 0"
    assert first.locator("mark").all_inner_texts() == ["dog"]
    first.locator("summary").click()
    assert (
        "at some length what is in picture 0, another one says more" in first.locator("details").inner_text()
    )
    assert tab.locator("#evidence-count").inner_text() == "60 captions"
    assert not tab.locator("#evidence-more").is_visible()


def test_numbers_are_sorted_as_numbers_and_missing_values_come_last(open_page):
    tab = open_page()
    assert heading(tab, "score").get_attribute("aria-sort") == "none"
    heading(tab, "score").get_by_role("button").click()
    assert heading(tab, "score").get_attribute("aria-sort") == "ascending"
    assert column(tab, "score")[:7] == ["-1", "0.05", "2.5", "9", "10", "100", "999"]
    heading(tab, "score").get_by_role("button").click()
    assert heading(tab, "score").get_attribute("aria-sort") == "descending"
    assert column(tab, "score")[:2] == ["9100", "9010"]
    for _ in range(2):
        heading(tab, "seldom").get_by_role("button").click()
        assert heading(tab, "score").get_attribute("aria-sort") == "none"
        assert "" not in column(tab, "seldom")
    assert column(tab, "seldom")[:2] == ["59", "58"]
    heading(tab, "image").get_by_role("button").click()
    assert column(tab, "image")[:3] == ["image 0", "image 1", "image 2"]


def test_keys_sort_turn_pages_and_close(open_page):
    tab = open_page()
    heading(tab, "caption").get_by_role("button").focus()
    tab.keyboard.press("Enter")
    assert heading(tab, "caption").get_attribute("aria-sort") == "ascending"
    assert column(tab, "caption")[0] == "camera sees a bird number 2"
    assert tab.evaluate("document.activeElement.textContent") == "caption"
    tab.locator("#evidence-next").focus()
    for expected in ("26–50 of 60", "51–60 of 60", "51–60 of 60"):
        tab.keyboard.press("Enter")
        assert tab.locator("#evidence-position").inner_text() == expected
    assert tab.evaluate("document.activeElement.id") == "evidence-next"
    tab.keyboard.press("Escape")
    expect(tab.locator("#evidence")).not_to_be_visible()
    assert tab.evaluate("document.activeElement === document.querySelector('td button')")


def test_pages_have_25_rows_and_filters_begin_at_the_first(open_page):
    tab = open_page()
    assert len(column(tab, "caption")) == 25
    assert tab.locator("#evidence-previous").get_attribute("aria-disabled") == "true"
    tab.locator("#evidence-next").click()
    tab.locator("#evidence-next").click()
    assert len(column(tab, "caption")) == 10
    assert tab.locator("#evidence-next").get_attribute("aria-disabled") == "true"
    select = tab.get_by_label("guessed")
    assert select.locator("option").all_inner_texts() == ["all", "female (30)", "male (30)"]
    assert (
        tab.locator("#evidence-filters select").count() == 1
    )  # a fact with many different values has no filter
    select.select_option("female (30)")
    assert tab.locator("#evidence-position").inner_text() == "1–25 of 30 found (60 in all)"
    assert set(column(tab, "guessed")) == {"female"}
    tab.locator("#evidence-search").fill("BIRD")
    assert all("bird" in caption for caption in column(tab, "caption"))
    assert tab.locator("#evidence-position").inner_text() == "1–10 of 10 found (60 in all)"
    assert not tab.locator("#evidence-next").is_visible()
    tab.locator("#evidence-search").fill("in picture 59")  # also searches the facts under "more"
    assert column(tab, "image") == ["image 59"]
    tab.locator("#evidence-search").fill("no such thing")
    assert tab.locator("#evidence-position").inner_text() == "0 found (60 in all)"
    tab.keyboard.press("Escape")
    tab.keyboard.press("Escape")  # the first one empties the search
    tab.locator("td button").first.click()
    assert tab.locator("#evidence-position").inner_text() == "1–25 of 60"


def test_one_image_by_source_and_back(open_page):
    tab = open_page()
    heading(tab, "image").get_by_role("button").click()
    tab.locator("#evidence-next").click()
    tab.get_by_role("button", name="image 30", exact=True).click()
    assert tab.locator("#evidence-title").inner_text() == "Captions of image image 30 in this page"
    rows = tab.locator("#image-captions tbody tr")
    assert [row.inner_text().split("\t") for row in rows.all()] == [
        ["camera", "camera sees a dog number 30"],
        ["robot", "robot sees a dog number 30"],
        ["human", "a person tells at some length what is in picture 30"],
        ["another one says more"],
    ]
    assert not tab.locator("#evidence-table").is_visible()
    assert tab.evaluate("document.activeElement.id") == "evidence-back"
    tab.keyboard.press("Enter")
    assert tab.locator("#evidence-position").inner_text() == "26–50 of 60"
    assert tab.locator("#evidence-title").inner_text() == "camera · all people · t = 0.500"
    assert tab.evaluate("document.activeElement.textContent") == "image 30"


def test_page_counts_captions_left_out(open_page):
    m = Measurement("m", "t", system="camera", value=0.5)
    tab = open_page(Results((m,), pl.DataFrame(evidence_rows(m, 1234), schema=EVIDENCE_SCHEMA)))
    assert tab.locator("#evidence-count").inner_text() == "200 of 1,234 captions, evenly sampled."
    assert (
        tab.locator("#evidence-more").inner_text()
        == "All are in evidence.parquet; portrayal view shows them."
    )
    assert tab.locator("#evidence-position").inner_text() == "1–25 of 200"
    assert column(tab, "image")[:3] == ["image 0", "image 7", "image 13"]


def test_captions_and_facts_are_escaped(open_page):
    m = Measurement("m", "t", system="<i>s</i>", value=0.5)
    rows = [
        {"id": m.id, "image_id": f"<b>{n}</b>", "system": "<i>s</i>", "caption": caption,
         "detail": json.dumps({f"<u>{caption}": [caption, "</td>"], "guessed": caption if n % 2 else "<s>",
                               "words": ["<", ""], "__proto__": {"x": caption}, "people": [caption] * 9,
                               "parts": [[caption, 0.5]]})}
        for n, caption in enumerate(HOSTILE * 2)
    ]  # fmt: skip
    tab = open_page(Results((m,), pl.DataFrame(rows, schema=EVIDENCE_SCHEMA)))
    captions = tab.locator("#evidence .caption").evaluate_all(
        "all => all.map(element => element.textContent)"
    )
    assert captions == HOSTILE * 2
    assert tab.locator("#evidence :is(b, i, u, s, script)").count() == 0
    assert tab.locator("#evidence img").count() == 0
    tab.locator("button.image").first.click()
    assert tab.locator("#evidence-title").inner_text() == "Captions of image <b>0</b> in this page"
    assert tab.locator("#image-captions :is(b, i, u, s, script, img)").count() == 0
    assert tab.locator("#image-captions td").first.inner_text() == HOSTILE[0]
    assert tab.evaluate("window.hacked") is None


def test_facts_that_differ_from_row_to_row_are_folded(open_page):
    m = Measurement("m", "t", system="camera", value=0.5)
    rows = [
        {"id": m.id, "image_id": str(n), "system": "camera", "caption": f"caption {n}",
         "detail": json.dumps({"usual": n, f"fact {n}": "x", "words": 3, "parts": {"male": 0.5}})}
        for n in range(40)
    ]  # fmt: skip
    tab = open_page(Results((m,), pl.DataFrame(rows, schema=EVIDENCE_SCHEMA)))
    names = tab.locator("#evidence-table thead th").all_inner_texts()
    assert names[:2] == ["image", "caption"]
    assert {"usual", "parts"} < set(names)  # facts of most rows have columns
    assert names[-1] == "more"
    assert len(names) == 2 + 12 + 1
    assert column(tab, "parts")[0] == "male 0.5"
    tab.locator("#evidence-search").fill("fact 39")
    assert column(tab, "image") == ["39"]


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_screen(open_page, width):
    buffer = io.BytesIO()
    Image.new("RGB", (72, 72)).save(buffer, "WEBP")
    m = Measurement("m", "t", system="camera", value=0.5)
    rows = evidence_rows(m, 30)
    rows[1] |= {"caption": "w" * 300, "image_id": "i" * 200}
    rows[2] |= {"detail": json.dumps({"guessed": "g" * 59, "k" * 80: 1})}
    thumbnails = pl.DataFrame([{"image_id": "image 0", "image": buffer.getvalue()}], schema=THUMBNAILS_SCHEMA)
    tab = open_page(Results((m,), pl.DataFrame(rows, schema=EVIDENCE_SCHEMA), thumbnails=thumbnails), width)
    fits = (
        "[document.documentElement.scrollWidth <= innerWidth, evidence.scrollWidth <= evidence.clientWidth]"
    )
    fits = fits.replace("evidence.", 'document.getElementById("evidence").')
    assert tab.evaluate(fits) == [True, True]
    assert tab.locator("#evidence-table img").count() == 1
    assert (
        base64.b64decode(tab.locator("#evidence-table img").get_attribute("src").split(",")[1])[:4] == b"RIFF"
    )
    heading(tab, "score").get_by_role("button").click()  # also on a narrow screen, where rows are cards
    assert column(tab, "score")[0].endswith("-1")
    for long_name in (0, 1):
        tab.locator("#evidence-search").fill("www" if long_name else "image 0")
        tab.locator("button.image").first.click()
        assert tab.evaluate(fits) == [True, True]
        tab.locator("#evidence-back").click()


def test_number_is_located_by_row_and_column(open_page):
    tab = open_page()
    tab.keyboard.press("Escape")
    number_button(tab, "robot", "t").click()
    assert tab.locator("#evidence-title").inner_text() == "robot · all people · t = 0.500"
    assert column(tab, "caption")[0].startswith("robot")


def results_with_details(details: list[dict[str, object]], term: str = "t", **fields: object) -> Results:
    m = Measurement("m", term, system="camera", value=0.5)
    rows = [
        {
            "id": m.id,
            "image_id": f"i-{n}",
            "system": "camera",
            "caption": f"caption {n}",
            "detail": json.dumps(detail),
        }
        for n, detail in enumerate(details)
    ]
    return Results((m,), pl.DataFrame(rows, schema=EVIDENCE_SCHEMA), **fields)


def test_numbers_within_texts_are_sorted_as_numbers(open_page):
    values = [0.5, 0.25, -10, -2, 0.125]
    tab = open_page(results_with_details([{"of": {"before": value}} for value in values]))
    heading(tab, "of").get_by_role("button").click()
    assert column(tab, "of") == [f"before {value:g}" for value in sorted(values)]
    heading(tab, "image").get_by_role("button").click()
    assert column(tab, "image") == [f"i-{n}" for n in range(5)]  # a hyphen is no minus


def test_source_is_human_where_a_number_of_a_system_is_about_human_captions(open_page):
    cards = {"m": {"side_by_side": ["lic_m", "lic_d"]}}
    tab = open_page(results_with_details([{"score": 1}, {"score": 2}], "lic_d", provenance={"cards": cards}))
    assert column(tab, "source") == ["human", "human"]
    tab.locator("#evidence-search").fill("human")
    assert tab.locator("#evidence-position").inner_text() == "1–2 of 2"


def test_short_human_captions_are_shown_side_by_side(open_page):
    tab = open_page(results_with_details([{"people": ["a man", "a dog"]}]))
    tab.locator("button.image").click()
    assert tab.locator("#image-captions td").all_inner_texts() == ["caption 0", "a man", "a dog"]


def test_browser_without_decompression_shows_a_message(browser, tmp_path):
    measurements = [
        Measurement("m", "t", system=name, value=0.5, low=0.4, high=0.6) for name in ("camera", "robot")
    ]
    rows = [row for m in measurements for row in evidence_rows(m, 3, m.system)]
    page = write_page(Results(tuple(measurements), pl.DataFrame(rows, schema=EVIDENCE_SCHEMA)), tmp_path)
    context = browser.new_context(offline=True)
    tab = context.new_page()
    tab.add_init_script("delete window.DecompressionStream")
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(page.as_uri())
    expect(tab.locator("#old")).to_be_visible()
    expect(tab.locator("#save")).to_be_hidden()
    tab.locator("td button").first.click()
    assert not tab.locator("#evidence").is_visible()
    assert tab.locator(".plot").first.evaluate("plot => plot.style.minHeight") == ""
    context.close()
    assert errors == []


def test_print_is_light_on_a_page_without_charts(browser, tmp_path):
    context = browser.new_context(offline=True, color_scheme="dark")
    tab = context.new_page()
    tab.goto(write_page(results_with_details([{"score": 1}]), tmp_path).as_uri())
    assert tab.locator(".plot").count() == 0
    tab.locator("#theme").click()
    tab.locator("#theme").click()
    tab.emulate_media(media="print")
    assert tab.locator("body").evaluate("body => getComputedStyle(body).color") == "rgb(28, 27, 34)"
    context.close()


def test_the_copy_of_the_results_is_exact(browser, tmp_path):
    results = results_with_details([{"score": 1}], provenance={"seed": 2**64 - 1})
    context = browser.new_context(offline=True, accept_downloads=True)
    tab = context.new_page()
    tab.goto(write_page(results, tmp_path).as_uri())
    tab.wait_for_selector("html[data-loaded]")
    with tab.expect_download() as download:
        tab.locator("#save").click()
    assert json.loads(download.value.path().read_text()) == results.as_dict()
    context.close()
