"""The limit of frames; options read this file, and load no declarations."""

from __future__ import annotations

MAX_FRAME_BYTES = 100 << 20
"""Larger frames are skipped; brokers refuse them too (socket.request.max.bytes)."""
