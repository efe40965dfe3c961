"""A tap: passes requests and answers on as they come, and notes what went through.

One stands between the client and the proxy (what the client sees), one between the proxy and the simulator (what is
refused, and what is billed).
"""

import asyncio
import gzip
import json
import threading
import time
import zlib

from aiohttp import ClientConnectionResetError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from multidict import CIMultiDict

HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}
BODY_BYTES_MAX = 64 * 1024 * 1024


def unpacked(body: bytes, encoding: str) -> bytes:
    try:
        if encoding == "gzip":
            return gzip.decompress(body)
        if encoding == "deflate":
            return zlib.decompress(body)
        if encoding == "zstd":
            import zstandard

            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    except (OSError, zlib.error, EOFError, ValueError):
        return b""
    return body


def as_json(body: bytes):
    try:
        return json.loads(body)
    except ValueError:
        return None


def merged(into: dict, usage: object) -> None:
    """A later value overwrites an earlier one."""
    if isinstance(usage, dict):
        into.update({key: value for key, value in usage.items() if value is not None})


def usage_of(body: bytes, content_type: str) -> dict:
    """What an answer says that it used; empty if it says nothing."""
    usage: dict = {}
    if "event-stream" in content_type:
        for line in body.splitlines():
            if not line.startswith(b"data:"):
                continue
            event = as_json(line[5:])
            if isinstance(event, dict):
                for holder in (event, event.get("message"), event.get("response")):
                    if isinstance(holder, dict):
                        merged(usage, holder.get("usage"))
    else:
        answer = as_json(body)
        if isinstance(answer, dict):
            merged(usage, answer.get("usage"))
    return usage


class Tap:
    """Listens on a free port of this machine; `url` says where. `seen` has one entry for each request."""

    def __init__(self, upstream: str):
        self.upstream = upstream.rstrip("/")
        self.seen: list[dict] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(20)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()

    async def _start(self) -> None:
        self._session = ClientSession(
            auto_decompress=False,
            timeout=ClientTimeout(total=None),
            connector=TCPConnector(limit=0),
            cookie_jar=DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        application = web.Application(client_max_size=BODY_BYTES_MAX)
        application.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(application, access_log=None, auto_decompress=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def is_quiet(self) -> bool:
        """Whether all answers have ended."""
        return all(seen.get("done") or seen["method"] == "UPGRADE" for seen in self.seen)

    def close(self) -> None:
        async def end() -> None:
            await self._runner.cleanup()
            await self._session.close()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("upgrade"):
            # As a plain server does that knows no web sockets.
            self.seen.append({"path": request.path, "method": "UPGRADE", "status": 426, "usage": {}, "body": None})
            return web.Response(status=426)
        body = await request.read()
        headers = CIMultiDict((k, v) for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP)
        plain = unpacked(body, request.headers.get("content-encoding", "").lower())
        noted = {
            "at": time.time(),
            "method": request.method,
            "path": request.path,
            "headers": {k.lower(): v for k, v in request.headers.items()},
            "body": as_json(plain),
            "status": 0,
            "usage": {},
        }
        self.seen.append(noted)
        url = self.upstream + request.raw_path
        async with self._session.request(
            request.method, url, data=body, headers=headers, allow_redirects=False
        ) as answer:
            noted["status"] = answer.status
            noted["answer_headers"] = {k.lower(): v for k, v in answer.headers.items()}
            response = web.StreamResponse(status=answer.status, reason=answer.reason)
            for key, value in answer.headers.items():
                if key.lower() not in HOP_BY_HOP:
                    response.headers.add(key, value)
            # If the client hangs up, the answer is still read to its end: it is billed all the same.
            noted["cancelled"] = False
            kept = bytearray()
            try:
                await response.prepare(request)
            except ClientConnectionResetError:
                noted["cancelled"] = True
            async for chunk in answer.content.iter_any():
                kept += chunk
                if not noted["cancelled"]:
                    try:
                        await response.write(chunk)
                    except ClientConnectionResetError:
                        noted["cancelled"] = True
            if not noted["cancelled"]:
                try:
                    await response.write_eof()
                except ClientConnectionResetError:
                    # Clients of streams may hang up behind the last event.
                    pass
        said = unpacked(bytes(kept), answer.headers.get("content-encoding", "").lower())
        noted["usage"] = usage_of(said, answer.headers.get("content-type", ""))
        if answer.status >= 400:
            noted["error"] = said.decode("utf-8", "replace")[:2000]
        noted["answer"] = said.decode("utf-8", "replace")
        noted["done"] = True
        return response
