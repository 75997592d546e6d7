"""The same manifests as a Kustomize base and overlays, for those who keep manifests in git."""

from __future__ import annotations

from qflock.deploy.companions import accounts, network_policies, tensorboard
from qflock.deploy.render import to_yaml
from qflock.deploy.spec import Google, JobSpec, Kind, Schedule
from qflock.deploy.training import training

EXAMPLE = JobSpec(name="qcnn", store="gs://my-bucket/qcnn")
HEADER = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
OVERLAYS: dict[str, tuple[Kind, Schedule, Google | None]] = {
    "indexed-job": ("indexed-job", Schedule(), None),
    "jobset": ("jobset", Schedule(), None),
    "tfjob": ("tfjob", Schedule(), None),
    "gke": ("indexed-job", Schedule(spot=True), Google(project="my-project")),
}


def kustomize_files(job: JobSpec = EXAMPLE) -> dict[str, str]:
    """Path below `deploy/kustomize/` to text: a base, and an overlay for each way to train."""
    files = {
        "base/kustomization.yaml": _kustomization("companions.yaml"),
        "base/companions.yaml": to_yaml([*accounts(job), *network_policies(job), *tensorboard(job)]),
    }
    for name, (kind, schedule, google) in OVERLAYS.items():
        variant = job.model_copy(update={"kind": kind, "schedule": schedule, "google": google})
        files[f"overlays/{name}/kustomization.yaml"] = _kustomization("../../base", "training.yaml")
        files[f"overlays/{name}/training.yaml"] = to_yaml(training(variant))
    return files


def _kustomization(*resources: str) -> str:
    return HEADER + "".join(f"- {each}\n" for each in resources)
