"""
Which message definitions hold where code runs, and what is derived from them.

A `Schemas` is a value; code reads bytes by the current one. That is a context variable, so that
readings with different definitions in one process, one thread even, know nothing of each other.
What is made of declarations (programs, plans, codecs) is kept with the `Schemas` it was made under.
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
    """Return the definitions over the built-in declarations; None where there are none."""
    return _current.get()


def use(schemas: Schemas | None) -> None:
    """Read by some definitions from here on, to the end of the context (`using`, a thread)."""
    _current.set(schemas)


class using:  # noqa: N801  (reads as a word: `with using(schemas):`)
    """Reads by some definitions inside a `with`; None stands for the built-in declarations."""

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
    """Yield the items of an iterable, each of them made under some definitions."""
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
    """Caches a function that reads declarations, for each `Schemas` apart."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._built_in = cast("Callable[P, R]", cache(function))
        self._function = function
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, or return what it gave for the same before."""
        schemas = _current.get()
        if schemas is None:
            return self._built_in(*args, **kwargs)
        derived: dict[Any, Any] = schemas.derived
        place = self, args
        if place not in derived:
            # Two threads may make the same at once; all must go on with one of them.
            derived.setdefault(place, self._function(*args, **kwargs))
        return cast("R", derived[place])

    def under(self, schemas: Schemas | None, *args: Any) -> R:
        """Call the function under some definitions."""
        with using(schemas):
            return cast("R", cast("Any", self)(*args))
