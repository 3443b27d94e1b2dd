"""The live page: whom it answers, what it can be asked, and that pages of evidence are slices of it."""

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


def picture(kind: str = "PNG", size: int = 8) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (size, size), "red").save(written, kind)
    return written.getvalue()


def some_results() -> Results:
    rows = [
        (m.id, f"img {n}", m.system or "human", caption, json.dumps({"words": ["man"]}))
        for m in ROWS[:4]
        for n, caption in enumerate(CAPTIONS)
    ]
    evidence = pl.DataFrame(rows, schema=EVIDENCE_SCHEMA, orient="row")
    pictures = pl.DataFrame(
        [("img 0", picture("WEBP")), ("img 1", b"<svg onload=alert(1)>")],
        schema=THUMBNAILS_SCHEMA,
        orient="row",
    )
    origin = {"version": "1", "study": {"name": "<b>x</b>"}, "cards": {"error": {"title": "Error"}}}
    return Results(tuple(ROWS), evidence, provenance=origin, thumbnails=pictures)


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
    made = tmp_path_factory.mktemp("results")
    some_results().save(made)
    (made / "index.html").write_text("<title>written</title>")
    (made / "secret.txt").write_text("secret")
    return made


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder with pictures, files that only look like some, and a link that leads out of it."""
    made = tmp_path_factory.mktemp("pictures") / "inside"
    made.mkdir()
    outside = made.parent / "outside.png"
    outside.write_bytes(picture())
    (made / "img 0.png").write_bytes(picture())
    (made / "page.png").write_bytes(b"<html><script>alert(1)</script>")
    (made / "drawing.jpg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (made / "link.png").symlink_to(outside)
    (made / "inner.png").symlink_to(made / "img 0.png")
    (made / "loop.png").symlink_to(made / "loop.png")
    files = {path.stem: path for path in made.iterdir()}
    return ImageFolder(made, files)


@pytest.fixture(scope="module")
def server(folder, pictures):
    with served(folder, pictures) as running:
        yield running


def ask(server: ViewServer, path: str, method: str = "GET", **headers: str):
    """(status, headers, body) of one request; the path is sent as it stands."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in given)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def told(server: ViewServer, path: str, **query: object):
    status, headers, body = ask(server, f"{path}?{urlencode(query)}")
    assert headers["Content-Type"] == "application/json"
    return status, json.loads(body)


def raw(server: ViewServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


# ---- who may ask


def test_it_is_served_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.port}/"


@pytest.mark.parametrize("path", ["/", "/view.js", "/page", "/api/results", "/nothing", "/image?image=img+0"])
def test_every_answer_has_strict_headers(server, path):
    _, headers, _ = ask(server, path)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not [name for name in headers if name.lower().startswith("access-control")]
    policy = headers["Content-Security-Policy"]
    assert ("unsafe" in policy) == ("sandbox allow-scripts" in policy) == (path == "/page")


def test_the_page_runs_no_script_that_stands_in_it(server):
    status, headers, body = ask(server, "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<script>" not in body
    assert b"style=" not in body
    script = ask(server, "/view.js")[2].decode()
    assert "innerHTML" not in script
    assert "insertAdjacent" not in script


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "localhost@evil", "[::1"])
def test_another_host_name_is_refused(server, host):
    status, _, body = ask(server, "/api/results", Host=host)
    assert status == 403
    assert b"cards" not in body


def test_names_of_this_machine_are_known(server):
    for host in (f"127.0.0.1:{server.port}", "LOCALHOST", "localhost:9000", "[::1]:80"):
        assert ask(server, "/api/results", Host=host)[0] == 200


def test_a_request_with_no_host_or_two_is_refused(server):
    assert b" 403 " in raw(server, b"GET /api/results HTTP/1.1\r\n\r\n")
    two = b"GET /api/results HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\nConnection: close\r\n\r\n"
    assert b" 403 " in raw(server, two)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"])
def test_other_methods_are_refused(server, method):
    status, headers, body = ask(server, "/api/results", method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"cards" not in body


def test_head_gives_the_headers_of_get(server):
    _, got, body = ask(server, "/api/results")
    status, headers, nothing = ask(server, "/api/results", "HEAD")
    assert (status, nothing, headers["Content-Length"]) == (200, b"", str(len(body)))
    assert got["Content-Length"] == headers["Content-Length"]


def test_what_is_sent_along_is_not_taken_for_a_request(server):
    inner = b"GET /api/results HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(inner)
    assert raw(server, head + inner).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\xff\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /".ljust(65_537, b"a"),  # as long as is read
    ],
)
def test_nonsense_is_answered_with_strict_headers(server, request_):
    answer = raw(server, request_)
    assert b"HTTP/1.1 4" in answer or b"HTTP/1.1 5" in answer or b'{"error"' in answer
    assert b"<html" not in answer.lower()


def test_others_need_the_token(folder):
    with served(folder, guard=Guard.for_remote("example.org")) as server:
        token = server.guard.token
        assert len(token) > 40
        assert server.address.endswith(f"/?token={token}")
        for path in ("/", "/view.js", "/api/results", "/image?image=x", "/page", "/nothing"):
            for given in (path, path + ("&" if "?" in path else "?") + "token=wrong"):
                status, headers, body = ask(server, given)
                assert status == 401
                assert headers["Set-Cookie"] is None
                assert token.encode() not in body
        status, headers, _ = ask(server, f"/?token={token}")
        assert status == 200
        cookie = headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        kept = cookie.partition(";")[0]
        status, headers, _ = ask(server, "/api/results", Cookie=f'odd"[]=; {kept}')
        assert (status, headers["Set-Cookie"]) == (200, None)
        assert ask(server, "/api/results", Cookie=kept[:-1])[0] == 401
        assert ask(server, "/api/results", Cookie=f"portrayal_{server.port}=é")[0] == 401
        assert ask(server, "/api/results", Cookie=kept, Host="evil.example")[0] == 403
        assert ask(server, f"/?token={token}", Host="evil.example")[1]["Set-Cookie"] is None
        assert ask(server, "/api/results", Cookie=kept, Host="example.org:80")[0] == 200


def test_tokens_are_not_shown_and_differ():
    one, other = Guard.for_remote("a"), Guard.for_remote("a")
    assert one.token != other.token
    assert one.token not in repr(one)


def test_local_addresses():
    assert [is_local(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "LocalHost")] == [True] * 4
    assert not any(is_local(host) for host in ("0.0.0.0", "::", "", "192.168.0.1", "localhost.example"))


# ---- files that nobody may have

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
def test_no_path_is_a_file(server, path):
    status, _, body = ask(server, path)
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
        "page",  # no picture, whatever its name says
        "drawing",
        "x" * 5000,
        ".",
        "",
        "\udcff",
    ],
    ids=lambda image: ascii(image)[:20],
)
def test_only_pictures_of_the_folder_are_given(server, image):
    for path in ("/image", "/api/thumbnail"):
        asked = quote(image.encode("utf-8", "surrogateescape"), safe="")
        status, headers, body = ask(server, f"{path}?image={asked}")
        assert status in (400, 404)
        assert headers["Content-Type"] == "application/json"
        assert "error" in json.loads(body)


def test_pictures_come_with_their_own_type(server):
    for path, image, kind in (
        ("/image", "img 0", "image/png"),
        ("/image", "inner", "image/png"),  # a link within the folder
        ("/api/thumbnail", "img 0", "image/webp"),
    ):
        status, headers, body = ask(server, f"{path}?{urlencode({'image': image})}")
        assert (status, headers["Content-Type"]) == (200, kind)
        assert Image.open(io.BytesIO(body)).size == (8, 8)
    assert ask(server, "/api/thumbnail?image=img+1")[0] == 404  # results of others may hold anything


def test_a_file_that_became_a_link_is_not_followed(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a.png").write_bytes(picture())
    images = ImageFolder(inside, {"a": inside / "a.png"})
    assert images.read("a")
    (tmp_path / "b.png").write_bytes(picture())
    (inside / "a.png").unlink()
    (inside / "a.png").symlink_to(tmp_path / "b.png")
    assert images.read("a") is None
    (inside / "a.png").unlink()
    assert images.read("a") is None
    os.mkfifo(inside / "a.png")  # reading it would wait for ever
    assert images.read("a") is None


def test_the_written_page_is_served_apart(server, tmp_path):
    assert b"written" in ask(server, "/page")[2]
    some_results().save(tmp_path / "other")
    (tmp_path / "elsewhere.html").write_text("secret")
    with served(tmp_path / "other") as other:
        assert ask(other, "/page")[0] == 404
        (tmp_path / "other" / "index.html").symlink_to(tmp_path / "elsewhere.html")
        assert ask(other, "/page")[0] == 404


# ---- what is told


def test_results_are_told_with_their_cards(server):
    status, about = told(server, "/api/results")
    assert status == 200
    assert about["provenance"]["study"] == {"name": "<b>x</b>"}
    assert about["cards"] == {"error": {"title": "Error"}}
    assert (about["measurements"], about["page"]) == (5, True)


def ids(answer) -> list[str]:
    return [row["id"] for row in answer[1]["rows"]]


def test_measurements_are_filtered_searched_and_sorted(server):
    def found(**query):
        return [
            ROWS.index(next(m for m in ROWS if m.id == i))
            for i in ids(told(server, "/api/measurements", **query))
        ]

    assert found() == [0, 1, 2, 3, 4]
    assert found(metric="error", system="one") == [0, 1, 4]
    assert found(group="") == [1, 2, 3, 4]  # about all people
    assert found(group="nobody") == []
    assert found(search="ÉTÉ") == [3]
    assert found(search="wrong two") == [2]
    assert found(search="nobody was") == [4]
    assert found(sort="value") == [1, 0, 2, 3, 4]
    assert found(sort="value", order="down") == [3, 2, 0, 1, 4]  # the undefined one stays last
    assert found(sort="evidence") == [4, 0, 1, 2, 3]
    assert found(page=2, size=2) == [2, 3]
    assert found(page=4, size=2) == []


def test_choices_of_a_filter_are_those_of_the_others(server):
    _, answer = told(server, "/api/measurements", metric="error", system="two")
    assert answer["choices"]["system"] == [["one", 3], ["two", 1]]
    assert answer["choices"]["metric"] == [["error", 1]]
    assert answer["choices"]["term"] == [["wrong", 1]]


def test_an_undefined_measurement_says_why(server):
    status, answer = told(server, "/api/evidence", id=ROWS[4].id)
    assert status == 200
    assert (answer["total"], answer["rows"], answer["systems"]) == (0, [], [])
    assert answer["measurement"]["value"] is None
    assert answer["measurement"]["reason"] == "nobody was named"
    assert answer["measurement"]["shown"] == "–"


def test_captions_come_as_they_are(server):
    _, answer = told(server, "/api/evidence", id=ROWS[0].id)
    assert [row["caption"] for row in answer["rows"]] == CAPTIONS
    assert [row["image"] for row in answer["rows"]] == [f"img {n}" for n in range(len(CAPTIONS))]
    assert (answer["rows"][0]["thumbnail"], answer["rows"][0]["full"]) == (True, True)
    assert (answer["rows"][2]["thumbnail"], answer["rows"][2]["full"]) == (False, False)


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
def test_a_bad_question_gets_a_sentence(server, query):
    status, answer = told(server, "/api/evidence", **query)
    assert status in (400, 404)
    assert answer["error"].endswith(".")


def test_a_search_is_for_the_text_and_no_pattern(server):
    for search, expected in (
        ("a man.*", ["A MAN.*"]),
        ("寿司", [CAPTIONS[6]]),
        ("(", [c for c in CAPTIONS if "(" in c]),
    ):
        _, answer = told(server, "/api/evidence", id=ROWS[0].id, search=search)
        assert [row["caption"] for row in answer["rows"]] == expected


def test_results_that_changed_are_not_mixed_up(tmp_path):
    some_results().save(tmp_path)
    with served(tmp_path) as server:
        assert told(server, "/api/evidence", id=ROWS[0].id)[0] == 200
        Results(tuple(ROWS)).save(tmp_path)
        status, answer = told(server, "/api/evidence", id=ROWS[0].id)
        assert status == 409
        assert "restart the command" in answer["error"]


def test_odd_provenance_is_refused(tmp_path):
    some_results().save(tmp_path)
    data = json.loads((tmp_path / "results.json").read_text())
    data["provenance"] = {"odd": [float("nan")]}
    (tmp_path / "results.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="no finite number"), served(tmp_path):
        pass


# ---- what cannot be served


def test_broken_evidence_is_said_at_once(tmp_path):
    some_results().save(tmp_path)
    for name in ("evidence.parquet", "thumbnails.parquet"):
        good = (tmp_path / name).read_bytes()
        for bad in (b"nothing", good[:-20], b""):
            (tmp_path / name).write_bytes(bad)
            with pytest.raises(InputError, match=name):
                Routes(open_results(tmp_path))
        (tmp_path / name).write_bytes(good)


def test_results_may_come_without_evidence(tmp_path):
    some_results().save(tmp_path)
    (tmp_path / "evidence.parquet").unlink()
    (tmp_path / "thumbnails.parquet").unlink()
    with served(tmp_path) as server:
        assert told(server, "/api/evidence", id=ROWS[0].id)[1]["total"] == 0
        assert ask(server, "/api/thumbnail?image=img+0")[0] == 404


def test_a_port_in_use_is_said(server, folder):
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
    made = tmp_path_factory.mktemp("paging")
    Results((Measurement("m", "t", value=1.0),), frame).save(made)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evidence_module, "LARGE", large)
        patched.setattr(evidence_module, "MAX_CACHED_ROWS", 10)
        evidence = EvidenceStore(open_results(made))
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
            wanted = EvidenceQuery(identifier, search, system, sort)
            for number in range(1, len(expected) // size + 3):
                page = evidence.page(wanted, number, size)
                assert page.total == len(expected)
                assert page.rows == expected[(number - 1) * size : number * size]
            assert evidence.systems(identifier) == sorted({row[2] for row in rows if row[0] == identifier})
            assert evidence.count(identifier) == sum(row[0] == identifier for row in rows)


@pytest.mark.parametrize("query", [{}, {"search": "a"}, {"sort": "caption"}, {"system": "nobody"}])
def test_behind_the_last_page_there_is_nothing(server, query):
    status, answer = told(server, "/api/evidence", id=ROWS[0].id, page=10**9, size=200, **query)
    assert (status, answer["rows"]) == (200, [])


def test_the_memory_for_searches_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(evidence_module, "MAX_CACHED_ROWS", 2 * len(CAPTIONS))
    evidence = EvidenceStore(open_results(folder))
    for m in ROWS[:4]:
        for sort in ("image", "caption"):
            evidence.page(EvidenceQuery(m.id, sort=sort), 1, 5)
    assert sum(order.len() for order in evidence._cache.values()) <= 2 * len(CAPTIONS)


def test_the_longest_measurements_are_sorted_before_anybody_asks(folder, monkeypatch):
    longest = max(EvidenceStore(open_results(folder)).count(m.id) for m in ROWS)
    monkeypatch.setattr(evidence_module, "LARGE", 0)
    monkeypatch.setattr(evidence_module, "MAX_CACHED_ROWS", 2 * longest)  # room for both orders of one
    evidence = EvidenceStore(open_results(folder))
    evidence.presort_thread.join()
    assert [wanted.sort for wanted in evidence._cache] == ["image", "caption"]
    assert {evidence.count(wanted.id) for wanted in evidence._cache} == {longest}


def test_many_may_ask_at_once(server):
    def asks() -> None:
        for sort in ("image", "caption", ""):
            answers.append(ids_of(told(server, "/api/evidence", id=ROWS[0].id, sort=sort, search="a")))

    def ids_of(answer) -> int:
        return len(answer[1]["rows"])

    answers: list[int] = []
    threads = [threading.Thread(target=asks) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 24
    assert len(set(answers)) == 1
