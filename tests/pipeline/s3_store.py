"""An S3 store in the memory of this process, with the requests that Arrow uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from pipeline.storage.filesystems import open_store

BUCKET = "bucket"

_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@dataclass
class Bucket:
    """
    A bucket of the store.

    Attributes:
        url: Endpoint of the store.
        objects: Contents by key.
        parts: Parts of uploads in progress.
        unreadable: Byte ranges of objects; reads that include them fail.
    """

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables for Arrow."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def bucket() -> Iterator[Bucket]:
    """Serve an empty bucket for a `with`."""
    kept = Bucket()

    class Handler(_Handler):
        bucket = kept

    with _Server(("127.0.0.1", 0), Handler) as server:
        # Arrow may have cached another store under this name.
        open_store.cache_clear()
        kept.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    """On a busy machine many connections wait, and clients retry a refused one only a few times."""


def _element(name: str, inside: str = "") -> bytes:
    return f"<{name} {_NAMESPACE}>{inside}</{name}>".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _key_and_query(self) -> tuple[str, dict[str, str]]:
        """Return the key and the query."""
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, True).items()}
        return unquote(parts.path).removeprefix(f"/{BUCKET}").removeprefix("/"), query

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b"".join(iter(self._chunk, b""))
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return data
        whole = b""
        while data:
            line, _, data = data.partition(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            if not size:
                break
            whole, data = whole + data[:size], data[size + 2 :]
        return whole

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline(), 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _answer(
        self, status: int, body: bytes = b"", size: int | None = None, **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.send_header("ETag", '"e"')
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _no_such_key(self) -> None:
        self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def do_HEAD(self) -> None:
        key, _ = self._key_and_query()
        found = self.bucket.objects.get(key)
        if found is None and key:
            self._no_such_key()
        else:
            self._answer(200, size=len(found or b""))

    def do_GET(self) -> None:
        key, query = self._key_and_query()
        if not key:
            self._list(query)
            return
        found = self.bucket.objects.get(key)
        if found is None:
            self._no_such_key()
            return
        begin, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        end = int(last) + 1 if last else len(found)
        if int(begin) <= self.bucket.unreadable.get(key, -1) < end:
            self._answer(400, _element("Error", "<Code>InvalidRequest</Code>"))
            return
        part = found[int(begin) : end]
        said = f"bytes {begin}-{int(begin) + len(part) - 1}/{len(found)}"
        self._answer(206, part, Content_Range=said)

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys, folders = [], dict[str, None]()
        for key in sorted(self.bucket.objects):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders.setdefault(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                keys.append(key)
        keys = keys[: int(query.get("max-keys", 1000))]
        body = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.bucket.objects[key])}</Size>"
            "<LastModified>2024-05-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
        )
        for folder in folders:
            body += f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
        count = f"<KeyCount>{len(keys) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._answer(200, _element("ListBucketResult", count + body))

    def do_PUT(self) -> None:
        key, query = self._key_and_query()
        data = self._body()
        if "uploadId" in query:
            self.bucket.parts[query["uploadId"]][int(query["partNumber"])] = data
        elif source := self.headers.get("x-amz-copy-source"):
            self.bucket.objects[key] = self.bucket.objects[unquote(source).partition("/")[2]]
            self._answer(200, _element("CopyObjectResult"))
            return
        else:
            self.bucket.objects[key] = data
        self._answer(200)

    def do_POST(self) -> None:
        key, query = self._key_and_query()
        body = self._body()
        if "uploads" in query:
            upload = str(len(self.bucket.parts))
            self.bucket.parts[upload] = {}
            said = _element("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        elif "uploadId" in query:
            parts = self.bucket.parts[query["uploadId"]]
            self.bucket.objects[key] = b"".join(parts[number] for number in sorted(parts))
            said = _element("CompleteMultipartUploadResult")
        else:
            for each in body.decode().split("<Key>")[1:]:
                self.bucket.objects.pop(each.partition("<")[0], None)
            said = _element("DeleteResult")
        self._answer(200, said)

    def do_DELETE(self) -> None:
        key, _ = self._key_and_query()
        self.bucket.objects.pop(key, None)
        self._answer(204)
