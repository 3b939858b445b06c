"""A terminal's screen, as tmux captures it with its colours (capture-pane -e), as a web page."""

import html
import re

PALETTE = ["#1c1c1c", "#d75f5f", "#87af5f", "#d7af5f", "#5f87d7", "#af87d7", "#5fafaf", "#bcbcbc",
           "#767676", "#ff8787", "#afd787", "#ffd787", "#87afff", "#d7afff", "#87d7d7", "#ffffff"]


def xterm_colour(number):
    if number < 16:
        return PALETTE[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    number -= 16
    parts = (number // 36, number // 6 % 6, number % 6)
    return "#" + "".join(f"{0 if part == 0 else 55 + 40 * part:02x}" for part in parts)


class Style:
    def __init__(self):
        self.clear()

    def clear(self):
        self.fore = self.back = None
        self.bold = self.dim = self.reverse = False

    def _extended(self, codes):
        kind = codes.pop(0) if codes else 0
        if kind == 5 and codes:
            return xterm_colour(codes.pop(0))
        if kind == 2 and len(codes) >= 3:
            return "#" + "".join(f"{codes.pop(0):02x}" for _ in range(3))
        return None

    def apply(self, codes):
        codes = list(codes) or [0]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.clear()
            elif code in (1, 2, 7):
                setattr(self, {1: "bold", 2: "dim", 7: "reverse"}[code], True)
            elif code == 22:
                self.bold = self.dim = False
            elif code == 27:
                self.reverse = False
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.fore = PALETTE[code - 30 if code < 90 else code - 82]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.back = PALETTE[code - 40 if code < 100 else code - 92]
            elif code == 38:
                self.fore = self._extended(codes)
            elif code == 48:
                self.back = self._extended(codes)
            elif code == 39:
                self.fore = None
            elif code == 49:
                self.back = None

    def css(self):
        fore, back = self.fore or "#d0d0d0", self.back or "#121212"
        if self.reverse:
            fore, back = back, fore
        return (f"color:{fore};background:{back};" + ("font-weight:bold;" if self.bold else "")
                + ("opacity:.7;" if self.dim else ""))


def page_of(screen):
    """An HTML document that shows `screen`."""
    body, style = [], Style()
    for part in re.split(r"(\x1b\[[0-9;]*m)", screen):
        control = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if control:
            style.apply(int(code) for code in control.group(1).split(";") if code)
        elif part:
            body.append(f'<span style="{style.css()}">{html.escape(part)}</span>')
    return ("<!doctype html><meta charset=utf-8><title>screen</title>"
            "<style>body{margin:12px;background:#121212}"
            "pre{font:15px/1.2 'DejaVu Sans Mono',monospace;margin:0}</style>"
            f"<pre>{''.join(body)}</pre>")
