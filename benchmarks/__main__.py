"""Speed of qflock, alone and beside other simulators."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

RESULTS = Path("docs/benchmarks")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("quick", help="our own figures beside their targets; exit code 1 where one is missed")
    commands.add_parser("reference", help="rewrite tests/data/tfq_expectations.json with TensorFlow Quantum")
    for name, meaning in (
        ("peers", "side by side with other simulators, in environments of their own"),
        ("sweep", "our own cost against qubits, batch, gates, threads and reductions"),
        ("learning", "TensorFlow Quantum and qflock train the same QCNN on the same data"),
        ("all", "peers, sweep and learning"),
    ):
        command = commands.add_parser(name, help=meaning)
        command.add_argument("--output", type=Path, default=RESULTS, help="folder of tables and plots")
    arguments = parser.parse_args()
    if arguments.command == "quick":
        from benchmarks.quick import quick

        return quick()
    if arguments.command == "reference":
        from benchmarks.reference import write_reference

        write_reference(Path("tests/data/tfq_expectations.json"))
        return 0
    if arguments.command in ("peers", "all"):
        from benchmarks.compare import compare

        compare(arguments.output / "peers")
    if arguments.command in ("sweep", "all"):
        from benchmarks.sweeps import sweep

        sweep(arguments.output / "sweep")
    if arguments.command in ("learning", "all"):
        from benchmarks.learning import learning

        learning(arguments.output / "learning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
