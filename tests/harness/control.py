"""A client for the control socket that uses only the standard library."""

import base64
import json
import os
import socket
import struct
from urllib.parse import urlparse

from .talk import SECONDS, exact

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Control:
    """A control socket, with an optional token."""

    def __init__(self, url, token=None):
        where = urlparse(url)
        self.socket = socket.create_connection((where.hostname, where.port), timeout=SECONDS)
        self.buffer = b""
        self.last = 0
        key = base64.b64encode(os.urandom(16)).decode()
        head = [
            "GET /control HTTP/1.1", f"Host: {where.netloc}", "Connection: Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: toolyard.control.v1",
        ] + ([f"Authorization: Bearer {token}"] if token else [])
        self.socket.sendall("\r\n".join([*head, "", ""]).encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        answer, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if not answer.startswith(b"HTTP/1.1 101 "):
            raise ConnectionError(answer.decode(errors="replace"))
        self.welcome = json.loads(self._message())

    def ask(self, subtype, **fields):
        """Sends a request and returns its response with the original key order and number texts."""
        return dict(exact(self._response(subtype, fields)))["response"]

    def fetch(self, subtype, **fields):
        """Sends a request and returns its response as dictionaries."""
        return json.loads(self._response(subtype, fields))["response"]

    def _response(self, subtype, fields):
        self.last += 1
        self._send(TEXT, json.dumps({"id": self.last, "subtype": subtype, **fields}).encode())
        while True:
            text = self._message()
            message = json.loads(text)
            if message.get("id") == self.last and message["type"] == "response":
                return text
            if message.get("id") == self.last and message["type"] == "error":
                raise ConnectionError(message["error"]["message"])

    def event(self, matches=lambda event: True):
        """Waits for the next event that matches."""
        while True:
            message = json.loads(self._message())
            if message["type"] == "event" and matches(message):
                return message

    def close(self):
        self.socket.close()

    def _more(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the yard closed the connection")
        self.buffer += data

    def _take(self, number):
        while len(self.buffer) < number:
            self._more()
        taken, self.buffer = self.buffer[:number], self.buffer[number:]
        return taken

    def _message(self):
        """Returns the next message as text."""
        parts = b""
        while True:
            first, second = self._take(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self._take(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._take(8))
            data, opcode = self._take(length), first & 0x0F
            if opcode == PING:
                self._send(PONG, data)
            elif opcode == CLOSE:
                raise ConnectionError(f"closed with {struct.unpack('>H', data[:2])[0]}")
            elif opcode != PONG:
                parts += data
                if first & 0x80:
                    return parts.decode()

    def _send(self, opcode, data):
        length = len(data)
        if length < 126:
            head = struct.pack(">BB", 0x80 | opcode, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack(">BBH", 0x80 | opcode, 0x80 | 126, length)
        else:
            head = struct.pack(">BBQ", 0x80 | opcode, 0x80 | 127, length)
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))
