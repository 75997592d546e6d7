"""An expectation value and its gradient, checked against the formula."""

from __future__ import annotations

import math

import cirq
import sympy

import qflock

a, b = cirq.LineQubit.range(2)
theta = sympy.Symbol("theta")
circuit = cirq.Circuit(cirq.ry(theta)(a), cirq.CNOT(a, b))

value, gradient = qflock.expectation(
    circuit, [cirq.Z(a) * cirq.Z(b), cirq.Z(b)], {"theta": 0.3}, gradient=True
)

print(f"<ZZ> = {value[0]:.4f}, <Z> = {value[1]:.4f}, d<Z>/dtheta = {gradient['theta'][1]:.4f}")
assert math.isclose(value[1], math.cos(0.3), abs_tol=1e-6)
assert math.isclose(gradient["theta"][1], -math.sin(0.3), abs_tol=1e-6)
