"""Live page: access control, queries, and paging of the evidence."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import socket
import threading
from pathlib import Path
from urllib.parse import quote, urlencode

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from portrayal.errors import InputError, PortrayalError
from portrayal.report.live import Guard, ImageFolder, Routes, ViewServer, is_local
from portrayal.report.live import evidence as evidence_module
from portrayal.report.live.evidence import EvidenceQuery, EvidenceStore
from portrayal.results import EVIDENCE_SCHEMA, THUMBNAILS_SCHEMA, Measurement, Results, open_results
from tests.report.test_page import HOSTILE

ROWS = [
    Measurement("error", "wrong", system="one", attribute="gender", group="female", value=0.25, n=40),
    Measurement("error", "wrong", system="one", attribute="gender", value=0.1, low=0.05, high=0.2, n=80),
    Measurement("error", "wrong", system="two", attribute="gender", value=0.3, n=80),
    Measurement("word-odds", "z", system="one", attribute="age", item="été", value=2.0, n=9),
    Measurement("error", "ratio", system="one", attribute="gender", reason="nobody was named"),
]
CAPTIONS = [*HOSTILE, "Ein Mädchen isst 寿司 🍣", "A MAN.*", "a man", ""]


def encoded_image(kind: str = "PNG", size: int = 8) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (size, size), "red").save(buffer, kind)
    return buffer.getvalue()


def example_results() -> Results:
    rows = [
        (m.id, f"img {n}", m.system or "human", caption, json.dumps({"words": ["man"]}))
        for m in ROWS[:4]
        for n, caption in enumerate(CAPTIONS)
    ]
    evidence = pl.DataFrame(rows, schema=EVIDENCE_SCHEMA, orient="row")
    thumbnails = pl.DataFrame(
        [("img 0", encoded_image("WEBP")), ("img 1", b"<svg onload=alert(1)>")],
        schema=THUMBNAILS_SCHEMA,
        orient="row",
    )
    provenance = {"version": "1", "study": {"name": "<b>x</b>"}, "cards": {"error": {"title": "Error"}}}
    return Results(tuple(ROWS), evidence, provenance=provenance, thumbnails=thumbnails)


@contextlib.contextmanager
def served(folder: Path, images: ImageFolder | None = None, guard: Guard | None = None):
    with ViewServer(Routes(open_results(folder), images), guard=guard) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("results")
    example_results().save(directory)
    (directory / "index.html").write_text("<title>written</title>")
    (directory / "secret.txt").write_text("secret")
    return directory


@pytest.fixture(scope="module")
def image_folder(tmp_path_factory):
    """A folder with images, files with the suffix of an image, and a link to a file outside."""
    directory = tmp_path_factory.mktemp("images") / "inside"
    directory.mkdir()
    outside = directory.parent / "outside.png"
    outside.write_bytes(encoded_image())
    (directory / "img 0.png").write_bytes(encoded_image())
    (directory / "page.png").write_bytes(b"<html><script>alert(1)</script>")
    (directory / "drawing.jpg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (directory / "link.png").symlink_to(outside)
    (directory / "inner.png").symlink_to(directory / "img 0.png")
    (directory / "loop.png").symlink_to(directory / "loop.png")
    files = {path.stem: path for path in directory.iterdir()}
    return ImageFolder(directory, files)


@pytest.fixture(scope="module")
def server(folder, image_folder):
    with served(folder, image_folder) as view_server:
        yield view_server


def fetch(server: ViewServer, path: str, method: str = "GET", **headers: str):
    """Returns (status, headers, body) of a request; the path is sent unchanged."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in header_fields)
        for name, value in header_fields.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def fetch_json(server: ViewServer, path: str, **query: object):
    status, headers, body = fetch(server, f"{path}?{urlencode(query)}")
    assert headers["Content-Type"] == "application/json"
    return status, json.loads(body)


def raw(server: ViewServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


# ---- access


def test_server_listens_on_localhost_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.port}/"


@pytest.mark.parametrize("path", ["/", "/view.js", "/page", "/api/results", "/nothing", "/image?image=img+0"])
def test_every_response_has_strict_headers(server, path):
    _, headers, _ = fetch(server, path)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not [name for name in headers if name.lower().startswith("access-control")]
    policy = headers["Content-Security-Policy"]
    assert ("unsafe" in policy) == ("sandbox allow-scripts" in policy) == (path == "/page")


def test_page_has_no_inline_script(server):
    status, headers, body = fetch(server, "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<script>" not in body
    assert b"style=" not in body
    script = fetch(server, "/view.js")[2].decode()
    assert "innerHTML" not in script
    assert "insertAdjacent" not in script


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "localhost@evil", "[::1"])
def test_another_host_name_is_refused(server, host):
    status, _, body = fetch(server, "/api/results", Host=host)
    assert status == 403
    assert b"cards" not in body


def test_local_host_names_are_accepted(server):
    for host in (f"127.0.0.1:{server.port}", "LOCALHOST", "localhost:9000", "[::1]:80"):
        assert fetch(server, "/api/results", Host=host)[0] == 200


def test_a_request_with_no_host_or_two_is_refused(server):
    assert b" 403 " in raw(server, b"GET /api/results HTTP/1.1\r\n\r\n")
    two_hosts = b"GET /api/results HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\nConnection: close\r\n\r\n"
    assert b" 403 " in raw(server, two_hosts)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"])
def test_other_methods_are_refused(server, method):
    status, headers, body = fetch(server, "/api/results", method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"cards" not in body


def test_head_gives_the_headers_of_get(server):
    _, get_headers, body = fetch(server, "/api/results")
    status, headers, head_body = fetch(server, "/api/results", "HEAD")
    assert (status, head_body, headers["Content-Length"]) == (200, b"", str(len(body)))
    assert get_headers["Content-Length"] == headers["Content-Length"]


def test_request_body_is_not_parsed_as_a_request(server):
    inner = b"GET /api/results HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(inner)
    assert raw(server, head + inner).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\xff\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /".ljust(65_537, b"a"),  # the longest line that is read
    ],
)
def test_malformed_requests_are_answered_with_an_error(server, request_):
    response = raw(server, request_)
    assert b"HTTP/1.1 4" in response or b"HTTP/1.1 5" in response or b'{"reason"' in response
    assert b"<html" not in response.lower()


def test_remote_access_needs_the_token(folder):
    with served(folder, guard=Guard.for_remote("example.org")) as server:
        token = server.guard.token
        assert len(token) > 40
        assert server.address.endswith(f"/?token={token}")
        for path in ("/", "/view.js", "/api/results", "/image?image=x", "/page", "/nothing"):
            for url in (path, path + ("&" if "?" in path else "?") + "token=wrong"):
                status, headers, body = fetch(server, url)
                assert status == 401
                assert headers["Set-Cookie"] is None
                assert token.encode() not in body
        status, headers, _ = fetch(server, f"/?token={token}")
        assert status == 200
        cookie = headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        cookie_pair = cookie.partition(";")[0]
        status, headers, _ = fetch(server, "/api/results", Cookie=f'odd"[]=; {cookie_pair}')
        assert (status, headers["Set-Cookie"]) == (200, None)
        assert fetch(server, "/api/results", Cookie=cookie_pair[:-1])[0] == 401
        assert fetch(server, "/api/results", Cookie=f"portrayal_{server.port}=é")[0] == 401
        assert fetch(server, "/api/results", Cookie=cookie_pair, Host="evil.example")[0] == 403
        assert fetch(server, f"/?token={token}", Host="evil.example")[1]["Set-Cookie"] is None
        assert fetch(server, "/api/results", Cookie=cookie_pair, Host="example.org:80")[0] == 200


def test_tokens_are_not_shown_and_differ():
    first, second = Guard.for_remote("a"), Guard.for_remote("a")
    assert first.token != second.token
    assert first.token not in repr(first)


def test_local_addresses():
    assert [is_local(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "LocalHost")] == [True] * 4
    assert not any(is_local(host) for host in ("0.0.0.0", "::", "", "192.168.0.1", "localhost.example"))


# ---- files

TRAVERSALS = [
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "//secret.txt",
    "/secret.txt",
    "/page/../secret.txt",
    "/etc/passwd",
    "/%00",
    "/page%00",
    "/..\\secret.txt",
    "/%5c..%5csecret.txt",
    "/" + "../" * 2000,
    "/results.json",
    "/evidence.parquet",
    "http://127.0.0.1/page",
    "//127.0.0.1/page",
    "*",
]


@pytest.mark.parametrize("path", TRAVERSALS, ids=lambda path: path[:20])
def test_path_traversal_is_refused(server, path):
    status, _, body = fetch(server, path)
    assert status in (400, 404)
    assert b"secret" not in body
    assert b"root:" not in body


@pytest.mark.parametrize(
    "image",
    [
        "../outside",
        "../outside.png",
        "..%2foutside.png",
        "/etc/passwd",
        "img 0.png",  # not an id of this table
        "img 0\x00",
        "..\\outside.png",
        "link",  # leads out of the folder
        "loop",
        "page",  # no image, in spite of its suffix
        "drawing",
        "x" * 5000,
        ".",
        "",
        "\udcff",
    ],
    ids=lambda image: ascii(image)[:20],
)
def test_only_images_of_the_folder_are_served(server, image):
    for path in ("/image", "/api/thumbnail"):
        quoted_id = quote(image.encode("utf-8", "surrogateescape"), safe="")
        status, headers, body = fetch(server, f"{path}?image={quoted_id}")
        assert status in (400, 404)
        assert headers["Content-Type"] == "application/json"
        assert "reason" in json.loads(body)


def test_images_have_their_content_type(server):
    for path, image, content_type in (
        ("/image", "img 0", "image/png"),
        ("/image", "inner", "image/png"),  # a link within the folder
        ("/api/thumbnail", "img 0", "image/webp"),
    ):
        status, headers, body = fetch(server, f"{path}?{urlencode({'image': image})}")
        assert (status, headers["Content-Type"]) == (200, content_type)
        assert Image.open(io.BytesIO(body)).size == (8, 8)
    assert (
        fetch(server, "/api/thumbnail?image=img+1")[0] == 404
    )  # thumbnails of other programs may be anything


def test_a_file_that_became_a_link_is_not_followed(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "a.png").write_bytes(encoded_image())
    images = ImageFolder(folder, {"a": folder / "a.png"})
    assert images.read("a")
    (tmp_path / "b.png").write_bytes(encoded_image())
    (folder / "a.png").unlink()
    (folder / "a.png").symlink_to(tmp_path / "b.png")
    assert images.read("a") is None
    (folder / "a.png").unlink()
    assert images.read("a") is None
    os.mkfifo(folder / "a.png")  # reading it would wait for ever
    assert images.read("a") is None


def test_static_page_is_served_under_its_own_path(server, tmp_path):
    assert b"written" in fetch(server, "/page")[2]
    example_results().save(tmp_path / "other")
    (tmp_path / "elsewhere.html").write_text("secret")
    with served(tmp_path / "other") as other:
        assert fetch(other, "/page")[0] == 404
        (tmp_path / "other" / "index.html").symlink_to(tmp_path / "elsewhere.html")
        assert fetch(other, "/page")[0] == 404


# ---- responses


def test_results_are_served_with_their_cards(server):
    status, response = fetch_json(server, "/api/results")
    assert status == 200
    assert response["provenance"]["study"] == {"name": "<b>x</b>"}
    assert response["cards"] == {"error": {"title": "Error"}}
    assert (response["measurements"], response["page"]) == (5, True)


def row_ids(response) -> list[str]:
    return [row["id"] for row in response[1]["rows"]]


def test_measurements_are_filtered_searched_and_sorted(server):
    def indices(**query):
        return [
            ROWS.index(next(m for m in ROWS if m.id == row_id))
            for row_id in row_ids(fetch_json(server, "/api/measurements", **query))
        ]

    assert indices() == [0, 1, 2, 3, 4]
    assert indices(metric="error", system="one") == [0, 1, 4]
    assert indices(group="") == [1, 2, 3, 4]  # about all people
    assert indices(group="nobody") == []
    assert indices(search="ÉTÉ") == [3]
    assert indices(search="wrong two") == [2]
    assert indices(search="nobody was") == [4]
    assert indices(sort="value") == [1, 0, 2, 3, 4]
    assert indices(sort="value", order="down") == [3, 2, 0, 1, 4]  # the undefined one stays last
    assert indices(sort="evidence") == [4, 0, 1, 2, 3]
    assert indices(page=2, size=2) == [2, 3]
    assert indices(page=4, size=2) == []


def test_choices_of_a_filter_depend_on_the_other_filters(server):
    _, response = fetch_json(server, "/api/measurements", metric="error", system="two")
    assert response["choices"]["system"] == [["one", 3], ["two", 1]]
    assert response["choices"]["metric"] == [["error", 1]]
    assert response["choices"]["term"] == [["wrong", 1]]


def test_undefined_measurement_has_its_reason(server):
    status, response = fetch_json(server, "/api/evidence", id=ROWS[4].id)
    assert status == 200
    assert (response["total"], response["rows"], response["systems"]) == (0, [], [])
    assert response["measurement"]["value"] is None
    assert response["measurement"]["reason"] == "nobody was named"
    assert response["measurement"]["shown"] == "–"


def test_captions_are_served_unchanged(server):
    _, response = fetch_json(server, "/api/evidence", id=ROWS[0].id)
    assert [row["caption"] for row in response["rows"]] == CAPTIONS
    assert [row["image"] for row in response["rows"]] == [f"img {n}" for n in range(len(CAPTIONS))]
    assert (response["rows"][0]["thumbnail"], response["rows"][0]["full"]) == (True, True)
    assert (response["rows"][2]["thumbnail"], response["rows"][2]["full"]) == (False, False)


@pytest.mark.parametrize(
    "query",
    [
        {"id": "unknown"},
        {},
        {"id": ROWS[0].id, "page": "0"},
        {"id": ROWS[0].id, "page": "-1"},
        {"id": ROWS[0].id, "page": "1e9"},
        {"id": ROWS[0].id, "page": "²"},
        {"id": ROWS[0].id, "page": "9" * 500},
        {"id": ROWS[0].id, "size": "201"},
        {"id": ROWS[0].id, "sort": "detail"},
        {"id": ROWS[0].id, "search": "x" * 1001},
        {str(n): "" for n in range(30)},
    ],
)
def test_invalid_query_has_an_error_message(server, query):
    status, response = fetch_json(server, "/api/evidence", **query)
    assert status in (400, 404)
    assert response["reason"].endswith(".")


def test_search_is_literal(server):
    for search, expected in (
        ("a man.*", ["A MAN.*"]),
        ("寿司", [CAPTIONS[6]]),
        ("(", [c for c in CAPTIONS if "(" in c]),
    ):
        _, response = fetch_json(server, "/api/evidence", id=ROWS[0].id, search=search)
        assert [row["caption"] for row in response["rows"]] == expected


def test_changed_results_are_refused(tmp_path):
    example_results().save(tmp_path)
    with served(tmp_path) as server:
        assert fetch_json(server, "/api/evidence", id=ROWS[0].id)[0] == 200
        Results(tuple(ROWS)).save(tmp_path)
        status, response = fetch_json(server, "/api/evidence", id=ROWS[0].id)
        assert status == 409
        assert "restart the command" in response["reason"]


def test_odd_provenance_is_refused(tmp_path):
    example_results().save(tmp_path)
    results_json = json.loads((tmp_path / "results.json").read_text())
    results_json["provenance"] = {"odd": [float("nan")]}
    (tmp_path / "results.json").write_text(json.dumps(results_json))
    with pytest.raises(InputError, match="no finite number"), served(tmp_path):
        pass


# ---- broken results


def test_broken_evidence_is_reported_at_startup(tmp_path):
    example_results().save(tmp_path)
    for name in ("evidence.parquet", "thumbnails.parquet"):
        valid_bytes = (tmp_path / name).read_bytes()
        for broken_bytes in (b"nothing", valid_bytes[:-20], b""):
            (tmp_path / name).write_bytes(broken_bytes)
            with pytest.raises(InputError, match=name):
                Routes(open_results(tmp_path))
        (tmp_path / name).write_bytes(valid_bytes)


def test_results_may_come_without_evidence(tmp_path):
    example_results().save(tmp_path)
    (tmp_path / "evidence.parquet").unlink()
    (tmp_path / "thumbnails.parquet").unlink()
    with served(tmp_path) as server:
        assert fetch_json(server, "/api/evidence", id=ROWS[0].id)[1]["total"] == 0
        assert fetch(server, "/api/thumbnail?image=img+0")[0] == 404


def test_port_in_use_is_reported(server, folder):
    with pytest.raises(PortrayalError, match=f"port {server.port}"):
        ViewServer(Routes(open_results(folder)), port=server.port)


# ---- paging

LETTERS = st.text("aAbB.é<", max_size=4)


@given(
    rows=st.lists(st.tuples(st.sampled_from("xyz"), LETTERS, st.sampled_from("st"), LETTERS), max_size=30),
    search=st.text("aAb.", max_size=2),
    system=st.sampled_from([None, "s", "t", "u"]),
    sort=st.sampled_from(["", "image", "caption"]),
    size=st.integers(1, 7),
    large=st.sampled_from([0, 3, 1000]),
    together=st.booleans(),
)
def test_pages_are_slices_of_the_rows(tmp_path_factory, rows, search, system, sort, size, large, together):
    if together:  # as an audit writes them
        rows = sorted(rows, key=lambda row: row[0])
    frame = pl.DataFrame([(*row, str(n)) for n, row in enumerate(rows)], schema=EVIDENCE_SCHEMA, orient="row")
    directory = tmp_path_factory.mktemp("paging")
    Results((Measurement("m", "t", value=1.0),), frame).save(directory)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evidence_module, "LARGE", large)
        patched.setattr(evidence_module, "MAX_CACHED_ROWS", 10)
        evidence = EvidenceStore(open_results(directory))
        for identifier in "xyz":
            expected = [
                row
                for row in frame.to_dicts()
                if row["id"] == identifier
                and search.lower() in row["caption"].lower()
                and system in (None, row["system"])
            ]
            if sort:
                expected.sort(key=lambda row: row["image_id" if sort == "image" else "caption"])
            query = EvidenceQuery(identifier, search, system, sort)
            for number in range(1, len(expected) // size + 3):
                page = evidence.page(query, number, size)
                assert page.total == len(expected)
                assert page.rows == expected[(number - 1) * size : number * size]
            assert evidence.systems(identifier) == sorted({row[2] for row in rows if row[0] == identifier})
            assert evidence.count(identifier) == sum(row[0] == identifier for row in rows)


@pytest.mark.parametrize("query", [{}, {"search": "a"}, {"sort": "caption"}, {"system": "nobody"}])
def test_page_after_the_last_is_empty(server, query):
    status, response = fetch_json(server, "/api/evidence", id=ROWS[0].id, page=10**9, size=200, **query)
    assert (status, response["rows"]) == (200, [])


def test_memory_of_the_search_cache_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(evidence_module, "MAX_CACHED_ROWS", 2 * len(CAPTIONS))
    evidence = EvidenceStore(open_results(folder))
    for m in ROWS[:4]:
        for sort in ("image", "caption"):
            evidence.page(EvidenceQuery(m.id, sort=sort), 1, 5)
    assert sum(order.len() for order in evidence._cache.values()) <= 2 * len(CAPTIONS)


def test_longest_measurement_is_sorted_at_startup(folder, monkeypatch):
    longest = max(EvidenceStore(open_results(folder)).count(m.id) for m in ROWS)
    monkeypatch.setattr(evidence_module, "LARGE", 0)
    monkeypatch.setattr(
        evidence_module, "MAX_CACHED_ROWS", 2 * longest
    )  # space for both sort orders of a measurement
    evidence = EvidenceStore(open_results(folder))
    evidence.presort_thread.join()
    assert [query.sort for query in evidence._cache] == ["image", "caption"]
    assert {evidence.count(query.id) for query in evidence._cache} == {longest}


def test_concurrent_requests(server):
    def send_queries() -> None:
        for sort in ("image", "caption", ""):
            row_counts.append(
                n_rows(fetch_json(server, "/api/evidence", id=ROWS[0].id, sort=sort, search="a"))
            )

    def n_rows(response) -> int:
        return len(response[1]["rows"])

    row_counts: list[int] = []
    threads = [threading.Thread(target=send_queries) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(row_counts) == 24
    assert len(set(row_counts)) == 1
