"""What the live page can be asked: a fixed table of addresses, each with a function from its query to an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from portrayal.errors import PortrayalError
from portrayal.report.live.evidence import SORTS as EVIDENCE_SORTS
from portrayal.report.live.evidence import Evidence, Wanted
from portrayal.report.live.images import Images, SmallPictures, picture_type
from portrayal.report.live.measurements import FILTERS, SORTS, Listing
from portrayal.report.page.page import PAGE_FILE
from portrayal.results import ResultsFile

PAGE_SIZE, LARGEST_PAGE = 50, 200
LONGEST_TEXT = 1_000  # of what a query may hold
_MOST_FIELDS = 20

_OWN = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
POLICY = f"{_OWN}; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
# The written page brings its one script and style with it, and a policy that names both by their digests. It may be
# anybody's, so it is kept apart from the rest of what is served here.
PAGE_POLICY = (
    f"{_OWN}; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-scripts allow-forms allow-downloads"
)


class Refused(PortrayalError):
    """A question that gets no answer, with the status that says so."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Answer:
    body: bytes
    kind: str
    status: HTTPStatus = HTTPStatus.OK
    policy: str = POLICY
    keep: bool = False  # whether a browser may keep it for a while


Query = Mapping[str, str]


class Answers:
    """Everything about one results folder that can be asked for."""

    def __init__(self, results: ResultsFile, images: Images | None = None) -> None:
        self._results = results
        self.evidence = Evidence(results)
        self._small = SmallPictures(results)
        self._images = images or Images()
        self._listing = Listing(results.measurements, self.evidence.count)
        self._stamp = self._stamps()
        self._routes: dict[str, Callable[[Query], Answer]] = {
            "/": lambda _: _template("view.html", "text/html"),
            "/view.js": lambda _: _template("view.js", "text/javascript"),
            "/view.css": lambda _: _template("view.css", "text/css"),
            "/favicon.ico": lambda _: Answer(b"", "image/x-icon", keep=True),  # browsers ask by themselves
            "/page": lambda _: self._page(),
            "/api/results": lambda _: self._about(),
            "/api/measurements": self._find,
            "/api/evidence": self._behind,
            "/api/picture": lambda query: self._picture(self._small.read(_needed(query, "image"))),
            "/image": lambda query: self._picture(self._images.read(_needed(query, "image"))),
        }

    def answer(self, target: str) -> Answer:
        """The answer to a request's target. A path is looked up as it stands: nothing in it is ever a file's name."""
        try:
            parts = urlsplit(target)
            pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "This address cannot be read.") from None
        route = self._routes.get(parts.path)
        if route is None or parts.netloc or parts.scheme:
            raise Refused(HTTPStatus.NOT_FOUND, "There is nothing at this address.")
        if any(len(text) > LONGEST_TEXT for pair in pairs for text in pair):
            raise Refused(HTTPStatus.BAD_REQUEST, f"A query may hold {LONGEST_TEXT:,} characters at most.")
        return route(dict(pairs))

    def _page(self) -> Answer:
        folder = self._results.path.parent.resolve()
        path = (folder / PAGE_FILE).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            raise Refused(HTTPStatus.NOT_FOUND, f"This folder holds no {PAGE_FILE}.")
        return Answer(path.read_bytes(), "text/html; charset=utf-8", policy=PAGE_POLICY)

    def _about(self) -> Answer:
        folder = self._results.path.parent
        return _json(
            {
                "folder": folder.resolve().name,
                "provenance": {k: v for k, v in self._results.provenance.items() if k != "cards"},
                "cards": self._results.provenance.get("cards"),
                "measurements": len(self._listing),
                "images": len(self._images),
                "page": (folder / PAGE_FILE).is_file(),
            }
        )

    def _find(self, query: Query) -> Answer:
        filters = {name: query[name] or None for name in FILTERS if name in query}
        sort, descending = _choice(query, "sort", SORTS), _choice(query, "order", ("", "down")) == "down"
        found = self._listing.find(filters, query.get("search", ""), sort, descending)
        page, size = _paging(query)
        shown = found.measurements[(page - 1) * size : page * size]
        rows = [self._listing.told(m) for m in shown]
        return _json(_paged(len(found.measurements), page, size, rows) | {"choices": found.choices})

    def _behind(self, query: Query) -> Answer:
        measurement = self._listing.get(_needed(query, "id"))
        if measurement is None:
            raise Refused(HTTPStatus.NOT_FOUND, "No measurement has this id.")
        self._check_unchanged()
        page, size = _paging(query)
        wanted = Wanted(
            measurement.id,
            query.get("search", ""),
            query.get("system"),
            _choice(query, "sort", tuple(EVIDENCE_SORTS)),
        )
        found = self.evidence.page(wanted, page, size)
        rows = [
            {
                "image": row["image_id"],
                "system": row["system"],
                "caption": row["caption"],
                "detail": row["detail"],
                "small": row["image_id"] in self._small,
                "full": row["image_id"] in self._images,
            }
            for row in found.rows
        ]
        systems = self.evidence.systems(measurement.id)
        about = {"measurement": self._listing.told(measurement), "systems": systems}
        return _json(_paged(found.total, page, size, rows) | about)

    def _picture(self, data: bytes | None) -> Answer:
        kind = None if data is None else picture_type(data)
        if data is None or kind is None:
            raise Refused(HTTPStatus.NOT_FOUND, "There is no picture of this image.")
        return Answer(data, kind, keep=True)

    def _check_unchanged(self) -> None:
        """Places of rows hold for the file they were read from."""
        if self._stamps() != self._stamp:
            raise Refused(
                HTTPStatus.CONFLICT, "The results have changed; end the command and start it again."
            )

    def _stamps(self) -> list[tuple[int, int] | None]:
        return [_stamp(path) for path in (self._results.path, *self._results.beside.values())]


def refusal(status: HTTPStatus, reason: str) -> Answer:
    return _json({"error": reason}, status)


def _template(name: str, kind: str) -> Answer:
    text = (resources.files("portrayal.report") / "templates" / name).read_bytes()
    return Answer(text, f"{kind}; charset=utf-8")


def _json(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    """ASCII alone, so that any text can be sent, even half of a surrogate pair."""
    text = json.dumps(value, allow_nan=False)
    return Answer(text.encode("ascii"), "application/json", status)


def _paged(total: int, page: int, size: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"total": total, "page": page, "size": size, "pages": -(-total // size), "rows": rows}


def _paging(query: Query) -> tuple[int, int]:
    return _whole(query, "page", 1, 10**9), _whole(query, "size", PAGE_SIZE, LARGEST_PAGE)


def _whole(query: Query, name: str, usual: int, most: int) -> int:
    text = query.get(name) or str(usual)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
    if not 1 <= number <= most:
        raise Refused(HTTPStatus.BAD_REQUEST, f"'{name}' must be a whole number from 1 to {most:,}.")
    return number


def _choice(query: Query, name: str, known: tuple[str, ...]) -> str:
    value = query.get(name, "")
    if value not in known:
        raise Refused(
            HTTPStatus.BAD_REQUEST, f"'{name}' must be one of {', '.join(filter(None, known))}, or empty."
        )
    return value


def _needed(query: Query, name: str) -> str:
    if not query.get(name):
        raise Refused(HTTPStatus.BAD_REQUEST, f"'{name}' must be given.")
    return query[name]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
