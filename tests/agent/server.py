"""A server in a thread that stands in for the API server: one Node, its Leases, nothing else."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


class ApiStand:
    """`conditions` are what was patched, `calls` what was asked; `fail_with` answers everything."""

    def __init__(self) -> None:
        self.conditions: dict[str, Json] = {}
        self.leases: dict[str, Json] = {}
        self.notes: dict[str, str] = {}
        self.calls: list[tuple[str, str, str]] = []
        self.patches: list[list[str]] = []
        self.tokens: list[str] = []
        self.fail_with = 0
        self.changed = threading.Condition()
        stand = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stand.answer(self)

            do_PATCH = do_POST = do_GET  # noqa: N815 - names of the library

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        size = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(size)) if size else {}
        with self.changed:
            kind = request.headers.get("Content-Type", "")
            self.calls.append((request.command, request.path, kind))
            self.tokens.append(request.headers.get("Authorization", ""))
            code, said = (self.fail_with, {}) if self.fail_with else self._do(request, body)
            self.changed.notify_all()
        text = json.dumps(said).encode()
        request.send_response(code)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def _do(self, request: BaseHTTPRequestHandler, body: Json) -> tuple[int, Json]:
        path = request.path.partition("?")[0]
        if path == "/api/v1/nodes/n1/status":
            if request.command == "PATCH":
                new = body["status"]["conditions"]
                self.patches.append([each["type"] for each in new])
                for each in new:
                    self.conditions[each["type"]] = {
                        **self.conditions.get(each["type"], {}),
                        **each,
                    }
            return 200, {"status": {"conditions": list(self.conditions.values())}}
        name = path.rpartition("/")[2]
        self.notes = body["metadata"]["annotations"]
        if request.command == "POST":
            self.leases[body["metadata"]["name"]] = body["spec"]
        elif name in self.leases:
            self.leases[name].update(body["spec"])
        else:
            return 404, {"reason": "NotFound", "message": f"leases {name!r} not found"}
        return 200, {}

    def wait_until(self, so: Any, seconds: float = 30.0) -> None:
        """Until `so()` is true after some call; fails loudly when it never is."""
        with self.changed:
            assert self.changed.wait_for(so, seconds), f"never happened; calls: {self.calls[-20:]}"

    def status(self, kind: str) -> tuple[str, str]:
        said = self.conditions.get(f"gpumend.io/{kind}", {})
        return said.get("status", ""), said.get("reason", "")
