"""Limits of correlation: of frames, requests in flight and times."""

from __future__ import annotations

MAX_FRAME_BYTES = 100 << 20
"""Larger frames are skipped; brokers refuse them too (socket.request.max.bytes)."""

MAX_OPEN = 10_000
"""Requests in flight on one connection; beyond that the oldest is emitted as unanswered."""

MAX_OPEN_BYTES = 64 << 20
"""Bytes of the requests in flight on one connection."""

MAX_SUPPRESSED = 1000
"""
Ids of requests without a response (acks = 0) that are remembered, should one come all the same.
"""

MAX_EARLY_RESPONSE_NS = 100_000_000
"""
How long before its request a response may be captured: as long as a hole among the requests may
wait to become a gap: twice `stream_kernel.WAIT_NS`. Options read this file, and load no kernels.
"""

MAX_FIRST_REQUEST_OFFSET = 1 << 16
"""Bytes of either side before the first request of a connection captured from its beginning."""

MAX_UNASKED_BYTES = 1 << 10
"""
Bytes of a server that are retained before any request: the first ones, which may be those of a
proxy, and as many of the newest ones, as a response may be captured before its request.
"""

MIN_RETAINED_BYTES = 1 << 20
"""Bytes of a stream without a plausible frame that are retained at least, for a second search."""

MAX_DOUBTFUL_BYTES = 64 << 20
"""Bytes of ended connections that may wait until all brokers are known."""

MAX_DELAYED_NS = 200_000_000
"""
The longest delay of an acknowledgement: after it, bytes that are sent again were lost.

Source: TCP_DELACK_MAX in Linux, include/net/tcp.h.
"""
