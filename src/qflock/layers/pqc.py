"""The parametrised quantum circuit as a Keras layer: `PQC`."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import cirq
import keras
import numpy as np

from qflock.circuits.tensors import deserialize, serialize
from qflock.engine.simulator import Simulator
from qflock.errors import ConfigurationError, SymbolError
from qflock.layers.quantum_operation import as_circuit_tensor, expectation_operation

_DIFFERENTIATORS = (None, "adjoint")


@keras.saving.register_keras_serializable(package="qflock")
class PQC(keras.layers.Layer):
    r"""A trainable circuit behind a batch of data circuits, read out by expectation values.

    Output $y_{sk} = \langle 0|D_s^\dagger U^\dagger(\theta)\, O_k\, U(\theta) D_s|0\rangle$ for data circuit $D_s$, model
    circuit $U$ and operator $O_k$; exact values, exact gradients by $\theta$.

    Called with a string tensor `(batch,)` from `convert_to_tensor`; returns `(batch, operators)` of the layer's dtype.

    Args:
        model_circuit: Circuit with at least one symbol; each symbol becomes one trainable value.
        operators: One or more Hermitian `cirq.PauliString` or `cirq.PauliSum`.
        repetitions: Must be None: values are exact, not sampled.
        backend: Must be None or "noiseless".
        differentiator: None or "adjoint", which are the same.
        initializer: Of the trainable values; by default uniform in [0, 2 pi), in radians.
        regularizer: Of the trainable values.
        constraint: Of the trainable values.
        **kwargs: Of `keras.layers.Layer`, for instance `name`. `dtype="float64"` simulates in complex128.

    Raises:
        SymbolError: If the model circuit has no symbol.
        ConfigurationError: If an argument asks for something else than exact values.

    Example:
        >>> import cirq, sympy
        >>> from qflock.layers import PQC, convert_to_tensor
        >>> q = cirq.LineQubit(0)
        >>> layer = PQC(cirq.Circuit(cirq.rx(sympy.Symbol("a"))(q)), cirq.Z(q), initializer="zeros")
        >>> layer(convert_to_tensor([cirq.Circuit(), cirq.Circuit(cirq.X(q))])).numpy().tolist()
        [[1.0], [-1.0]]

    Source: the layer of the same name in TensorFlow Quantum.
    """

    def __init__(
        self,
        model_circuit: cirq.AbstractCircuit,
        operators: cirq.PauliString[Any] | cirq.PauliSum | Sequence[cirq.PauliString[Any] | cirq.PauliSum],
        *,
        repetitions: int | None = None,
        backend: str | None = None,
        differentiator: str | None = None,
        initializer: Any = None,
        regularizer: Any = None,
        constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        _check_exact(repetitions, backend, differentiator)
        super().__init__(autocast=False, **kwargs)
        self._circuit = model_circuit
        self._operators = (
            [operators] if isinstance(operators, (cirq.PauliString, cirq.PauliSum)) else operators
        )
        dtype = "complex128" if self.compute_dtype == "float64" else "complex64"
        self._simulator = Simulator(model_circuit, operators, dtype=dtype)
        if not self._simulator.symbols:
            raise SymbolError(
                "Argument `model_circuit` must hold at least one symbol to train, but holds none"
            )
        self._initializer = keras.initializers.get(
            keras.initializers.RandomUniform(0.0, 2 * np.pi) if initializer is None else initializer
        )
        self._regularizer = keras.regularizers.get(regularizer)
        self._constraint = keras.constraints.get(constraint)
        self._parameters = self.add_weight(
            name="parameters",
            shape=(self._simulator.parameter_count,),
            initializer=self._initializer,
            regularizer=self._regularizer,
            constraint=self._constraint,
        )
        self.built = True

    @property
    def model_circuit(self) -> cirq.AbstractCircuit:
        """The trainable circuit."""
        return self._circuit

    @property
    def simulator(self) -> Simulator:
        """What evaluates the circuit."""
        return self._simulator

    @property
    def symbols(self) -> list[str]:
        """Names of the trainable values, in the order of the weight."""
        return list(self._simulator.symbols)

    def symbol_values(self) -> dict[str, float]:
        """The trainable values by symbol."""
        values = keras.ops.convert_to_numpy(self._parameters)
        return dict(zip(self._simulator.symbols, values.tolist(), strict=True))

    @property
    def operators(self) -> list[Any]:
        """What is read out, in the order of the outputs."""
        return _as_list(self._operators)

    def call(self, inputs: Any) -> Any:
        """Evaluates a batch of data circuits."""
        circuits = as_circuit_tensor(inputs)
        return expectation_operation(self._simulator, circuits, self._parameters.value)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Float `(batch, operators)`."""
        return keras.KerasTensor(
            (inputs.shape[0], self._simulator.observable_count), dtype=self.compute_dtype
        )

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to rebuild the layer; circuits and operators in their serialised form."""
        operators = [cirq.PauliSum.wrap(operator) for operator in _as_list(self._operators)]
        return {
            **super().get_config(),
            "model_circuit": _text(serialize(self._circuit)),
            "operators": [_text(serialize(operator)) for operator in operators],
            "initializer": keras.initializers.serialize(self._initializer),
            "regularizer": keras.regularizers.serialize(self._regularizer),
            "constraint": keras.constraints.serialize(self._constraint),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> PQC:
        """Rebuilds the layer."""
        config = dict(config)
        config["model_circuit"] = deserialize(base64.b64decode(config["model_circuit"]))
        config["operators"] = [deserialize(base64.b64decode(text)) for text in config["operators"]]
        return cls(**config)


def _as_list(operators: Any) -> list[Any]:
    return list(operators)


def _text(serialised: bytes) -> str:
    return base64.b64encode(serialised).decode("ascii")


def _check_exact(repetitions: int | None, backend: str | None, differentiator: str | None) -> None:
    if repetitions is not None:
        raise ConfigurationError(
            f"Argument `repetitions` must be None, but is {repetitions!r}: this layer computes exact values, not samples"
        )
    if backend not in (None, "noiseless"):
        raise ConfigurationError(f"Argument `backend` must be None or 'noiseless', but is {backend!r}")
    if differentiator not in _DIFFERENTIATORS:
        raise ConfigurationError(
            f"Argument `differentiator` must be None or 'adjoint', but is {differentiator!r}: gradients are exact"
        )
