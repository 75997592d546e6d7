"""The whole state of a training, as one object that any number of workers can take up again."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qflock.errors import RunError

if TYPE_CHECKING:
    from qflock.training.steps import Steps

_HEADER, _CALLBACKS = "header", "callbacks"
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Position:
    """How far a training is.

    Args:
        step: Steps done.
        epochs: Epochs done, validation included.
        fingerprint: Of data, batch size, seed and model.
    """

    step: int
    epochs: int
    fingerprint: str

    def __post_init__(self) -> None:
        counts = all(type(value) is int and 0 <= value < 2**63 for value in (self.step, self.epochs))
        if not counts or not _DIGEST.fullmatch(str(self.fingerprint)):
            raise RunError(f"A position must be two counts and a digest, but is {self.__dict__}")


@dataclass(frozen=True)
class TrainingState:
    """Where a training is, and everything it needs to go on.

    Args:
        position: How far it is.
        arrays: Of model, optimiser and running metrics (summed over the workers), in a fixed order.
        callbacks: What the Keras callbacks remember, as JSON.
    """

    position: Position
    arrays: tuple[np.ndarray, ...]
    callbacks: bytes = b"{}"

    def pack(self) -> bytes:
        """The state as the bytes of an `.npz` file that needs no unpickling."""
        buffer = io.BytesIO()
        texts = {_HEADER: json.dumps(asdict(self.position)).encode(), _CALLBACKS: self.callbacks}
        named: dict[str, Any] = {name: np.frombuffer(text, dtype=np.uint8) for name, text in texts.items()}
        named |= {f"array{i:05d}": array for i, array in enumerate(self.arrays)}
        np.savez(buffer, **named)
        return buffer.getvalue()

    @classmethod
    def unpack(cls, content: bytes, where: str) -> TrainingState:
        """Inverse of `pack`; `where` names the source in the error."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                position = Position(**json.loads(stored[_HEADER].tobytes()))
                arrays = tuple(stored[f"array{i:05d}"] for i in range(len(stored.files) - 2))
                return cls(position, arrays, stored[_CALLBACKS].tobytes())
        except Exception as error:
            raise RunError(
                f"{where} must be a stored training state, but cannot be read: {error!r}"
            ) from None


def capture(steps: Steps, position: Position, callbacks: bytes = b"{}") -> TrainingState:
    """Reads the state; every worker must call it at the same step, since the metrics are summed over all."""
    arrays = [np.array(v) for v in _replicated(steps)] + steps.reduced(steps.train_metrics)
    return TrainingState(position, tuple(arrays), callbacks)


@contextmanager
def unchanged(steps: Steps) -> Iterator[None]:
    """Undoes what happens to model and optimiser inside of it."""
    before = [np.array(v) for v in _replicated(steps)]
    yield
    with steps.strategy.scope():
        for variable, array in zip(_replicated(steps), before, strict=True):
            variable.assign(array)


def share(steps: Steps, content: bytes) -> bytes:
    """The chief's `content` on every worker; every worker must call it, the others with no content."""
    (length,) = steps.sum_over_workers([np.array([len(content)])])
    mine = np.frombuffer(content, np.uint8) if content else np.zeros(int(length[0]), np.uint8)
    (shared,) = steps.sum_over_workers([mine])
    return bytes(shared.tobytes())


def restore(steps: Steps, state: TrainingState | None, chief: bool) -> Position | None:
    """Puts the chief's state into every worker; returns its position, or None where the chief has no state.

    What the callbacks remember is not part of it.

    Args:
        steps: To put it into.
        state: What the chief has read; the other workers need no access to the store and pass None.
        chief: Whether this is the chief.

    Raises:
        RunError: If the arrays do not fit the model, on every worker.
    """
    variables = [*_replicated(steps), *_running(steps)]
    problem = _mismatch(variables, state) if state is not None else None
    header = _share_header(steps, state.position if state and not problem else None, bool(problem), chief)
    if header == "refused":
        raise RunError(problem or "The chief refused the stored state; its log says why")
    if header is None:
        return None
    zeros = [np.zeros(v.shape, dtype=np.asarray(v).dtype) for v in variables]
    arrays = steps.sum_over_workers(list(state.arrays) if chief and state else zeros)
    replicated = len(_replicated(steps))
    with steps.strategy.scope():
        for variable, array in zip(variables[:replicated], arrays[:replicated], strict=True):
            variable.assign(array)
    for variable, array in zip(variables[replicated:], arrays[replicated:], strict=True):
        variable.assign(array if chief else np.zeros_like(array))
    return Position(*header)


def training_fingerprint(steps: Steps, data: str, batch_size: int, seed: int) -> str:
    """A digest of everything that must be equal for a stored state to be taken up."""
    # Not their paths: those count the models that this process has made before.
    shapes = [(v.name, tuple(v.shape)) for v in steps.model.variables]
    parts = [data, batch_size, seed, shapes, _described(steps.optimizer), _described(steps.loss)]
    # What JSON does not know, such as a schedule of the user's own, counts by its type: its `repr` names an address.
    text = json.dumps(parts, sort_keys=True, default=lambda value: type(value).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()


def _described(part: Any) -> Any:
    """An optimiser or loss by its type and settings, a function by its name."""
    if not hasattr(part, "get_config"):
        return part if isinstance(part, str) else getattr(part, "__qualname__", type(part).__qualname__)
    try:
        settings = part.get_config()
    except NotImplementedError:  # a schedule of the user's own need not have any
        settings = {}
    # The name counts the optimisers of a process.
    return type(part).__qualname__, {key: value for key, value in settings.items() if key != "name"}


def _replicated(steps: Steps) -> list[Any]:
    return [*steps.model.variables, *steps.optimizer.variables]


def _running(steps: Steps) -> list[Any]:
    return [v for metric in steps.train_metrics for v in metric.variables]


def _mismatch(variables: list[Any], state: TrainingState) -> str | None:
    want = [(np.asarray(v).dtype.name, *v.shape) for v in variables]
    have = [(a.dtype.name, *a.shape) for a in state.arrays]
    if want == have:
        return None
    return (
        f"The stored weights must fit the model, but are {have} where the model has {want} (type and shape)"
    )


def _share_header(steps: Steps, position: Position | None, refused: bool, chief: bool) -> Any:
    """Sends the chief's position to all workers as integers; the fingerprint as its bytes."""
    message = np.zeros(36, dtype=np.int64)
    if chief and refused:
        message[0] = 2
    if chief and position is not None:
        message[:4] = 1, position.step, position.epochs, 0
        message[4:] = list(bytes.fromhex(position.fingerprint))
    (shared,) = steps.sum_over_workers([message])
    if shared[0] != 1:
        return "refused" if shared[0] == 2 else None
    return int(shared[1]), int(shared[2]), bytes(shared[4:].tolist()).hex()
