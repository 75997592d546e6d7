r"""From measured times to the time, memory and cost of a whole training: the equations of the planner.

All times in seconds. $W$ workers with $c$ threads each share a batch of $B$ examples, $b = \lceil B/W \rceil$ for each.

| what | equation |
|---|---|
| kernel | $K(b, c) = r\,K_P(b)\,a(c)/a(P)$ with $a(c) = s + (1-s)/\min(c, b)$, measured on $P$ threads |
| ring | $R(W) = m \cdot 2(W-1)\,(\lambda + n/(W\beta))$ for $m$ reductions of $n$ bytes |
| step | $T(W) = K(b, c) + F + [W>1]\,(C + R(W))$ |
| epoch | $E(W) = \lceil N/B \rceil\,T(W) + V(W) + D + [W>1]\,(R'(W) - R'(2))$ |
| whole | Daly's: $M e^{S/M}(e^{\tau/M} - 1)\,E_{all}/\tau$ with $M = 1/(W\mu)$; $S + E_{all}$ without preemptions |

$r$ is the work (amplitudes times gates) of one example over that of the measured size; $s$ the serial share, from the
kernel on one and on $P$ threads; $F$ the framework's time, a measured step without its kernel; $C$ what coordinating
workers costs beyond the ring, from a measured step of two workers; $\lambda$ and $\beta$ latency and bandwidth, measured
between two processes (plus the network's own latency); $V$ the kernel of the validation, $D$ the rest of a measured
epoch, $R'$ the ring of the reductions at its end; $S$ the start;
$\mu$ preemptions of one node per second; $\tau$ the time between checkpoints.

Source of the last line: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
Future Generation Computer Systems 22 (2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from qflock.engine.memory import estimate_memory
from qflock.planning.measured import Measured

REDUCTIONS_PER_STEP = 2  # gradients; loss and wishes
REDUCTIONS_PER_EPOCH = 3  # metrics of training and of validation; the vote about a checkpoint
# Up to here the engine holds 16 samples in the lanes of one state; beyond the second, all threads share one state.
BATCH_LANE_QUBITS, SHARED_STATE_QUBITS, LANES = 13, 20, 16


@dataclass(frozen=True)
class Training:
    """The size of a training.

    Args:
        train: Examples to train on.
        validation: Examples to validate with.
        epochs: Passes over them.
        batch_size: Examples of a step over all workers.
        qubits: Of each state that one example needs.
        work_ratio: Work of one example over that of the measured ones.
    """

    train: int
    validation: int
    epochs: int
    batch_size: int
    qubits: tuple[int, ...]
    work_ratio: float = 1.0

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch."""
        return math.ceil(self.train / self.batch_size)


@dataclass(frozen=True)
class Conditions:
    """Where the training is to run.

    Args:
        threads: Of each worker.
        network_latency: Seconds of one hop between nodes, on top of what two processes of one machine measured.
        node_start: Seconds until a node is there with its image.
        preemptions_per_hour: Of one node.
        checkpoint_seconds: Between two checkpoints.
    """

    threads: int
    network_latency: float = 0.0
    node_start: float = 0.0
    preemptions_per_hour: float = 0.0
    checkpoint_seconds: float = 60.0


@dataclass(frozen=True)
class Forecast:
    """What a training takes on some workers; times in seconds.

    Args:
        workers: How many.
        kernel: Share of a step that the engine works.
        framework: Share of a step that Keras and TensorFlow work.
        communication: Share of a step for coordination and reductions.
        step: A training step.
        epoch: An epoch with its validation.
        start: From the command to the first step.
        total: All of it, with preemptions.
        preemptions: How many are to be expected.
        circuits_per_hour: Examples trained on in an hour of steps.
    """

    workers: int
    kernel: float
    framework: float
    communication: float
    step: float
    epoch: float
    start: float
    total: float
    preemptions: float
    circuits_per_hour: float


@dataclass(frozen=True)
class Reckoning:
    """The equations, over what one worker and two workers measured on this machine.

    Args:
        alone: Of one worker with all threads.
        pair: Of two workers that shared the machine; None where there was only one.
    """

    alone: Measured
    pair: Measured | None

    @property
    def framework(self) -> float:
        """F: a step without its kernel."""
        return max(0.0, self.alone.step - self.alone.gradient_seconds(self.alone.rows))

    @property
    def serial_share(self) -> float:
        """s, from the kernel on one and on all threads; 0.1 where there is only one thread to measure with."""
        threads, rows = self.alone.threads, self.alone.rows
        if threads == 1 or not self.alone.one_thread:
            return 0.1
        ratio = self.alone.gradient_seconds(rows) / self.alone.one_thread
        return min(1.0, max(0.0, (ratio - 1 / threads) / (1 - 1 / threads)))

    def amdahl(self, threads: int, rows: float, qubits: tuple[int, ...]) -> float:
        """a(c): small states are one sample's, or 16 samples', on one thread; large ones are everyone's."""
        small = max(qubits, default=0) < SHARED_STATE_QUBITS
        used = min(threads, max(1.0, rows)) if small else threads
        return self.serial_share + (1 - self.serial_share) / used

    def ring(self, workers: int, reductions: int, latency: float = 0.0) -> float:
        """R(W)."""
        if workers == 1 or self.pair is None:
            return 0.0
        transfer = self.pair.parameter_bytes / (workers * self.pair.bytes_per_second)
        return reductions * 2 * (workers - 1) * (self.pair.latency + latency + transfer)

    @property
    def coordination(self) -> float:
        """C: what a step of two workers took beyond kernel, framework and ring."""
        if self.pair is None:
            return 0.0
        known = self.pair.gradient_seconds(self.pair.rows) + self.framework
        return max(0.0, self.pair.step - known - self.ring(2, REDUCTIONS_PER_STEP))

    def here(self, training: Training, workers: int) -> Forecast:
        """On this machine, which the workers share; one or two."""
        source = self.alone if workers == 1 or self.pair is None else self.pair
        rows = math.ceil(training.batch_size / workers)
        checked = math.ceil(training.validation / workers)
        kernel = training.work_ratio * source.gradient_seconds(rows)
        forward = training.work_ratio * source.forward_seconds(checked)
        conditions = Conditions(source.threads)
        return self._forecast(training, workers, conditions, kernel, forward, source)

    def elsewhere(self, training: Training, workers: int, conditions: Conditions) -> Forecast:
        """On nodes of their own, one worker each."""
        alone = self.alone
        rows = math.ceil(training.batch_size / workers)
        checked = math.ceil(training.validation / workers)
        factors = [
            training.work_ratio
            * self.amdahl(conditions.threads, n, training.qubits)
            / self.amdahl(alone.threads, n, training.qubits)
            for n in (rows, checked)
        ]
        kernel = factors[0] * alone.gradient_seconds(rows)
        forward = factors[1] * alone.forward_seconds(checked)
        source = alone if workers == 1 or self.pair is None else self.pair
        return self._forecast(training, workers, conditions, kernel, forward, source)

    def _forecast(
        self,
        training: Training,
        workers: int,
        conditions: Conditions,
        kernel: float,
        forward: float,
        source: Measured,
    ) -> Forecast:
        latency = conditions.network_latency
        communication = 0.0
        if workers > 1:
            communication = self.coordination + self.ring(workers, REDUCTIONS_PER_STEP, latency)
        step = kernel + self.framework + communication
        meetings = self.ring(workers, REDUCTIONS_PER_EPOCH, latency) - self.ring(2, REDUCTIONS_PER_EPOCH)
        rest = source.rest + (max(0.0, meetings) if workers > 1 else 0.0)
        epoch = training.steps_per_epoch * step + forward + rest
        share = math.ceil(training.train / workers) + math.ceil(training.validation / workers)
        start = conditions.node_start + source.start + share * source.place
        total, preemptions = with_preemptions(training.epochs * epoch, start, workers, conditions)
        return Forecast(
            workers, kernel, self.framework, communication, step, epoch, start, total, preemptions,
            3600 * min(training.batch_size, training.train) / step,
        )  # fmt: skip


def with_preemptions(work: float, start: float, workers: int, conditions: Conditions) -> tuple[float, float]:
    """Seconds of a training whose workers may all have to start again, and how often they will.

    Args:
        work: Seconds of computing.
        start: Seconds of the first start, and of each further one.
        workers: One lost worker stops all.
        conditions: How often nodes are lost, and how much is lost with one.

    Example:
        >>> with_preemptions(3600.0, 60.0, 4, Conditions(1))
        (3660.0, 0.0)
    """
    rate = workers * conditions.preemptions_per_hour / 3600
    if not rate:
        return start + work, 0.0
    interval = min(conditions.checkpoint_seconds, work) or 1.0
    if rate * (start + interval) > 700:  # beyond the numbers that there are: it never ends
        return math.inf, math.inf
    total = start + math.exp(rate * start) * math.expm1(rate * interval) / rate * work / interval
    return total, rate * total


def memory_needed(
    base: int, qubits: tuple[int, ...], threads: int, rows: int, stored: int, limit: float = math.inf
) -> int:
    """Bytes of one worker: the process, its examples, and the states that it evaluates at the same moment.

    Args:
        base: Of the process without states.
        qubits: Of each state that one example needs.
        threads: Of the worker.
        rows: Examples of a step on this worker.
        stored: Bytes of the stored examples.
        limit: Of the node; where states for all threads take more than half of it, the engine takes fewer.
    """
    if not qubits:
        return base + stored
    largest = max(qubits)
    one = estimate_memory(largest)
    if largest >= SHARED_STATE_QUBITS:
        states = one
    elif largest > BATCH_LANE_QUBITS:
        states = one * min(threads, rows)
    else:
        states = one * LANES * min(threads, math.ceil(rows / LANES))
    if states > limit / 2:
        states = max(one, int(limit / 2))
    return base + stored + states
