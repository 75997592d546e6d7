"""Circuits as pictures."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any

import cirq

LONGEST_LINE = 160
MOST_LINES = 400
MOST_GATES = 4000
MARGIN = 12
FONT_SIZE = 12


def circuit_text(circuit: cirq.AbstractCircuit, width: int = LONGEST_LINE) -> str:
    """The circuit as Cirq draws it in text, cut into pieces of at most `width` characters one below the other.

    Example:
        >>> print(circuit_text(cirq.Circuit(cirq.H(cirq.LineQubit(0)))))
        0: ───H───
    """
    # Pushed to the left: circuits that are joined from parts have nearly empty moments.
    lines = cirq.Circuit(circuit.all_operations()).to_text_diagram().split("\n")
    length = max(map(len, lines))
    lines = [line.ljust(length) for line in lines]
    pieces, start = [], 0
    while start < length:
        end = _cut(lines, start, width)
        pieces.append("\n".join(line[start:end].rstrip() for line in lines))
        start = end
    return "\n\n".join(pieces)


def _cut(lines: list[str], start: int, width: int) -> int:
    """Where to cut so that no gate's name is cut; if there is no such place, at the full width."""
    end = start + width
    if end >= len(lines[0]):
        return len(lines[0])
    for place in range(end, start + width // 2, -1):
        if all(line[place - 1] in _WIRE for line in lines):
            return place
    return end


_WIRE = "─ "


def circuit_picture(circuit: cirq.AbstractCircuit) -> tuple[bytes, int, int]:
    """The circuit as a PNG picture, drawn with the characters of its text diagram.

    Args:
        circuit: With or without symbols. A drawing beyond 4000 gates or 400 lines is cut, and says so.

    Returns:
        The bytes of the picture, its width and its height in pixels.

    Example:
        >>> png, width, height = circuit_picture(cirq.Circuit(cirq.H(cirq.LineQubit(0))))
        >>> png[:4], width > height
        (b'\\x89PNG', True)
    """
    from PIL import Image, ImageDraw

    gates = list(circuit.all_operations())
    lines = circuit_text(cirq.Circuit(gates[:MOST_GATES])).split("\n")
    if len(gates) > MOST_GATES:
        lines.append(f"... and {len(gates) - MOST_GATES} more gates")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} more lines"]
    font = _font()
    step, height = font.getlength("M"), FONT_SIZE + 4
    size = (round(max(map(len, lines)) * step) + 2 * MARGIN, height * len(lines) + 2 * MARGIN)
    image = Image.new("L", size, 255)
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        draw.text((MARGIN, MARGIN + row * height), line, fill=0, font=font)
    content = io.BytesIO()
    image.save(content, "PNG", compress_level=1)
    return content.getvalue(), *size


@lru_cache(maxsize=1)
def _font() -> Any:
    """A fixed-width font with lines for drawing, which comes with Matplotlib, which Cirq requires."""
    import matplotlib
    from PIL import ImageFont

    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono.ttf"
    return ImageFont.truetype(str(path), FONT_SIZE)
