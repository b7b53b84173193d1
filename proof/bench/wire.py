"""A caller that costs next to nothing, so that what is measured is the server."""

import asyncio
import re
from urllib.parse import urlsplit

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Wire:
    """One request, sent over and over on kept connections, as many as are needed at once.

    A client that is made for comfort takes longer for a request than the server for its answer.
    """

    def __init__(self, address: str, path: str, headers: dict[str, str], body: bytes) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname, parts.port
        sent = {"Host": parts.netloc, "Content-Length": str(len(body)), **headers}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        self._request = "\r\n".join([*lines, "", ""]).encode() + body
        self._lines: list[Line] = []
        self._free: list[Line] = []

    async def send(self) -> None:
        """Send it and read the answer, which must be that something was created."""
        line = await self._line()
        reader, writer = line
        writer.write(self._request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not head.startswith(b"HTTP/1.1 201 ") or length is None:
            raise RuntimeError(f"The server answered: {head.decode(errors='replace')}")
        await reader.readexactly(int(length[1]))
        self._free.append(line)

    async def _line(self) -> Line:
        """A connection the server has not given up meanwhile, as it does with idle ones."""
        while self._free:
            line = self._free.pop()
            if not (line[0].at_eof() or line[1].is_closing()):
                return line
        return await self._connect()

    async def close(self) -> None:
        """Hang up."""
        for _, writer in self._lines:
            writer.close()
            await writer.wait_closed()

    async def _connect(self) -> Line:
        line = await asyncio.open_connection(self._host, self._port)
        self._lines.append(line)
        return line
