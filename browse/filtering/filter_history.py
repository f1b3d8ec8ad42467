"""History of used filters, the newest last."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 100


class FilterHistory:
    """
    History of filters, with a position.

    Attributes:
        texts: Distinct filters, the newest last.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = []
        self._at = 0
        self._typed = ""
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a filter, and go to the end."""
        if text := text.strip():
            if text in self.texts:
                self.texts.remove(text)
            self.texts = [*self.texts, text][-MOST:]
        self._at = len(self.texts)

    def older(self, shown: str) -> str:
        """Return the filter before the shown one; at the first, return that again."""
        if self._at == len(self.texts):
            self._typed = shown
        if not self._at:
            return shown
        self._at -= 1
        return self.texts[self._at]

    def newer(self, shown: str) -> str:
        """Return the filter after the shown one; at the end, the text typed before."""
        if self._at >= len(self.texts):
            return shown
        self._at += 1
        return self.texts[self._at] if self._at < len(self.texts) else self._typed
