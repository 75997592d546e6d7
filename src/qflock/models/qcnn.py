"""The quantum convolutional neural network in three architectures, at any width of four qubits or more."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import cirq
import sympy

from qflock.errors import ConfigurationError
from qflock.models.cluster_data import check_qubits

CONVOLUTION_SYMBOLS = 15
POOLING_SYMBOLS = 6
FILTERS = 3


def _one_qubit_unitary(qubit: cirq.Qid, symbols: Sequence[sympy.Symbol]) -> cirq.Circuit:
    x, y, z = symbols
    return cirq.Circuit(cirq.X(qubit) ** x, cirq.Y(qubit) ** y, cirq.Z(qubit) ** z)


def two_qubit_convolution(a: cirq.Qid, b: cirq.Qid, symbols: Sequence[sympy.Symbol]) -> cirq.Circuit:
    """A general two-qubit unitary: rotations of both, three interactions, rotations of both; 15 symbols."""
    _check_count(symbols, CONVOLUTION_SYMBOLS)
    return cirq.Circuit(
        _one_qubit_unitary(a, symbols[0:3]),
        _one_qubit_unitary(b, symbols[3:6]),
        cirq.ZZ(a, b) ** symbols[6],
        cirq.YY(a, b) ** symbols[7],
        cirq.XX(a, b) ** symbols[8],
        _one_qubit_unitary(a, symbols[9:12]),
        _one_qubit_unitary(b, symbols[12:15]),
    )


def two_qubit_pooling(source: cirq.Qid, sink: cirq.Qid, symbols: Sequence[sympy.Symbol]) -> cirq.Circuit:
    """Carries what `source` knows over to `sink`, in bases that are learnt; 6 symbols."""
    _check_count(symbols, POOLING_SYMBOLS)
    sink_basis = _one_qubit_unitary(sink, symbols[0:3])
    source_basis = _one_qubit_unitary(source, symbols[3:6])
    return cirq.Circuit(sink_basis, source_basis, cirq.CNOT(source, sink), cirq.inverse(sink_basis))


def convolution(qubits: Sequence[cirq.Qid], symbols: Sequence[sympy.Symbol]) -> cirq.Circuit:
    """The same two-qubit convolution on all neighbours of a ring; of an odd ring, one pair stays open."""
    circuit = cirq.Circuit()
    for a, b in zip(qubits[0::2], qubits[1::2], strict=False):
        circuit += two_qubit_convolution(a, b, symbols)
    for a, b in zip(qubits[1::2], [*qubits[2::2], qubits[0]], strict=False):
        circuit += two_qubit_convolution(a, b, symbols)
    return circuit


def pooling(
    qubits: Sequence[cirq.Qid], symbols: Sequence[sympy.Symbol]
) -> tuple[cirq.Circuit, tuple[cirq.Qid, ...]]:
    """Pools the first half into the second; of an odd number, the middle qubit passes through.

    Returns:
        The circuit and the qubits that survive.
    """
    half = len(qubits) // 2
    circuit = cirq.Circuit()
    for source, sink in zip(qubits[:half], qubits[len(qubits) - half :], strict=True):
        circuit += two_qubit_pooling(source, sink, symbols)
    return circuit, tuple(qubits[half:])


def level(qubits: Sequence[cirq.Qid], name: str) -> tuple[cirq.Circuit, tuple[cirq.Qid, ...]]:
    """One convolution and one pooling, with 21 symbols of their own that start with `name`."""
    convolution_symbols = [sympy.Symbol(f"{name}_conv{i:02d}") for i in range(CONVOLUTION_SYMBOLS)]
    pooling_symbols = [sympy.Symbol(f"{name}_pool{i}") for i in range(POOLING_SYMBOLS)]
    pool, survivors = pooling(qubits, pooling_symbols)
    return convolution(qubits, convolution_symbols) + pool, survivors


def tower(qubits: Sequence[cirq.Qid]) -> tuple[cirq.Circuit, cirq.Qid]:
    """Levels until one qubit is left.

    Returns:
        The circuit and the last qubit.
    """
    circuit, left, depth = cirq.Circuit(), tuple(qubits), 0
    while len(left) > 1:
        part, left = level(left, f"level{depth}")
        circuit, depth = circuit + part, depth + 1
    return circuit, left[0]


def qcnn_circuits(
    architecture: str, qubits: int
) -> list[tuple[cirq.Circuit, list[cirq.PauliString[cirq.Qid]]]]:
    """The circuit of each quantum layer of `qcnn` and what it reads out; nothing is compiled.

    Example:
        >>> [(len(circuit.all_qubits()), len(operators)) for circuit, operators in qcnn_circuits("multi-filter", 8)]
        [(8, 4), (8, 4), (8, 4)]
    """
    check_architecture(architecture)
    check_qubits(qubits)
    line = cirq.GridQubit.rect(1, qubits)
    if architecture == "full":
        circuit, last = tower(line)
        return [(circuit, [cirq.Z(last)])]
    levels = [level(line, f"filter{i}") for i in range(FILTERS if architecture == "multi-filter" else 1)]
    return [(circuit, [cirq.Z(qubit) for qubit in survivors]) for circuit, survivors in levels]


def qcnn(architecture: str, qubits: int) -> Any:
    """Builds the Keras model, from a string tensor of circuits to one value per circuit.

    Args:
        architecture: "hybrid" (one convolution and pooling, Dense 8, Dense 1), "multi-filter" (three of these side by
            side, concatenated, Dense 8, Dense 1) or "full" (down to one qubit, no Dense).
        qubits: Width, at least 4.

    Returns:
        A `keras.Model`.

    Raises:
        ConfigurationError: If the architecture is unknown or there are fewer than 4 qubits.

    Example:
        >>> qcnn("full", 4).output_shape
        (None, 1)

    Source: I. Cong, S. Choi, M. Lukin, "Quantum convolutional neural networks", Nature Physics 15 (2019).
    """
    check_architecture(architecture)
    check_qubits(qubits)
    import keras

    inputs = keras.Input(shape=(), dtype="string", name="circuits")
    outputs = ARCHITECTURES[architecture](inputs, cirq.GridQubit.rect(1, qubits))
    return keras.Model(inputs, outputs, name=f"qcnn_{architecture.replace('-', '_')}")


def check_architecture(architecture: str) -> None:
    """Raises `ConfigurationError` for an unknown architecture and lists the known ones."""
    if architecture not in ARCHITECTURES:
        near = difflib.get_close_matches(architecture, ARCHITECTURES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigurationError(
            f"Argument `architecture` must be one of {', '.join(ARCHITECTURES)}, but is {architecture!r}{hint}"
        )


def _quantum_filter(inputs: Any, qubits: Sequence[cirq.Qid], name: str) -> Any:
    from qflock.layers import PQC

    circuit, survivors = level(qubits, name)
    return PQC(circuit, [cirq.Z(qubit) for qubit in survivors], name=name)(inputs)


def _head(features: Any) -> Any:
    import keras

    return keras.layers.Dense(1, name="output")(keras.layers.Dense(8, name="hidden")(features))


def _hybrid(inputs: Any, qubits: Sequence[cirq.Qid]) -> Any:
    return _head(_quantum_filter(inputs, qubits, "filter0"))


def _multi_filter(inputs: Any, qubits: Sequence[cirq.Qid]) -> Any:
    import keras

    filters = [_quantum_filter(inputs, qubits, f"filter{i}") for i in range(FILTERS)]
    return _head(keras.layers.Concatenate(name="filters")(filters))


def _full(inputs: Any, qubits: Sequence[cirq.Qid]) -> Any:
    from qflock.layers import PQC

    circuit, last = tower(qubits)
    return PQC(circuit, [cirq.Z(last)], name="tower")(inputs)


ARCHITECTURES: dict[str, Callable[[Any, Sequence[cirq.Qid]], Any]] = {
    "hybrid": _hybrid,
    "multi-filter": _multi_filter,
    "full": _full,
}


def _check_count(symbols: Sequence[sympy.Symbol], count: int) -> None:
    if len(symbols) != count:
        raise ConfigurationError(f"Argument `symbols` must hold {count} symbols, but holds {len(symbols)}")
