"""The routes of the live page: a fixed table of paths, each with a function from a query to a response."""

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
from portrayal.report.live.evidence import EvidenceQuery, EvidenceStore
from portrayal.report.live.images import ImageFolder, Thumbnails, image_media_type
from portrayal.report.live.measurements import FILTERS, SORTS, MeasurementIndex
from portrayal.report.page.page import PAGE_FILE
from portrayal.results import ResultsFile

PAGE_SIZE, MAX_PAGE_SIZE = 50, 200
MAX_QUERY_TEXT = 1_000  # characters of a name or value in a query
_MAX_FIELDS = 20

_BASE_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
POLICY = f"{_BASE_POLICY}; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
# The static page embeds its script and style, with a policy of its own that names their hashes. It may come from
# anyone, so it is sandboxed.
PAGE_POLICY = (
    f"{_BASE_POLICY}; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-scripts allow-forms allow-downloads"
)


class HttpError(PortrayalError):
    """A request that is refused, with its HTTP status."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Response:
    body: bytes
    content_type: str
    status: HTTPStatus = HTTPStatus.OK
    csp: str = POLICY
    cacheable: bool = False


Query = Mapping[str, str]


class Routes:
    """The routes of one results folder."""

    def __init__(self, results: ResultsFile, images: ImageFolder | None = None) -> None:
        self._results = results
        self.evidence = EvidenceStore(results)
        self._thumbnails = Thumbnails(results)
        self._images = images or ImageFolder()
        self._index = MeasurementIndex(results.measurements, self.evidence.count)
        self._initial_states = self._file_states()
        self._routes: dict[str, Callable[[Query], Response]] = {
            "/": lambda _: _template("view.html", "text/html"),
            "/view.js": lambda _: _template("view.js", "text/javascript"),
            "/view.css": lambda _: _template("view.css", "text/css"),
            "/favicon.ico": lambda _: Response(
                b"", "image/x-icon", cacheable=True
            ),  # browsers request it unasked
            "/page": lambda _: self._page(),
            "/api/results": lambda _: self._about(),
            "/api/measurements": self._find,
            "/api/evidence": self._evidence,
            "/api/thumbnail": lambda query: self._image(self._thumbnails.read(_required(query, "image"))),
            "/image": lambda query: self._image(self._images.read(_required(query, "image"))),
        }

    def respond(self, target: str) -> Response:
        """The response to a request's target. A path is only looked up among the routes, never used as a file name."""
        try:
            parts = urlsplit(target)
            pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise HttpError(HTTPStatus.BAD_REQUEST, "This address cannot be read.") from None
        route = self._routes.get(parts.path)
        if route is None or parts.netloc or parts.scheme:
            raise HttpError(HTTPStatus.NOT_FOUND, "There is nothing at this address.")
        if any(len(text) > MAX_QUERY_TEXT for pair in pairs for text in pair):
            raise HttpError(
                HTTPStatus.BAD_REQUEST, f"A query may hold {MAX_QUERY_TEXT:,} characters at most."
            )
        return route(dict(pairs))

    def _page(self) -> Response:
        folder = self._results.path.parent.resolve()
        path = (folder / PAGE_FILE).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            raise HttpError(HTTPStatus.NOT_FOUND, f"This folder holds no {PAGE_FILE}.")
        return Response(path.read_bytes(), "text/html; charset=utf-8", csp=PAGE_POLICY)

    def _about(self) -> Response:
        folder = self._results.path.parent
        return _json(
            {
                "folder": folder.resolve().name,
                "provenance": {k: v for k, v in self._results.provenance.items() if k != "cards"},
                "cards": self._results.provenance.get("cards"),
                "measurements": len(self._index),
                "images": len(self._images),
                "page": (folder / PAGE_FILE).is_file(),
            }
        )

    def _find(self, query: Query) -> Response:
        filters = {name: query[name] or None for name in FILTERS if name in query}
        sort, descending = _choice(query, "sort", SORTS), _choice(query, "order", ("", "down")) == "down"
        matches = self._index.find(filters, query.get("search", ""), sort, descending)
        page, size = _paging(query)
        shown = matches.measurements[(page - 1) * size : page * size]
        rows = [self._index.as_row(m) for m in shown]
        return _json(_paged(len(matches.measurements), page, size, rows) | {"choices": matches.choices})

    def _evidence(self, query: Query) -> Response:
        measurement = self._index.get(_required(query, "id"))
        if measurement is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "No measurement has this id.")
        self._check_unchanged()
        page, size = _paging(query)
        evidence_query = EvidenceQuery(
            measurement.id,
            query.get("search", ""),
            query.get("system"),
            _choice(query, "sort", tuple(EVIDENCE_SORTS)),
        )
        evidence_page = self.evidence.page(evidence_query, page, size)
        rows = [
            {
                "image": row["image_id"],
                "system": row["system"],
                "caption": row["caption"],
                "detail": row["detail"],
                "thumbnail": row["image_id"] in self._thumbnails,
                "full": row["image_id"] in self._images,
            }
            for row in evidence_page.rows
        ]
        systems = self.evidence.systems(measurement.id)
        about = {"measurement": self._index.as_row(measurement), "systems": systems}
        return _json(_paged(evidence_page.total, page, size, rows) | about)

    def _image(self, data: bytes | None) -> Response:
        kind = None if data is None else image_media_type(data)
        if data is None or kind is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "There is no such image.")
        return Response(data, kind, cacheable=True)

    def _check_unchanged(self) -> None:
        """Refuse the request if a file has changed, since row indices hold for the file they were read from."""
        if self._file_states() != self._initial_states:
            raise HttpError(HTTPStatus.CONFLICT, "The results have changed; restart the command.")

    def _file_states(self) -> list[tuple[int, int] | None]:
        return [_file_state(path) for path in (self._results.path, *self._results.files.values())]


def error_response(status: HTTPStatus, reason: str) -> Response:
    return _json({"reason": reason}, status)


def _template(name: str, kind: str) -> Response:
    text = (resources.files("portrayal.report") / "templates" / name).read_bytes()
    return Response(text, f"{kind}; charset=utf-8")


def _json(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A response in ASCII, which can hold any text, even a lone surrogate."""
    text = json.dumps(value, allow_nan=False)
    return Response(text.encode("ascii"), "application/json", status)


def _paged(total: int, page: int, size: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"total": total, "page": page, "size": size, "pages": -(-total // size), "rows": rows}


def _paging(query: Query) -> tuple[int, int]:
    return _integer(query, "page", 1, 10**9), _integer(query, "size", PAGE_SIZE, MAX_PAGE_SIZE)


def _integer(query: Query, name: str, default: int, maximum: int) -> int:
    text = query.get(name) or str(default)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
    if not 1 <= number <= maximum:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"'{name}' must be a whole number from 1 to {maximum:,}.")
    return number


def _choice(query: Query, name: str, choices: tuple[str, ...]) -> str:
    value = query.get(name, "")
    if value not in choices:
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"'{name}' must be one of {', '.join(filter(None, choices))}, or empty."
        )
    return value


def _required(query: Query, name: str) -> str:
    if not query.get(name):
        raise HttpError(HTTPStatus.BAD_REQUEST, f"'{name}' must be given.")
    return query[name]


def _file_state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
