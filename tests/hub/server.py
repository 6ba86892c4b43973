"""A server on the loopback interface that speaks as much of the hub's protocol as the hub library uses.

    server = HubServer()
    server.add("owner/name", "config.json", b"{}")            # one more commit of the repository
    server.add("owner/name", "model.safetensors", data, linked=True)   # a large file: redirect to a second address
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    ...
    server.stop()

Plain addresses live under `/files/`. `server.requests` lists what was asked; `truncate_next` cuts one answer short.
"""

import contextlib
import hashlib
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote


class Request(NamedTuple):
    """One request as it came in."""

    method: str
    path: str
    range: str | None
    known: str | None


class _Stored(NamedTuple):
    data: bytes
    linked: bool = False

    @property
    def etag(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class HubServer:
    """Repositories and plain files over HTTP, on a port of the system's choice, until `stop`.

    Attributes:
        url: The endpoint, without a slash at its end.
        requests: Every request so far.
        status: When set, every answer is this HTTP status and empty.
        delay: Seconds every answer takes.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status: int | None = None
        self.delay = 0.0
        self.silence = threading.Event()
        self.commits: dict[str, list[str]] = {}
        self._snapshots: dict[tuple[str, str], dict[str, _Stored]] = {}
        self._plain: dict[str, tuple[bytes, dict[str, str]]] = {}
        self._linked: dict[str, bytes] = {}
        self._moved: dict[str, str] = {}
        self._gated: set[str] = set()
        self._cuts: list[int | None] = []
        self._open: set[socket.socket] = set()
        handler = type("Handler", (_Handler,), {"hub": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        # The library follows redirects within a host by itself; large files of the hub are on another host.
        self.cdn = f"http://localhost:{self._http.server_address[1]}/cdn"

    def add(self, repo: str, filename: str, data: bytes, *, linked: bool = False) -> str:
        """Put a file into a repository and return the new commit; earlier commits stay readable."""
        history = self.commits.setdefault(repo, [])
        files = dict(self._snapshots[repo, history[-1]]) if history else {}
        files[filename] = _Stored(data, linked)
        text = "".join(f"{name}\0{file.etag}\0" for name, file in sorted(files.items()))
        commit = hashlib.sha1(f"{repo}\0{len(history)}\0{text}".encode()).hexdigest()
        history.append(commit)
        self._snapshots[repo, commit] = files
        self._linked[files[filename].etag] = data
        return commit

    def add_plain(self, path: str, data: bytes, headers: Mapping[str, str] | None = None) -> str:
        """Put a file at a plain address and return it. `headers` default to an ETag of the contents."""
        etag = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"'}
        self._plain[f"/files/{path}"] = (data, dict(etag if headers is None else headers))
        return f"{self.url}/files/{path}"

    def rename(self, old: str, new: str) -> None:
        """Answer for `old` with a redirect to `new`, as the hub does for a renamed repository."""
        self._moved[old] = new

    def gate(self, repo: str) -> None:
        """Let nobody in."""
        self._gated.add(repo)

    def truncate_next(self, sent: int | None = None) -> None:
        """Cut the body of the next GET that has one: half of it, or `sent` bytes, then the connection closes."""
        self._cuts.append(sent)

    def gets(self) -> list[str]:
        """Paths of the GET requests: what was downloaded, or tried to."""
        return [request.path for request in self.requests if request.method == "GET"]

    def stop(self) -> None:
        """Close the port and all connections. Safe to call twice."""
        self.silence.set()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes = b""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    hub: HubServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.hub._open.add(self.connection)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # whoever asked may have given up
            super().handle()

    def finish(self) -> None:
        self.hub._open.discard(self.connection)
        super().finish()

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on stderr."""

    def _answer(self, *, body: bool) -> None:
        wanted, known = self.headers.get("Range"), self.headers.get("If-None-Match")
        if self.hub.delay:
            self.hub.silence.wait(self.hub.delay)
        self.hub.requests.append(Request(self.command, self.path, wanted, known))
        answer = self._find() if self.hub.status is None else _Answer(self.hub.status, {})
        status, headers, data = answer.status, dict(answer.headers), answer.body
        if status == 200 and known is not None and known == headers.get("ETag"):
            status, data = 304, b""
        elif status == 200 and wanted is not None:
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(data) - 1}/{len(data)}"
            data = data[start:]
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(data))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if body and data:
            self._send(data)

    def _send(self, data: bytes) -> None:
        if self.hub._cuts:
            sent = self.hub._cuts.pop(0)
            data = data[: len(data) // 2 if sent is None else sent]
            self.close_connection = True
        self.wfile.write(data)

    def _find(self) -> _Answer:
        if self.path in self.hub._plain:
            data, headers = self.hub._plain[self.path]
            return _Answer(200, headers, data)
        if self.path.startswith("/cdn/") and (data := self.hub._linked.get(self.path[5:], b"")):
            return _Answer(200, {"ETag": f'"{self.path[5:]}"'}, data)
        repo, found, rest = self.path.lstrip("/").partition("/resolve/")
        revision, _, filename = rest.partition("/")
        if repo in self.hub._moved:
            return _Answer(307, {"Location": f"/{self.hub._moved[repo]}/resolve/{rest}"})
        return self._resolve(repo, unquote(revision), unquote(filename)) if found else _Answer(404, {})

    def _resolve(self, repo: str, revision: str, filename: str) -> _Answer:
        """One file of a repository; names of the headers as in `huggingface_hub.constants`."""
        history = self.hub.commits.get(repo)
        if history is None:
            return _Answer(401, {"X-Error-Code": "RepoNotFound"})
        if repo in self.hub._gated:
            return _Answer(403, {"X-Error-Code": "GatedRepo"})
        commit = history[-1] if revision in ("main", "refs/pr/1") else revision
        files = self.hub._snapshots.get((repo, commit))
        if files is None:
            return _Answer(404, {"X-Error-Code": "RevisionNotFound"})
        headers = {"X-Repo-Commit": commit}
        if (file := files.get(filename)) is None:
            return _Answer(404, headers | {"X-Error-Code": "EntryNotFound"})
        if file.linked:
            size = {"X-Linked-ETag": f'"{file.etag}"', "X-Linked-Size": str(len(file.data))}
            return _Answer(302, headers | size | {"Location": f"{self.hub.cdn}/{file.etag}"})
        return _Answer(200, headers | {"ETag": f'"{file.etag}"'}, file.data)
