"""Keras 3 layers for quantum circuits. Importing this package imports Keras and TensorFlow.

The layers keep the constructor and call signatures of TensorFlow Quantum's, so that its users change the import only.
"""

from __future__ import annotations

from qflock.layers.backend import require_tensorflow_backend

require_tensorflow_backend()

from qflock.layers.add_circuit import AddCircuit  # noqa: E402
from qflock.layers.conversion import convert_to_tensor, from_tensor  # noqa: E402
from qflock.layers.pqc import PQC  # noqa: E402

__all__ = ["PQC", "AddCircuit", "convert_to_tensor", "from_tensor"]
