"""The page that shows the screen in a web browser; it loads nothing from elsewhere."""

from __future__ import annotations

from html import escape

_STYLE = """
body { background: #0c181f; margin: 0 }
.box {
  position: absolute; inset: 0; z-index: 10; display: flex; align-items: center;
  justify-content: center; background: #0c181f; color: #ffffffee; font: 16px monospace
}
.box a { color: inherit; margin-left: 1em }
body.-first-byte .intro-dialog, .closed-dialog, #start { display: none }
body.-closed .closed-dialog, #start.-delay { display: flex }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>kafkashark</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/css/xterm.css">
<style>{style}</style>
<script src="/static/js/textual.js"></script>
</head>
<body>
<div class="box intro-dialog">kafkashark<a href="/" id="start">Start</a></div>
<div class="box closed-dialog">The session ended.<a href="">Restart</a></div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="ws://{host}/ws"
  data-font-size="{size}"></div>
</body>
</html>
"""


def screen_page(host: str, font_pixels: int) -> str:
    """
    Return the page.

    Its script marks the body: `-first-byte` once the screen is there, `-closed` at its end.

    Args:
        host: The header `Host` of the request.
        font_pixels: Size of the letters.
    """
    return _PAGE.format(style=_STYLE, host=escape(host), size=font_pixels)
