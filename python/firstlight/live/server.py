"""The page of an experiment, served on this machine alone.

The server listens on the loopback address. Its pages stand below a random token, so that another user or
another page of the browser cannot find them; a request that names another host or comes from another origin
is refused.
"""

import hmac
import secrets
import socket
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from firstlight.errors import FirstlightError, RunError
from firstlight.live.bench import Bench, Stale
from firstlight.pages.report import page_of

LOOPBACK = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TEMPLATES = Path(__file__).parent / "assets"


class Server:
    """One experiment's page."""

    def __init__(self, bench: Bench, port: int = 0) -> None:
        """Take a port of the loopback address, 0 for any; raises :class:`RunError` if it is taken."""
        self.bench = bench
        self.token = secrets.token_urlsafe(24)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((LOOPBACK, port))
            self.socket.listen()
        except OSError as e:
            self.socket.close()
            another = "name another one with --port, or leave it out for any free one"
            raise RunError(f"port {port} of {LOOPBACK}: {e.strerror}; {another}") from None
        self.port = int(self.socket.getsockname()[1])
        self._hosts = {f"{name}:{self.port}" for name in (LOOPBACK, "localhost")}

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until Ctrl-C."""
        config = uvicorn.Config(self.application(), log_level="warning", lifespan="off", server_header=False)
        uvicorn.Server(config).run(sockets=[self.socket])

    def application(self) -> Starlette:
        """The pages: the experiment's, and what it asks for reruns."""
        return Starlette(
            routes=[
                Route("/{token}/", self._page, methods=["GET"]),
                Route("/{token}/run", self._run, methods=["POST"]),
                Route("/{rest:path}", self._refused, methods=["GET", "POST"]),
            ]
        )

    def _fault(self, request: Request) -> str:
        """Why a request is refused; empty if it is not."""
        token = str(request.path_params.get("token", ""))
        if request.headers.get("host") not in self._hosts:
            return f"this page is for the machine that it runs on: open {LOOPBACK}:{self.port}"
        origin = request.headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return f"a page of {origin[:100]} may not ask here"
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return "wrong token: open the address that `firstlight live` printed, whole"
        return ""

    async def _refused(self, request: Request) -> Response:
        return PlainTextResponse(self._fault(request) or "no such page", status_code=403, headers=HEADERS)

    async def _page(self, request: Request) -> Response:
        if fault := self._fault(request):
            return PlainTextResponse(fault, status_code=403, headers=HEADERS)
        nonce = secrets.token_urlsafe(16)
        page = page_of(
            TEMPLATES / "live.html",
            title=f"{self.bench.name}, live",
            scripts=["live.js", "server.js"],
            nonce=nonce,
            knobs=[knob.as_dict() for knob in self.bench.knobs()],
        )
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return HTMLResponse(page, headers={**HEADERS, "Content-Security-Policy": policy})

    async def _run(self, request: Request) -> Response:
        if fault := self._fault(request):
            return PlainTextResponse(fault, status_code=403, headers=HEADERS)
        try:
            settings = await request.json()
        except ValueError:
            settings = None
        if not isinstance(settings, dict):
            return _error("the request has no settings: a JSON object with keys such as voq.large", 400)
        try:
            frame = await run_in_threadpool(self.bench.run, settings)
        except Stale as e:
            return _error(str(e), 409)
        except FirstlightError as e:
            return _error(str(e), 422)
        return JSONResponse(frame, headers=HEADERS)


def _error(text: str, status: int) -> Response:
    content: dict[str, Any] = {"error": text}
    return JSONResponse(content, status_code=status, headers=HEADERS)
