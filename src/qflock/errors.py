"""Every error that qflock raises on purpose.

Each message says what was given, what is allowed and what to do, on one line. The command line prints it without a
traceback and leaves with the class's `exit_code`: 2 for a permanent error (a retry would fail the same way), 143 for
"stopped from outside, start me again".
"""

from __future__ import annotations

from typing import ClassVar


class QflockError(Exception):
    """Root of all errors raised by qflock."""

    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:
        # What a message quotes, a gate's `repr` for instance, may have several lines.
        return " ".join(super().__str__().split("\n"))


class CircuitError(QflockError, ValueError):
    """A circuit that cannot be compiled: a qudit, a measurement, a noise channel, an unknown gate."""


class SymbolError(CircuitError):
    """A symbol without a value, a value without a symbol, or a value that is not a finite number."""


class ObservableError(QflockError, ValueError):
    """An observable that is not a Hermitian sum of Pauli strings, or an empty list of them."""


class TensorFormatError(QflockError, ValueError):
    """A string tensor element that is not a serialised circuit of a known version."""


class EngineError(QflockError):
    """The native engine cannot run as asked, for instance on a missing instruction set."""


class MemoryBudgetError(EngineError, MemoryError):
    """A state that does not fit into the memory there is, or into the budget that was set."""


class ConfigurationError(QflockError, ValueError):
    """Arguments of a training run, a cluster or a job that cannot work."""


class RunError(QflockError):
    """A run directory or store that is missing, already used, damaged or refused."""


class StoreError(RunError):
    """A folder or bucket that refuses: no permission, no such bucket, no credential, no space."""


class StoreUnreachableError(StoreError):
    """A bucket that did not answer, or kept failing, for longer than is waited: start again to resume."""

    exit_code: ClassVar[int] = 143


class PreemptedError(QflockError):
    """Stopped from outside, or a peer was lost: start again to resume."""

    exit_code: ClassVar[int] = 143
