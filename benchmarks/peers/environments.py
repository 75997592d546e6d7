"""One virtual environment per peer, made once: their requirements exclude each other's, and ours."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HOME = HERE.parents[1] / "build" / "peers"


@dataclass(frozen=True)
class Peer:
    """A simulator to compare with.

    Attributes:
        script: file name of its script and its requirements, without the ending.
        gradient_tolerance: what its gradients may differ by, relative to the largest entry.
    """

    name: str
    script: str
    gradient_tolerance: float


# Its derivatives of gates are finite differences in float32.
TENSORFLOW_QUANTUM = Peer("TensorFlow Quantum", "tfq", 1e-3)
PEERS = (
    TENSORFLOW_QUANTUM,
    Peer("lightning.qubit", "lightning", 1e-5),
    Peer("TensorCircuit-NG", "tensorcircuit_ng", 1e-5),
)


def interpreter(peer: Peer) -> Path:
    """The peer's Python; makes its environment where there is none or the requirements have changed."""
    folder = HOME / peer.script
    requirements = HERE / "requirements" / f"{peer.script}.txt"
    installed = folder / "requirements.txt"
    python = folder / "bin" / "python"
    if not installed.exists() or installed.read_text() != requirements.read_text():
        print(f"making the environment of {peer.name} in {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", "-r", str(requirements)], check=True)
        installed.write_text(requirements.read_text())
    return python


def run_script(peer: Peer, source: Path, target: Path, script: str | None = None) -> None:
    """Runs the peer's script, or another one of its environment; the output is shown only where it fails."""
    path = HERE / f"{script or peer.script}.py"
    command = [str(interpreter(peer)), str(path), str(source), str(target)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if finished.returncode:
        sys.exit(f"{finished.stdout}\n{path.name} failed on {source.name} with code {finished.returncode}")
