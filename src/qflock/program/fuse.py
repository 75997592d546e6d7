"""Fusion: gates on the same one or two qubits become one block, applied as one matrix.

A block costs the state one pass whatever the number of its gates, so that a convolution of a dozen gates on two
qubits is as cheap as one of them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qflock.program.operators import Operator, fixed
from qflock.program.program import Gate, Program


@dataclass(frozen=True, slots=True)
class Block:
    """Gates that act inside a few qubits.

    Args:
        qubits: Ascending qubit numbers; the first is the least significant bit of the block's matrix index.
        gates: First applied first.
    """

    qubits: tuple[int, ...]
    gates: tuple[Gate, ...]


@dataclass(slots=True)
class _Open:
    """A block that later gates may still join."""

    qubits: tuple[int, ...]
    gates: list[Gate] = field(default_factory=list)


def fuse(program: Program) -> tuple[Block, ...]:
    """Groups a program's gates into blocks of two qubits (more where one gate needs more).

    Args:
        program: The program.

    Returns:
        Blocks whose product, in order, equals the program. Only gates on disjoint qubits change places. A program on
        one qubit alone has blocks of one qubit.
    """
    blocks = _grow(program.gates)
    if program.qubit_count > 1:
        blocks = _pair_up(blocks, program.qubit_count)
    return tuple(Block(b.qubits, tuple(b.gates)) for b in blocks)


def _grow(gates: tuple[Gate, ...]) -> list[_Open]:
    last: dict[int, _Open] = {}  # the newest block on each qubit
    blocks: list[_Open] = []
    for gate in gates:
        qubits = tuple(sorted(gate.qubits))
        touched = {id(last[q]): last[q] for q in qubits if q in last}
        home = next((b for b in touched.values() if set(qubits) <= set(b.qubits)), None)
        if home is not None and all(last.get(q) is home for q in qubits) and len(home.qubits) <= 2:
            home.gates.append(gate)
            continue
        block = _Open(qubits)
        if len(qubits) == 2:  # single-qubit blocks in front are taken over
            for single in [b for b in touched.values() if len(b.qubits) == 1]:
                block.gates.extend(single.gates)
                single.gates.clear()
        block.gates.append(gate)
        blocks.append(block)
        for q in qubits:
            last[q] = block
    return [b for b in blocks if b.gates]


def _pair_up(blocks: list[_Open], qubit_count: int) -> list[_Open]:
    """Joins neighbouring single-qubit blocks, so that all small blocks have exactly two qubits."""
    done: list[_Open] = []
    for block in blocks:
        before = done[-1] if done else None
        if len(block.qubits) == 1 and before is not None and len(before.qubits) == 1:
            before.qubits = tuple(sorted(before.qubits + block.qubits))
            before.gates.extend(block.gates)
        else:
            done.append(block)
    for block in done:
        if len(block.qubits) == 1:
            only = block.qubits[0]
            block.qubits = tuple(sorted((only, only + 1 if only + 1 < qubit_count else only - 1)))
    return done


@functools.lru_cache(maxsize=1 << 14)
def embed(operator: Operator, places: tuple[int, ...], size: int) -> NDArray[np.complex128]:
    """The operator's matrices inside a block, `(k, 2**size, 2**size)` complex128.

    Args:
        operator: What is applied.
        places: For each of the operator's qubits, its bit in the block's matrix index.
        size: Number of the block's qubits.
    """
    count = operator.qubit_count
    others = [bit for bit in reversed(range(size)) if bit not in places]
    k = operator.matrices.shape[0]
    full = np.kron(operator.matrices, np.eye(1 << len(others)))
    # The axes of `full` stand for bits places[0], places[1], ..., others[0], ...; axis 0 of the result is the top bit.
    order = [*places, *others]
    axes = [order.index(bit) for bit in reversed(range(size))]
    full = full.reshape((k,) + (2,) * (2 * size))
    full = full.transpose([0] + [1 + a for a in axes] + [1 + size + a for a in axes])
    assert count + len(others) == size
    return np.ascontiguousarray(full.reshape(k, 1 << size, 1 << size))


def factors(block: Block) -> tuple[tuple[Operator, tuple[int, ...], int], ...]:
    """A block's factors (operator, places, expression), neighbouring fixed gates multiplied into one."""
    place = {q: bit for bit, q in enumerate(block.qubits)}
    everything = tuple(range(len(block.qubits) - 1, -1, -1))
    result: list[tuple[Operator, tuple[int, ...], int]] = []
    run: list[tuple[Operator, tuple[int, ...]]] = []
    for gate in block.gates:
        places = tuple([place[q] for q in gate.qubits])
        if gate.operator.is_fixed:
            run.append((gate.operator, places))
            continue
        if run:
            result.append((_product(tuple(run), len(place)), everything, -1))
            run = []
        result.append((gate.operator, places, gate.expression))
    if run:
        result.append((_product(tuple(run), len(place)), everything, -1))
    return tuple(result)


@functools.lru_cache(maxsize=1 << 14)
def _product(run: tuple[tuple[Operator, tuple[int, ...]], ...], size: int) -> Operator:
    """Fixed operators one after the other, as one operator on a block of `size` qubits."""
    matrices = [embed(operator, places, size)[0] for operator, places in run]
    return fixed(functools.reduce(lambda before, matrix: matrix @ before, matrices))
