"""Stands in for the model server's wheel: does what the first words of the model file say."""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace


class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(
            model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
        )


class Server:
    def __init__(self, params):
        behaviour = Path(params.model.path).read_bytes().removeprefix(b"GGUF ").decode()
        sys.stdout.write("chatter on stdout\n")
        sys.stdout.flush()
        if behaviour == "refuse":
            sys.stderr.write("cannot read this tensor\n")
            raise RuntimeError("failed to start")
        if behaviour == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if behaviour == "hang":
            # Says where it is, for the test that kills its owner now.
            Path(params.model.path).with_suffix(".loading").write_text(str(os.getpid()))
            # Keeps the interpreter's lock, as the loading of a real model does.
            ctypes.PyDLL(None).pause()
        sys.stderr.write("a line left open")
        sys.stderr.flush()
        self._http = ThreadingHTTPServer((params.hostnames[0], params.port), _Handler)
        self._http.models = sorted(params.model_alias)
        self._http.threads = [params.cpuparams.n_threads, params.cpuparams_batch.n_threads]
        self._http.behaviour = behaviour
        self._http.asked = Path(params.model.path).with_suffix(".asked")
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def listening_address(self):
        elsewhere = self._http.behaviour.startswith("http://")
        return self._http.behaviour if elsewhere else f"http://127.0.0.1:{self._http.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        models = [{"id": name, "at_s": time.time()} for name in self.server.models]
        about = {"path": self.path, "pid": os.getpid(), "threads": self.server.threads}
        body = json.dumps(about | {"data": models}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.behaviour != "say nothing":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._chunk({"role": "assistant"})
        if self.server.behaviour == "cut":
            self.server.behaviour = "serve"
            self.close_connection = True
            return
        if self.server.behaviour != "serve":
            # Says who it is, for the test that kills it now.
            started = self.server.asked.with_suffix(".tmp")
            started.write_text(str(os.getpid()))
            started.replace(self.server.asked)
            signal.pause()
        self._chunk({"content": str(os.getpid())})
        self._chunk({}, "stop")
        self._write("data: [DONE]\n\n")
        self._write("")

    def _chunk(self, delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._write(f"data: {json.dumps({'choices': [choice]})}\n\n")

    def _write(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
