"""Programs and observables as the native engine holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qflock.program.fuse import Block, embed, factors, fuse
from qflock.program.operators import Operator
from qflock.program.program import Program

PauliWord = tuple[tuple[int, str], ...]
"""A Pauli string on numbered qubits: ((qubit, "X" | "Y" | "Z"), ...)."""

_SHAPES = {"dense": 0, "real": 1, "diagonal": 2}

_Factor = tuple[Operator, tuple[int, ...], int]


def native_program(module: Any, program: Program, bits: int) -> Any:
    """Fuses a program and hands it to the native engine.

    Args:
        module: The native module.
        program: The program; qubit k becomes bit k of the amplitude index.
        bits: Qubits of the state, at least the program's.
    """
    blocks = fuse(program)
    templates: dict[tuple[int, tuple[tuple[int, tuple[int, ...], int], ...]], int] = {}
    template_rows: list[tuple[int, int]] = []
    factor_rows: list[tuple[int, int, int, int, int]] = []
    block_rows: list[tuple[int, int]] = []
    block_bits: list[int] = []
    operators: list[np.ndarray] = []
    half_turns: list[np.ndarray] = []
    filled = turned = 0
    for block in blocks:
        parts = factors(block)
        dim = 1 << len(block.qubits)
        key = (dim, tuple([(op.number, places, expression) for op, places, expression in parts]))
        template = templates.get(key)
        if template is None:
            template = templates[key] = len(template_rows)
            template_rows.append((dim, _SHAPES[_shape(block, parts)]))
            for op, places, expression in parts:
                matrices = embed(op, places, len(block.qubits))
                turns = 0 if op.half_turns is None else len(op.half_turns)
                factor_rows.append((template, expression, filled, turned, turns))
                operators.append(matrices.ravel())
                filled += matrices.size
                if op.half_turns is not None:
                    half_turns.append(op.half_turns)
                    turned += turns
        block_rows.append((template, len(block_bits)))
        block_bits.extend(block.qubits)
    return module.make_program(
        bits,
        program.expression_count,
        _table(template_rows, 2),
        _table(factor_rows, 5),
        _table(block_rows, 2),
        np.array(block_bits, dtype=np.int64),
        np.concatenate(half_turns) if half_turns else np.zeros(0),
        np.concatenate(operators) if operators else np.zeros(0, dtype=np.complex128),
    )


def _table(rows: Sequence[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


def _shape(block: Block, parts: Sequence[_Factor]) -> str:
    """Diagonal and real blocks have cheaper kernels than dense complex ones."""
    if len(block.qubits) != 2:
        return "dense"
    if all(all(op.diagonal) for op, _, _ in parts):
        return "diagonal"
    return "real" if all(op.real for op, _, _ in parts) else "dense"


def native_model(module: Any, program: Program, words: Sequence[PauliWord], bits: int) -> Any:
    """A program and the Pauli words that are measured after it, each an observable of its own with coefficient one.

    Args:
        module: The native module.
        program: The program.
        words: Pauli words on the program's qubit numbers.
        bits: Qubits of the state, at least the program's.
    """
    return module.Model(native_program(module, program, bits), _native_observables(module, words))


def _native_observables(module: Any, words: Sequence[PauliWord]) -> Any:
    terms = np.zeros((len(words), 4), dtype=np.uint64)
    for row, word in enumerate(words):
        x = sum(1 << q for q, pauli in word if pauli in "XY")
        z = sum(1 << q for q, pauli in word if pauli in "YZ")
        terms[row] = (x, z, sum(pauli == "Y" for _, pauli in word), row)
    return module.make_observables(terms)
