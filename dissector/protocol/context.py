"""
The message definitions in use, and a cache of values derived from them.

A `Schemas` is a value; bytes are decoded by the current one. That is a context variable, so that
passes with different definitions in one process, even in one thread, are independent. Everything
derived from declarations (programs, plans, codecs) is cached with the `Schemas` in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, Token
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from dissector.protocol.definitions.schemas import Schemas

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")

_current: ContextVar[Schemas | None] = ContextVar("schemas", default=None)


def current() -> Schemas | None:
    """Return the definitions that override the built-in declarations; None without any."""
    return _current.get()


def use(schemas: Schemas | None) -> None:
    """Decode by these definitions until the end of the context (a `using` block, a thread)."""
    _current.set(schemas)


class using:  # noqa: N801  (reads as a word: `with using(schemas):`)
    """Decode by these definitions inside a `with`; None means the built-in declarations."""

    __slots__ = ("_schemas", "_token")

    def __init__(self, schemas: Schemas | None) -> None:
        self._schemas = schemas

    def __enter__(self) -> None:
        self._token: Token[Schemas | None] = _current.set(self._schemas)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._token)


def iterate_under(schemas: Schemas | None, items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items of an iterable, each produced under these definitions."""
    iterator = iter(items)
    while True:
        with using(schemas):
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item
        del item


class per_schemas(Generic[P, R]):  # noqa: N801  (a decorator)
    """Cache a function that depends on declarations, separately for each `Schemas`."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._built_in = cast("Callable[P, R]", cache(function))
        self._function = function
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the cached result for these arguments, or call the function."""
        schemas = _current.get()
        if schemas is None:
            return self._built_in(*args, **kwargs)
        derived: dict[Any, Any] = schemas.derived
        key = self, args
        if key not in derived:
            # Two threads may compute it at once; both must continue with the same object.
            derived.setdefault(key, self._function(*args, **kwargs))
        return cast("R", derived[key])

    def under(self, schemas: Schemas | None, *args: Any) -> R:
        """Call the function under these definitions."""
        if schemas is None and _current.get() is None:
            return self._built_in(*args)  # type: ignore[call-arg]
        with using(schemas):
            return cast("R", cast("Any", self)(*args))
