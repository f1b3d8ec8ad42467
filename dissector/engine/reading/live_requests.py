"""Shows requests of live captures on arrival, before their exchanges end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dissector.engine.exchanges.exchange import Exchange


class LiveRequests:
    """Records the shown requests in flight, so that none is shown twice."""

    def __init__(self, passes: Callable[[Exchange], bool]) -> None:
        """Start; `passes` filters requests."""
        self._passes = passes
        self._shown: dict[tuple[int, int | None], bool] = {}

    def __bool__(self) -> bool:
        return bool(self._shown)

    def has_shown(self, connection: int, offset: int | None) -> bool:
        """Return whether the request at an offset of its stream was shown."""
        return self._shown.get((connection, offset), False)

    def to_show(self, waiting: Iterable[Exchange] | None) -> Iterator[Exchange]:
        """
        Yield the requests to be shown now.

        Args:
            waiting: All requests in flight at the end of a window, after its exchanges are done;
                None where they are not known.
        """
        if waiting is None:
            return
        previous, self._shown = self._shown, {}
        for exchange in waiting:
            key = exchange.connection, exchange.request_offset
            is_new = key not in previous
            self._shown[key] = self._passes(exchange) if is_new else previous[key]
            if is_new and self._shown[key]:
                yield exchange
