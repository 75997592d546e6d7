"""The simulator: one model circuit and its observables, evaluated and differentiated on batches of data circuits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import cirq
import numpy as np
import sympy
from numpy.typing import NDArray

from qflock.circuits.observables import normalise
from qflock.circuits.symbols import Expressions, natural_key, symbol_names
from qflock.circuits.tensors import deserialize
from qflock.engine.compiled import native_model, native_program
from qflock.engine.data_cones import DataCones
from qflock.engine.evaluation import Lanes, Settings, evaluate
from qflock.engine.memory import ITEM_BYTES, prefix_budget, states_that_fit
from qflock.engine.processor import native, thread_count
from qflock.engine.progress import Progress, section
from qflock.engine.reductions import Part, Reductions, parts_of
from qflock.engine.watch import watch
from qflock.engine.words import number_qubits, pauli_words
from qflock.errors import CircuitError, EngineError, SymbolError
from qflock.program.canonical import Canonical
from qflock.program.cone import GateOrder
from qflock.program.lower import lower
from qflock.program.program import Program

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
DataCircuit = bytes | cirq.AbstractCircuit

_LARGEST_ANGLE = 1e9
_KNOWN_DATA_CIRCUITS = 1 << 16  # beyond, all are forgotten


@dataclass(frozen=True, eq=False, slots=True)
class _Group:
    """Parts with the same program, on states of the same size: they are evaluated as one batch.

    Args:
        model: The native model.
        part: One of the parts, for its name.
        data: The native table of the data circuits' programs.
        known: The place in `data` of each program.
    """

    model: Any
    part: Part
    data: Any
    known: dict[object, int] = field(default_factory=dict)


class _Placements:
    """Where the parts of each data circuit are evaluated: a group, and a place in the group's table of data programs.

    Args:
        parts: How many parts there are.
    """

    def __init__(self, parts: int) -> None:
        self.rows: dict[bytes, int] = {}
        self.count = 0
        self.groups = np.zeros((16, parts), dtype=np.int64)
        self.entries = np.zeros((16, parts), dtype=np.int64)

    def add(self, groups: Sequence[int], entries: Sequence[int]) -> int:
        """Appends a circuit and returns its row."""
        if self.count == len(self.groups):
            self.groups, self.entries = (
                np.concatenate([a, np.zeros_like(a)]) for a in (self.groups, self.entries)
            )
        self.groups[self.count], self.entries[self.count] = groups, entries
        self.count += 1
        return self.count - 1


class Simulator:
    r"""Expectation values and exact gradients of a circuit.

    For sample $s$ with data circuit $D_s$, model circuit $U(\theta)$ and observable $O_k$, the value is
    $\langle 0|D_s^\dagger U^\dagger(\theta) O_k U(\theta) D_s|0\rangle$. Gradients come from one backward sweep over
    the state and a co-state (block adjoint differentiation), whatever the number of parameters.

    Args:
        circuit: The model circuit, with symbols.
        observables: One or more Hermitian `cirq.PauliString` or `cirq.PauliSum`.
        symbols: The order of the parameters; by default the circuit's symbols in natural order.
        dtype: Precision of the states, "complex64" or "complex128". Angles, matrices and sums are float64 always.
        reductions: Which exact reductions to use; all by default.
        lanes: "batch" or "amplitude" to force a layout of the state, "auto" for the faster.
        threads: Threads of one call; by default QFLOCK_THREADS or what the process may use.
        memory_budget: Bytes that states may take; by default what the machine has left.

    Raises:
        CircuitError: If the circuit is not unitary or not on qubits.
        SymbolError: If `symbols` and the circuit's symbols differ.
        ObservableError: If an observable is not Hermitian, or there is none.

    Example:
        >>> import cirq, sympy
        >>> q = cirq.LineQubit(0)
        >>> simulator = Simulator(cirq.Circuit(cirq.rx(sympy.Symbol("a"))(q)), [cirq.Z(q)])
        >>> simulator.expectations([0.0]).tolist()
        [[1.0]]
        >>> values, gradient = simulator.vjp([np.pi / 2], [[1.0]])
        >>> gradient.round(6).tolist()
        [-1.0]
    """

    @watch.compiling
    def __init__(
        self,
        circuit: cirq.AbstractCircuit,
        observables: object,
        *,
        symbols: Sequence[str | sympy.Symbol] | None = None,
        dtype: str = "complex64",
        reductions: Reductions | None = None,
        lanes: Lanes = "auto",
        threads: int | None = None,
        memory_budget: int | None = None,
    ) -> None:
        if not isinstance(circuit, cirq.AbstractCircuit):
            raise CircuitError(
                f"Argument `circuit` must be a cirq.Circuit, but is a {type(circuit).__name__}"
            )
        self._observables = normalise(observables)
        self._settings = _checked_settings(dtype, lanes, threads, memory_budget)
        self._reductions = Reductions() if reductions is None else reductions
        if not isinstance(self._reductions, Reductions):
            raise EngineError(
                f"Argument `reductions` must be a Reductions, for instance Reductions.none(), but is {reductions!r}"
            )
        self._module = native()
        self._numbers = number_qubits(circuit, self._observables)
        program, expressions = lower(circuit, self._numbers)
        self.symbols = _checked_symbols(circuit, expressions, symbols)
        self._program = program
        self._expressions = Expressions(expressions, self.symbols)
        self._words, self._coefficients = pauli_words(self._observables, self._numbers)
        self._constants = np.array([o.constant for o in self._observables])
        self._lock = threading.Lock()
        self._split(None)

    @property
    def parameter_count(self) -> int:
        """How many symbols there are."""
        return len(self.symbols)

    @property
    def qubit_count(self) -> int:
        """How many qubits the circuit and the observables have."""
        return self._program.qubit_count

    @property
    def observable_count(self) -> int:
        """How many observables there are."""
        return len(self._observables)

    @property
    def bounds(self) -> Floats:
        """The largest absolute value that each observable can have, `(observables,)`."""
        return np.asarray(np.abs(self._constants) + np.abs(self._coefficients).sum(axis=1))

    @property
    def part_sizes(self) -> tuple[int, ...]:
        """Qubits of each part that the model falls into, before data circuits add theirs."""
        return tuple(len(part.model.qubits) for part in self._parts)

    def expectations(
        self, values: object, data: Sequence[DataCircuit] | None = None, *, progress: Progress | None = None
    ) -> Floats:
        """Expectation values.

        Args:
            values: `(parameters,)` shared by all samples, or `(batch, parameters)`, in radians or whatever unit the
                circuit's expressions expect.
            data: One data circuit (or its serialised form) per sample; by default samples start at |0...0>.
            progress: Called with the share of the work that is done, 0 to 1.

        Returns:
            `(batch, observables)` float64.

        Raises:
            SymbolError: If a value is missing or not finite.
            CircuitError: If a data circuit cannot be used.
            MemoryBudgetError: If a state does not fit.
        """
        return self._run(values, data, None, progress)[0]

    def vjp(
        self,
        values: object,
        upstream: object,
        data: Sequence[DataCircuit] | None = None,
        *,
        progress: Progress | None = None,
    ) -> tuple[Floats, Floats]:
        """Expectation values and the vector-Jacobian product.

        Args:
            values: As for `expectations`.
            upstream: `(batch, observables)`: the derivative of the loss by each expectation value.
            data: As for `expectations`.
            progress: As for `expectations`.

        Returns:
            Values `(batch, observables)`, and the derivative of the loss by each parameter: `(parameters,)` when the
            values are shared, `(batch, parameters)` when they are per sample.

        Raises:
            EngineError: If `upstream` has another shape; else as for `expectations`.
        """
        weights = np.asarray(upstream, dtype=np.float64)
        result, gradient = self._run(values, data, weights, progress)
        assert gradient is not None
        return result, gradient

    def _run(
        self,
        values: object,
        data: Sequence[DataCircuit] | None,
        upstream: Floats | None,
        progress: Progress | None,
    ) -> tuple[Floats, Floats | None]:
        parameters = self._checked_values(values)
        batch = _batch_size(parameters, data)
        if upstream is not None and upstream.shape != (batch, self.observable_count):
            raise EngineError(
                f"Argument `upstream` must have the shape (batch, observables) = {(batch, self.observable_count)}, "
                f"but has {upstream.shape}"
            )
        if upstream is None:
            watch.evaluated(batch)
        angles = self._expressions.values(parameters)
        _check_angles(angles)
        word_weights = None if upstream is None else upstream @ self._coefficients
        word_values = np.zeros((batch, len(self._words)))
        gradient = None if upstream is None else np.zeros(angles.shape)
        found = self._entries(data, batch)
        work = np.cumsum([0, *(len(sample) << group.model.bits for group, sample, _, _ in found)])
        for k, (group, sample, words, entries) in enumerate(found):
            where = (sample[:, None], words)
            distinct, place = self._distinct(entries, angles)
            weights = None
            if word_weights is not None:
                weights = word_weights[where][distinct]
                if len(distinct) < len(sample):
                    weights = np.zeros((len(distinct), words.shape[1]))
                    np.add.at(weights, place, word_weights[where])
            done = evaluate(
                self._module, group.model, group.data, None if data is None else entries[distinct],
                len(distinct), angles if angles.ndim == 1 else angles[sample], weights, self._settings,
                self._name(group.part), section(progress, work[k] / work[-1], work[k + 1] / work[-1]),
            )  # fmt: skip
            word_values[where] = done.values[place]
            if gradient is not None:
                _add_gradient(gradient, done.gradient, sample)
        result = self._constants + word_values @ self._coefficients.T
        if gradient is None:
            return result, None
        return result, self._expressions.pullback(parameters, gradient)

    def _entries(
        self, data: Sequence[DataCircuit] | None, batch: int
    ) -> list[tuple[_Group, Indices, Indices, Indices]]:
        """For each group in use, the sample, the words `(n, words of a part)` and the data program of its entries."""
        if not batch or not self._parts:
            return []
        with self._lock:
            rows = np.zeros(batch, dtype=np.int64) if data is None else self._rows(data)
            groups, entries = self._placements.groups[rows], self._placements.entries[rows]
            known, words = self._groups, self._part_words
        result = []
        for g in np.unique(groups):
            sample, part = np.nonzero(groups == g)
            group_words = words[part, : len(known[g].part.words)]
            result.append((known[g], sample, group_words, entries[sample, part]))
        return result

    def _distinct(self, entries: Indices, angles: Floats) -> tuple[Indices, Indices]:
        """Which entries have to be evaluated, and for each entry the one that stands for it."""
        if angles.ndim == 1 and self._reductions.dedupe:
            _, first, inverse = np.unique(entries, return_index=True, return_inverse=True)
            return first, inverse
        everything = np.arange(len(entries))
        return everything, everything

    def _name(self, part: Part) -> str:
        """Names the first observable that a part holds, for messages."""
        word = part.words[0]
        return f"observable {int(np.nonzero(self._coefficients[:, word])[0][0])}"

    def _split(self, data: Program | None) -> None:
        """Splits the model into parts that are cheap behind data circuits like this one."""
        order = None if data is None else GateOrder(data.gates)
        self._parts = parts_of(self._program, self._words, self._reductions, order) if self._words else ()
        for part in self._parts:
            states_that_fit(
                len(part.model.qubits), gradient=False, wanted=1, dtype=self._settings.dtype, budget=self._settings.memory_budget,
                what=self._name(part),
            )  # fmt: skip
        self._seen_data = data is not None
        self._data_cones = DataCones(self._parts, self._reductions)
        self._part_words = _rectangle([part.words for part in self._parts])
        self._forget_data()

    def _forget_data(self) -> None:
        """Starts anew without any data circuit; row 0 stands for none."""
        self._groups: list[_Group] = []
        self._group_numbers: dict[object, int] = {}
        self._placements = _Placements(len(self._parts))
        budget = prefix_budget(self._settings.memory_budget) if self._reductions.prefix else 0
        self._state_budget = self._module.StateBudget(budget)
        without = [self._group(part, len(part.model.qubits), False) for part in self._parts]
        self._placements.add(without, [0] * len(without))

    def _rows(self, data: Sequence[DataCircuit]) -> Indices:
        """The placements of data circuits, made for those that are new."""
        if isinstance(data, cirq.AbstractCircuit | bytes):
            raise CircuitError(
                f"Data must be a list of circuits, one for each sample, but is one {type(data).__name__}"
            )
        if not self._seen_data:
            longest = max(
                data, key=lambda item: len(item) if isinstance(item, bytes | cirq.AbstractCircuit) else 0
            )
            with watch.span("compile"):
                self._split(self._data_gates(deserialize(longest) if isinstance(longest, bytes) else longest))
        if self._placements.count + len(data) > _KNOWN_DATA_CIRCUITS:
            new = sum(not isinstance(item, bytes) or item not in self._placements.rows for item in data)
            if self._placements.count + new > _KNOWN_DATA_CIRCUITS:
                self._forget_data()
        known = self._placements.rows
        return np.array(
            [
                known[item] if isinstance(item, bytes) and item in known else self._new_row(item)
                for item in data
            ],
            dtype=np.int64,
        )

    def _new_row(self, item: DataCircuit) -> int:
        if not isinstance(item, bytes):
            return self._compile_data(item)
        row = self._placements.rows[item] = self._compile_data(deserialize(item))
        return row

    @watch.compiling
    def _compile_data(self, circuit: object) -> int:
        return self._place(self._data_gates(circuit))

    def _data_gates(self, circuit: object) -> Program:
        if not isinstance(circuit, cirq.AbstractCircuit):
            raise CircuitError(f"Data must be circuits, but holds a {type(circuit).__name__}")
        for q in sorted(circuit.all_qubits()):
            self._numbers.setdefault(q, len(self._numbers))
        program, expressions = lower(circuit, self._numbers)
        if expressions:
            names = ", ".join(sorted({str(s) for e in expressions for s in e.free_symbols}))
            raise SymbolError(
                f"A data circuit must hold no symbols, but holds {names}; resolve them with cirq.resolve_parameters, "
                "or make them part of the model circuit"
            )
        return program

    def _place(self, data: Program) -> int:
        """Finds, or makes, the group and the native data program of each part; returns the row of the placement."""
        groups, entries = [], []
        for part, cone in zip(self._parts, self._data_cones.of(data), strict=True):
            groups.append(self._group(part, len(cone.qubits), True))
            entries.append(self._entry(self._groups[groups[-1]], cone))
        return self._placements.add(groups, entries)

    def _group(self, part: Part, qubit_count: int, with_data: bool) -> int:
        key = (part.key, qubit_count, with_data)
        number = self._group_numbers.get(key)
        if number is None:
            program = Program(qubit_count, part.model.gates, self._program.expression_count)
            number = self._group_numbers[key] = len(self._groups)
            self._groups.append(
                _Group(
                    native_model(self._module, program, part.local_words, self._bits(qubit_count)),
                    part,
                    self._module.DataTable(self._state_budget),
                )
            )
        return number

    def _entry(self, group: _Group, cone: Canonical) -> int:
        entry = group.known.get(cone.key)
        if entry is None:
            program = Program(len(cone.qubits), cone.gates)
            native_data = native_program(self._module, program, self._bits(len(cone.qubits)))
            entry = group.known[cone.key] = group.data.add(native_data)
        return entry

    def _bits(self, qubit_count: int) -> int:
        """A state fills at least one row of lanes."""
        lanes = int(self._module.vector_bytes) // 4
        return max(qubit_count, lanes.bit_length() - 1)

    def _checked_values(self, values: object) -> Floats:
        array = np.asarray(values, dtype=np.float64)
        if array.ndim not in (1, 2) or array.shape[-1] != len(self.symbols):
            raise SymbolError(
                f"Argument `values` must have the shape ({len(self.symbols)},) or (batch, {len(self.symbols)}), one "
                f"value for each of the symbols {', '.join(self.symbols) or '(none)'}, but has {array.shape}"
            )
        if not np.isfinite(array).all():
            where = np.argwhere(~np.isfinite(array))[0]
            raise SymbolError(
                f"Symbol {self.symbols[where[-1]]!r} must have a finite value, but has {array[tuple(where)]}"
            )
        return array


def _check_angles(angles: Floats) -> None:
    if angles.size and np.abs(angles).max() > _LARGEST_ANGLE:
        raise SymbolError(
            f"Angles must be below {_LARGEST_ANGLE:g} half turns, where float64 still tells their directions, but one is "
            f"{angles.ravel()[np.abs(angles).argmax()]:g}; take them modulo 4"
        )


def _rectangle(rows: Sequence[Sequence[int]]) -> Indices:
    """Rows of different lengths as one array, filled up with zeros."""
    width = max((len(row) for row in rows), default=0)
    return np.array([[*row, *[0] * (width - len(row))] for row in rows], dtype=np.int64).reshape(
        len(rows), width
    )


def _add_gradient(total: Floats, gradient: Floats | None, sample: Indices) -> None:
    assert gradient is not None
    if total.ndim == 1:
        total += gradient
    else:
        np.add.at(total, sample, gradient)


def _batch_size(parameters: Floats, data: Sequence[DataCircuit] | None) -> int:
    if data is None:
        return 1 if parameters.ndim == 1 else len(parameters)
    if parameters.ndim == 2 and len(parameters) != len(data):
        raise EngineError(
            f"Arguments `values` and `data` must hold as many samples as each other, but hold {len(parameters)} and "
            f"{len(data)}"
        )
    return len(data)


def _checked_symbols(
    circuit: cirq.AbstractCircuit,
    expressions: Sequence[sympy.Expr],
    symbols: Sequence[str | sympy.Symbol] | None,
) -> tuple[str, ...]:
    # Some of Cirq's gates do not report all their symbols; the lowered expressions hold every one that matters.
    found = {str(s) for expression in expressions for s in expression.free_symbols}
    present = tuple(sorted(found.union(symbol_names(circuit)), key=natural_key))
    if symbols is None:
        return present
    names = tuple(str(s) for s in symbols)
    if len(set(names)) < len(names):
        raise SymbolError(f"`symbols` must name each symbol once, but are {', '.join(names)}")
    for missing in sorted(set(present) - set(names)):
        raise SymbolError(f"Symbol {missing!r} of the circuit is not among `symbols`: {', '.join(names)}")
    for unused in sorted(set(names) - set(present)):
        raise SymbolError(
            f"Symbol {unused!r} is among `symbols` but not in the circuit, which has {', '.join(present) or 'none'}"
        )
    return names


def _checked_settings(
    dtype: object, lanes: Lanes, threads: int | None, memory_budget: int | None
) -> Settings:
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = ""
    if name not in ITEM_BYTES:
        raise EngineError(f"Argument `dtype` must be one of {', '.join(ITEM_BYTES)}, but is {dtype!r}")
    if lanes not in ("auto", "batch", "amplitude"):
        raise EngineError(f"Argument `lanes` must be one of auto, batch, amplitude, but is {lanes!r}")
    for argument, value in (("threads", threads), ("memory_budget", memory_budget)):
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise EngineError(f"Argument `{argument}` must be a whole number of at least 1, but is {value!r}")
    return Settings(name, lanes, threads or thread_count(), memory_budget)
