"""A WebSocket client for POST /v1/responses."""

import base64
import json
import os
import socket
import struct

URL = "/v1/responses"
TIMEOUT_S = 1200 if "SLUICE_SANITIZED" in os.environ else 60


class WebSocketClient:
    """Enough of RFC 6455 to talk to the server."""

    def __init__(self, port, path=URL, api_key="none"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                            f"Sec-WebSocket-Key: {key}\r\n"
                            f"Authorization: Bearer {api_key}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline() not in (b"\r\n", b""):
            pass

    def frame(self, kind, data):
        mask = os.urandom(4)
        size = len(data)
        head = (bytes([0x80 | kind]) + (bytes([0x80 | size]) if size < 126 else
                                        b"\xfe" + struct.pack(">H", size) if size < 65536 else
                                        b"\xff" + struct.pack(">Q", size)))
        body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(head + mask + body)

    def send(self, **fields):
        self.frame(1, json.dumps({"type": "response.create", "max_output_tokens": 8,
                                  "temperature": 0, "ignore_eos": True} | fields).encode())

    def receive(self):
        """(kind, data) of the next frame"""
        head = self.file.read(2)
        if not head[0] & 0x80:
            raise AssertionError("expected every event in one frame")
        size = head[1] & 127
        if size == 126:
            size, = struct.unpack(">H", self.file.read(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.file.read(8))
        return head[0] & 15, self.file.read(size)

    def event(self):
        kind, data = self.receive()
        if kind != 1:
            raise AssertionError(f"expected text, got {kind} {data}")
        return json.loads(data)

    def turn(self, **fields):
        """The events of one response."""
        self.send(**fields)
        events = [self.event()]
        while events[-1]["type"] not in ("response.completed", "response.incomplete",
                                         "response.failed", "error"):
            events.append(self.event())
        return events

    def close(self):
        self.file.close()
        self.socket.close()
