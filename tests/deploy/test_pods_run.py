"""The rendered pods really run: three workers in networks of their own, a bucket, and who may talk to whom."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qflock.deploy.checks import FRAMEWORK_BYTES
from qflock.deploy.companions import CAPTURE, TENSORBOARD_PORT
from qflock.deploy.pods import labels
from qflock.deploy.render import render
from qflock.deploy.spec import Experiment, JobSpec, Resources
from tests.deploy.small_cluster.cluster import Cluster, cluster
from tests.deploy.small_cluster.job_controller import JobController
from tests.deploy.small_cluster.kubelet import Pod, wait_until
from tests.deploy.small_cluster.node import missing_tools

WHAT = Path(__file__).with_name("gated_qcnn.py")
EPOCHS, BATCHES = 6, 2  # 14 training examples
PATIENCE = 240.0  # seconds that a start may take where other tests use the same cores


def job_for(gate: Path) -> JobSpec:
    experiment = Experiment(
        what=f"{WHAT}:experiment", epochs=EPOCHS, batch_size=7, checkpoint_seconds=0.001, seed=3
    )
    return JobSpec(
        name="tiny", store="gs://bucket/tiny", workers=3, resources=Resources(cpu=1),
        experiment=experiment, environment={"GATE": str(gate)},
    )  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, "bucket") as running:
        yield running
        print(*(f"--- {pod.name} ({pod.exit_code()})\n{pod.log()}" for pod in running.pods), sep="\n")


@pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())
@pytest.mark.timeout(900)
def test_the_life_of_a_job(here: Cluster) -> None:
    spec = job_for(gate=here.image / "open")
    (job,) = here.submit(render(spec))
    check_that_it_trains(here, job)
    check_who_reaches_whom(here, job, spec)
    check_that_a_killed_worker_is_replaced(here, job)
    check_what_is_stored(here)
    check_that_tensorboard_serves_the_run(here)
    check_that_inference_reads_the_weights(here, spec)
    check_that_bad_input_fails_a_job_at_once(here, spec)


def check_that_it_trains(here: Cluster, job: JobController) -> None:
    job.act()
    worker = job.active[1]
    assert not probe(worker, "startupProbe"), "the other probe begins after the first step only"
    wait_until(
        "a step", lambda: job.act() == "Running" and probe(worker, "startupProbe"), PATIENCE, pause=1.0
    )
    assert probe(worker, "livenessProbe")
    # It stores its state after every step, and waits at the end of the next epoch.
    wait_until("the second epoch", lambda: "epoch 2/" in job.active[0].log(), PATIENCE)
    assert peak_memory(job.active[0]) < FRAMEWORK_BYTES, "the figure of the memory check is out of date"


def peak_memory(pod: Pod) -> int:
    """The most that was resident, in bytes."""
    (line,) = [
        line for line in Path(f"/proc/{pod.process.pid}/status").read_text().splitlines() if "VmHWM" in line
    ]
    return int(line.split()[1]) * 1024


def probe(pod: Pod, kind: str) -> bool:
    """Runs an exec probe once."""
    return pod.execute(*pod.container[kind]["exec"]["command"]).returncode == 0


def check_who_reaches_whom(here: Cluster, job: JobController, spec: JobSpec) -> None:
    others = spec.model_copy(update={"name": "others"})
    here.join("stranger", {}, "default")
    here.join("impostor", labels(spec, "worker"), "other-namespace")
    here.join("other-run", labels(others, "worker"), "default")
    here.join("capture", labels(spec, CAPTURE), "default")
    here.join("fourth-worker", labels(spec, "worker"), "default")
    chief, worker, _ = (job.active[index].endpoint.address for index in range(3))
    for address in (chief, worker):
        assert here.reaches("capture", address, 2223)
        assert here.reaches("fourth-worker", address, 2222)
    assert not here.reaches("capture", chief, 2222)
    assert not here.reaches("fourth-worker", chief, 2223)
    for name in ("stranger", "impostor", "other-run"):
        assert not here.reaches(name, chief, 2222)
        assert not here.reaches(name, worker, 2223)


def check_that_a_killed_worker_is_replaced(here: Cluster, job: JobController) -> None:
    first = [job.active[index] for index in range(3)]
    first[1].kill()
    (here.image / "open").touch()
    here.run(job, "Complete", PATIENCE)
    assert [pod.exit_code() for pod in first] == [143, 137, 143], "the peers of a lost worker leave"
    assert job.failures == 1, "only what was killed counts"
    later = [pod.exit_code() for pod in job.ended if pod not in first]
    assert later.count(0) == 3 and set(later) <= {0, 143}
    (chief,) = [pod for pod in job.ended if pod.endpoint.host == "tiny-0" and pod.exit_code() == 0]
    assert "epoch 1/" not in chief.log(), "it went on, and did not begin again"


def check_what_is_stored(here: Cluster) -> None:
    run = here.buckets / "bucket/tiny"
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [record["step"] for record in records if record["kind"] == "step"]
    assert steps == list(range(1, EPOCHS * BATCHES + 1))
    assert json.loads((run / "status.json").read_text())["state"] == "finished"


def check_that_tensorboard_serves_the_run(here: Cluster) -> None:
    (board,) = [pod for pod in here.pods if pod.container["name"] == "tensorboard"]
    assert board.exit_code() is None, board.log()
    assert not here.reaches("stranger", board.endpoint.address, TENSORBOARD_PORT)
    path = "/data/plugin/scalars/tags"
    wait_until("the curves", lambda: "val_loss" in forwarded(board, path), PATIENCE, pause=2.0)


def forwarded(pod: Pod, path: str) -> str:
    """What a port-forward to the pod shows."""
    url = f"http://127.0.0.1:{TENSORBOARD_PORT}{path}"
    read = f"import urllib.request; print(urllib.request.urlopen({url!r}, timeout=20).read().decode())"
    return pod.execute(sys.executable, "-S", "-c", read).stdout


def check_that_inference_reads_the_weights(here: Cluster, spec: JobSpec) -> None:
    (job,) = here.submit(render(spec, "infer"))
    here.run(job, "Complete", PATIENCE)
    (pod,) = job.ended
    assert "mean squared error" in pod.log()
    assert (here.buckets / "bucket/tiny/predictions.csv").exists()


def check_that_bad_input_fails_a_job_at_once(here: Cluster, spec: JobSpec) -> None:
    """Another job on the store of this one."""
    another = spec.experiment.model_copy(update={"seed": 4})
    changes = {"name": "second", "experiment": another, "tensorboard": False, "workers": 2}
    (job,) = here.submit(render(spec.model_copy(update=changes)))
    here.run(job, "PodFailurePolicy", PATIENCE)
    assert len(job.ended) == 2, "nobody was replaced"
    (chief,) = [pod for pod in job.ended if pod.exit_code() == 2]
    assert "holds a run with other arguments" in chief.log()


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_node_that_is_taken_away_costs_no_restart(here: Cluster) -> None:
    spec = job_for(gate=here.image / "open").model_copy(update={"tensorboard": False})
    (job,) = here.submit(render(spec))
    check_that_it_trains(here, job)
    (here.image / "open").touch()
    job.active[1].evict()
    here.run(job, "Complete", PATIENCE)
    assert job.failures == 0
    check_what_is_stored(here)
