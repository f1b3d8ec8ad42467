"""
A collector of OpenTelemetry, reached by HTTP.

Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

from base64 import b64encode
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from dissector.errors import DissectorError

TIMEOUT_S = 30

SCOPE = "kafkashark"


class ExportError(DissectorError):
    """A collector rejected data, or was unreachable."""


def is_url(target: str) -> bool:
    """Return whether a target is the URL of a collector."""
    return target.lower().startswith(("http://", "https://"))


class Collector:
    """
    The endpoint of a URL, with the credentials in the URL.

    Args:
        url: The URL.
        path: The path, if the URL has none.
        content_type: Encoding of the data.
        what: What is sent, for errors.
    """

    def __init__(self, url: str, path: str, content_type: str, what: str) -> None:
        self._what = what
        parts = urlsplit(url)
        user, at, place = parts.netloc.rpartition("@")
        path = path if parts.path in ("", "/") else parts.path
        headers = {"Content-Type": content_type, "User-Agent": SCOPE}
        if at:
            headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
        target = parts._replace(netloc=place, path=path).geturl()
        self._request = Request(target, headers=headers, method="POST")
        self._shown = urlsplit(target)._replace(query="").geturl()

    def post(self, data: bytes) -> None:
        """
        Send data.

        Raises:
            ExportError: The collector refuses it, or is unreachable.
        """
        self._request.data = data
        self._request.remove_header("Content-length")  # remains from the previous data
        try:
            with urlopen(self._request, timeout=TIMEOUT_S) as answer:
                answer.read()
        except HTTPError as error:
            refused = f"the collector refuses {self._what}: HTTP {error.code}"
            raise ExportError(f"{self._shown}: {refused}") from None
        except (URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise ExportError(f"{self._shown}: {self._what} can't be sent: {reason}") from None
