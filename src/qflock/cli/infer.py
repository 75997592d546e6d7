"""`qflock infer`."""

from __future__ import annotations

import typer

from qflock.cli import options


def infer(
    run: options.RunArgument, experiment: options.Trusted = None, verbose: options.Verbose = False
) -> None:
    """Predict the validation examples that are stored with a run, from its newest weights.

    Prints predictions, labels, mean squared error and accuracy, and writes `predictions.csv` into the run.

    Example:

    * `qflock infer runs/first`
    """
    from qflock.cluster.strategy import quiet_tensorflow
    from qflock.training.run import load_spec
    from qflock.training.store import Store

    if not verbose:
        quiet_tensorflow()
    store = Store(run)
    spec = load_spec(store)

    from qflock.training.inference import infer as predict
    from qflock.training.ready import experiment_of

    result = predict(experiment_of(spec, experiment), spec, store)
    for index, (outputs, labels) in enumerate(
        zip(result.outputs.tolist(), result.labels.tolist(), strict=True)
    ):
        for output, label in zip(outputs, labels, strict=True):
            typer.echo(f"{index:5d}  prediction {output:+.6f}  label {label:+g}")
    typer.echo(f"mean squared error {result.mean_squared_error:.8f}")
    typer.echo(f"accuracy {result.accuracy:.4f}")
