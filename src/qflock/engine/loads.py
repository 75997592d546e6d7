"""How much work evaluating a circuit is, told from its programs without evaluating, or allocating, anything."""

from __future__ import annotations

from dataclasses import dataclass

import cirq

from qflock.circuits.observables import normalise
from qflock.engine.reductions import Reductions, data_cone, parts_of
from qflock.engine.words import number_qubits, pauli_words
from qflock.program.cone import GateOrder
from qflock.program.lower import lower


@dataclass(frozen=True, slots=True)
class Load:
    """One state that has to be evolved.

    Args:
        qubits: Of the state.
        gates: Applied to it, before any are fused.
    """

    qubits: int
    gates: int

    @property
    def work(self) -> float:
        """Amplitudes times gates."""
        return self.gates * 2.0**self.qubits


def loads(
    circuit: cirq.AbstractCircuit,
    observables: object,
    data: cirq.AbstractCircuit | None = None,
    reductions: Reductions | None = None,
) -> tuple[Load, ...]:
    """The states that one sample needs, after the exact reductions; equal ones count once.

    Args:
        circuit: The model circuit.
        observables: As for `Simulator`.
        data: The sample's data circuit; by default samples start at |0...0>.
        reductions: Which ones are used; all by default.

    Raises:
        CircuitError: If a circuit is not unitary or not on qubits.
        ObservableError: If an observable is not Hermitian, or there is none.

    Example:
        >>> a, b = cirq.LineQubit.range(2)
        >>> loads(cirq.Circuit(cirq.H(a), cirq.H(b)), [cirq.Z(a), cirq.X(b)])
        (Load(qubits=1, gates=1), Load(qubits=1, gates=1))
    """
    used = Reductions() if reductions is None else reductions
    measured = normalise(observables)
    numbers = number_qubits(circuit, measured)
    for qubit in sorted(data.all_qubits()) if data is not None else ():
        numbers.setdefault(qubit, len(numbers))
    program, _ = lower(circuit, numbers)
    order = GateOrder(lower(cirq.Circuit() if data is None else data, numbers)[0].gates)
    found: dict[object, Load] = {}
    for part in parts_of(
        program, pauli_words(measured, numbers)[0], used, order if data is not None else None
    ):
        cone = data_cone(part, order, program.qubit_count, used)
        key = (part.key, cone.key) if used.dedupe else len(found)
        found[key] = Load(len(cone.qubits), len(part.model.gates) + len(cone.gates))
    return tuple(found.values())
