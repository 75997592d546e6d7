"""A circuit as a picture, from Cirq's own diagram of it, wrapped into strips like lines of text."""

from __future__ import annotations

from typing import Any

import cirq

from qflock.reports.style import COLORS, Picture, draw

MOST_MOMENTS = 80
MOST_QUBITS = 24
_STRIP_LETTERS = 130.0
_INCHES_OF_LETTER = 0.075
_INCHES_OF_WIRE = 0.34


def circuit_picture(name: str, caption: str, circuit: cirq.AbstractCircuit) -> Picture:
    """Draws a circuit; of a very large one, the first moments and qubits.

    Args:
        name: Of the picture.
        caption: What the circuit is.
        circuit: With or without symbols.
    """
    diagram, left_out = _diagram(circuit)
    strips = _strips([_width(diagram, column) for column in range(diagram.width())])
    wires = {y for x, y in diagram.entries if x == 0} or {0}
    letters = max(sum(strip.values()) for strip in strips)
    height = _INCHES_OF_WIRE * (len(wires) + 0.4) * len(strips)
    size = (max(letters * _INCHES_OF_LETTER, 1.5), max(height, 1.0))

    def paint(figure: Any) -> None:
        figure.subplots_adjust(left=0, right=1, bottom=0, top=1, hspace=0.02)
        grid = figure.subplots(len(strips), 1, squeeze=False, sharex=True).ravel()
        for axes, strip in zip(grid, strips, strict=True):
            axes.set_axis_off()
            axes.set(xlim=(0, letters), ylim=(max(wires) + 0.7, min(wires) - 0.7))
            _paint(axes, diagram, wires, strip)

    return draw(name, caption + left_out, size, paint, layout=None)


def _diagram(circuit: cirq.AbstractCircuit) -> tuple[Any, str]:
    """Cirq's diagram of what is shown, and what the caption says about the rest."""
    packed = cirq.Circuit(circuit.all_operations())  # every gate as early as it can be
    moments, qubits = len(packed), sorted(packed.all_qubits())
    left_out = ""
    if len(qubits) > MOST_QUBITS:
        kept = set(qubits[:MOST_QUBITS])
        packed = cirq.Circuit(op for op in packed.all_operations() if kept.issuperset(op.qubits))
        left_out += f"; what acts on the first {MOST_QUBITS} of {len(qubits)} qubits alone"
    if len(packed) > MOST_MOMENTS:
        left_out += f"; the first {MOST_MOMENTS} of {moments} moments"
    return packed[:MOST_MOMENTS].to_text_diagram_drawer(precision=2), left_out


def _width(diagram: Any, column: int) -> float:
    """In letters."""
    return max((len(entry.text) for (x, _), entry in diagram.entries.items() if x == column), default=0) + 2.0


def _strips(widths: list[float]) -> list[dict[int, float]]:
    """The columns of each strip with their widths; column 0, the names of the qubits, begins each of them."""
    first = widths[0] if widths else 2.0
    strips = [{0: first}]
    for column, width in enumerate(widths[1:], start=1):
        if len(strips[-1]) > 1 and sum(strips[-1].values()) + width > _STRIP_LETTERS:
            strips.append({0: first})
        strips[-1][column] = width
    return strips


def _paint(axes: Any, diagram: Any, wires: set[int], strip: dict[int, float]) -> None:
    right, middle = 0.0, {}
    for column, width in strip.items():
        middle[column] = right + width / 2
        right += width
    for line in diagram.horizontal_lines:
        if line.y not in wires:  # brackets that join columns of one moment, which this layout does not need
            continue
        axes.plot([middle[0], right], [line.y, line.y], color="gray", linewidth=0.8, zorder=1)
    for line in diagram.vertical_lines:
        if line.x in middle and line.y1 in wires and line.y2 in wires:
            axes.plot([middle[line.x]] * 2, [line.y1, line.y2], color="black", linewidth=1.2, zorder=1)
    for (column, y), entry in diagram.entries.items():
        if column in middle:
            _entry(axes, middle[column], y, entry.text, is_name=column == 0)


def _entry(axes: Any, x: float, y: float, text: str, is_name: bool) -> None:
    if text == "@":
        axes.plot([x], [y], "o", color="black", markersize=5, zorder=2)
    elif text:
        box = {"boxstyle": "square,pad=0.2", "facecolor": "white", "linewidth": 0.8}
        box["edgecolor"] = "none" if is_name else COLORS[0]
        axes.text(x, y, text, ha="center", va="center", fontsize=7, family="monospace", zorder=3, bbox=box)
