"""Every gate class of Cirq, and how to make one from parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cirq
import numpy as np

from qflock.circuits.rows import NEWER_FAMILIES


@dataclass(frozen=True)
class Family:
    """A gate class: how many parameters may be symbols, and what they make."""

    parameters: int
    make: Callable[..., cirq.Gate]


def _eigen(gate: type[cirq.EigenGate]) -> list[Family]:
    return [
        Family(1, lambda e: gate(exponent=e)),
        Family(1, lambda e: gate(exponent=e, global_shift=-0.5)),
        Family(1, lambda e: gate(exponent=e, global_shift=0.37)),
    ]


def _random_unitary(qubits: int) -> cirq.MatrixGate:
    return cirq.MatrixGate(cirq.testing.random_unitary(2**qubits, random_state=qubits))


class _Adder(cirq.ArithmeticGate):
    """Adds one to a register of two qubits."""

    def registers(self) -> list[list[int]]:
        return [[2, 2], 1]

    def with_registers(self, *new: Any) -> _Adder:
        raise NotImplementedError

    def apply(self, *values: int) -> tuple[int, ...]:
        return (values[0] + values[1], values[1])


FAMILIES: dict[type, list[Family]] = {
    **{
        gate: _eigen(gate)
        for gate in (
            cirq.XPowGate,
            cirq.YPowGate,
            cirq.ZPowGate,
            cirq.HPowGate,
            cirq.CXPowGate,
            cirq.CZPowGate,
            cirq.SwapPowGate,
            cirq.ISwapPowGate,
            cirq.XXPowGate,
            cirq.YYPowGate,
            cirq.ZZPowGate,
            cirq.CCXPowGate,
            *NEWER_FAMILIES,
            cirq.CCZPowGate,
        )
    },
    cirq.Pauli: [Family(0, lambda: cirq.X), Family(0, lambda: cirq.Y), Family(0, lambda: cirq.Z)],
    cirq.Rx: [Family(1, cirq.rx)],
    cirq.Ry: [Family(1, cirq.ry)],
    cirq.Rz: [Family(1, cirq.rz)],
    cirq.MSGate: [Family(1, cirq.ms)],
    cirq.CSwapGate: [Family(0, cirq.CSwapGate)],
    cirq.PhasedXPowGate: [
        Family(2, lambda p, e: cirq.PhasedXPowGate(phase_exponent=p, exponent=e)),
        Family(2, lambda p, e: cirq.PhasedXPowGate(phase_exponent=p, exponent=e, global_shift=0.3)),
        Family(1, lambda e: cirq.PhasedXPowGate(phase_exponent=0.3, exponent=e, global_shift=-0.5)),
    ],
    cirq.PhasedXZGate: [
        Family(3, lambda x, z, a: cirq.PhasedXZGate(x_exponent=x, z_exponent=z, axis_phase_exponent=a)),
    ],
    cirq.PhasedISwapPowGate: [
        Family(2, lambda p, e: cirq.PhasedISwapPowGate(phase_exponent=p, exponent=e)),
        Family(2, lambda p, e: cirq.PhasedISwapPowGate(phase_exponent=p, exponent=e, global_shift=0.2)),
        Family(1, lambda e: cirq.PhasedISwapPowGate(phase_exponent=0.15, exponent=e, global_shift=0.2)),
        Family(1, cirq.givens),
        Family(1, cirq.riswap),
    ],
    cirq.FSimGate: [Family(2, cirq.FSimGate)],
    cirq.PhasedFSimGate: [Family(5, cirq.PhasedFSimGate)],
    cirq.DiagonalGate: [
        Family(2, lambda *a: cirq.DiagonalGate(a)),
        Family(8, lambda *a: cirq.DiagonalGate(a)),
        Family(1, lambda a: cirq.DiagonalGate([0.3, a, a, -0.7])),
        Family(32, lambda *a: cirq.DiagonalGate(a)),
    ],
    cirq.TwoQubitDiagonalGate: [Family(4, lambda *a: cirq.TwoQubitDiagonalGate(a))],
    cirq.ThreeQubitDiagonalGate: [Family(8, lambda *a: cirq.ThreeQubitDiagonalGate(a))],
    cirq.PhaseGradientGate: [Family(1, lambda e: cirq.PhaseGradientGate(num_qubits=3, exponent=e))],
    cirq.PauliStringPhasorGate: [
        Family(
            2,
            lambda n, p: cirq.PauliStringPhasorGate(
                cirq.DensePauliString("XIYZ"[:3]), exponent_neg=n, exponent_pos=p
            ),
        ),
        Family(
            2,
            lambda n, p: cirq.PauliStringPhasorGate(
                cirq.DensePauliString("XYZZXX"), exponent_neg=n, exponent_pos=p
            ),
        ),
        Family(1, lambda n: cirq.PauliStringPhasorGate(-cirq.DensePauliString("ZY"), exponent_neg=n)),
    ],
    cirq.PauliInteractionGate: [
        Family(1, lambda e: cirq.PauliInteractionGate(cirq.X, True, cirq.Y, False, exponent=e)),
    ],
    cirq.DensePauliString: [
        Family(0, lambda: cirq.DensePauliString("XIZY", coefficient=1j)),
        Family(0, lambda: cirq.DensePauliString("XYZXYZ", coefficient=-1)),
    ],
    cirq.MutableDensePauliString: [Family(0, lambda: cirq.MutableDensePauliString("XZ"))],
    cirq.BooleanHamiltonianGate: [
        Family(1, lambda t: cirq.BooleanHamiltonianGate(["x", "y"], ["x ^ y", "x & y"], t)),
    ],
    cirq.GlobalPhaseGate: [Family(0, lambda: cirq.GlobalPhaseGate(1j**0.3))],
    cirq.IdentityGate: [Family(0, lambda: cirq.IdentityGate(3))],
    cirq.WaitGate: [Family(0, lambda: cirq.WaitGate(cirq.Duration(nanos=3)))],
    cirq.MatrixGate: [Family(0, lambda k=k: _random_unitary(k)) for k in (1, 2, 3, 5)],
    cirq.ParallelGate: [Family(1, lambda e: cirq.ParallelGate(cirq.X**e, 3))],
    cirq.QubitPermutationGate: [
        Family(0, lambda: cirq.QubitPermutationGate([2, 0, 1])),
        Family(0, lambda: cirq.QubitPermutationGate([4, 3, 0, 1, 2])),
    ],
    cirq.QuantumFourierTransformGate: [
        Family(0, lambda: cirq.QuantumFourierTransformGate(3)),
        Family(0, lambda: cirq.QuantumFourierTransformGate(6, without_reverse=True)),
    ],
    cirq.UniformSuperpositionGate: [Family(0, lambda: cirq.UniformSuperpositionGate(5, 3))],
    cirq.CliffordGate: [
        Family(0, lambda: cirq.CliffordGate.from_op_list([cirq.H(_Q), cirq.CX(_Q, _P)], [_Q, _P]))
    ],
    cirq.SingleQubitCliffordGate: [
        Family(0, lambda g=g: g) for g in cirq.SingleQubitCliffordGate.all_single_qubit_cliffords[:24:5]
    ],
    cirq.ArithmeticGate: [Family(0, _Adder)],
    cirq.ControlledGate: [
        Family(1, lambda t: cirq.ControlledGate(cirq.rx(t))),
        Family(1, lambda t: cirq.ControlledGate(cirq.ISWAP**t, control_values=[0, (0, 1), 1])),
        Family(1, lambda t: cirq.ControlledGate(cirq.Y**t, num_controls=5)),
        Family(2, lambda a, b: cirq.ControlledGate(cirq.FSimGate(a, b), control_values=[0, 1, 0, 1])),
        Family(
            1, lambda t: cirq.ControlledGate(cirq.Z**t, control_values=cirq.SumOfProducts([[0, 1], [1, 0]]))
        ),
        Family(
            1,
            lambda t: cirq.ControlledGate(
                cirq.H**t, control_values=cirq.SumOfProducts([[0, 1, 0, 0], [1, 0, 1, 1]])
            ),
        ),
        Family(0, lambda: cirq.ControlledGate(_random_unitary(1), num_controls=6)),
        Family(0, lambda: cirq.ControlledGate(_random_unitary(2), control_values=[1, 0, 1])),
        Family(0, lambda: cirq.ControlledGate(_random_unitary(3), num_controls=2)),
        Family(0, lambda: cirq.ControlledGate(cirq.GlobalPhaseGate(1j**0.7), control_values=[0, 0])),
        Family(0, lambda: cirq.ControlledGate(cirq.DensePauliString("XY", coefficient=1j))),
    ],
}

NOT_UNITARY: set[type] = {
    cirq.AmplitudeDampingChannel, cirq.AsymmetricDepolarizingChannel, cirq.BitFlipChannel,
    cirq.DepolarizingChannel, cirq.GeneralizedAmplitudeDampingChannel, cirq.KrausChannel,
    cirq.MeasurementGate, cirq.MixedUnitaryChannel, cirq.PauliMeasurementGate, cirq.PhaseDampingChannel,
    cirq.PhaseFlipChannel,
    cirq.RandomGateChannel, cirq.ResetChannel, cirq.StatePreparationChannel,
}  # fmt: skip
ABSTRACT: set[type] = {cirq.Gate, cirq.EigenGate, cirq.BaseDensePauliString}

_Q, _P = cirq.LineQubit.range(2)


def examples() -> list[tuple[str, Family]]:
    """All families, with a name each."""
    return [
        (f"{gate.__name__}-{k}", family) for gate, rows in FAMILIES.items() for k, family in enumerate(rows)
    ]


def random_numbers(count: int, seed: int) -> list[float]:
    """Numbers like those that gates get, beyond one period too."""
    return [float(x) for x in np.random.default_rng(seed).uniform(-3, 3, count)]
