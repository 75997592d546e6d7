"""Jobs that the tests render."""

from __future__ import annotations

from qflock.deploy.spec import Google, JobSpec, Schedule, Toleration

PLAIN = JobSpec(name="first", store="gs://bucket/first", workers=3)
TOLERANT = Schedule(
    spot=True, node_selector={"disk": "ssd"}, tolerations=[Toleration(key="gpu", operator="Exists")]
)
JOBS = {
    "indexed-job": PLAIN,
    "jobset": PLAIN.model_copy(update={"kind": "jobset"}),
    "tfjob": PLAIN.model_copy(update={"kind": "tfjob"}),
    "gke-spot": PLAIN.model_copy(update={"schedule": TOLERANT, "google": Google(project="my-project")}),
}
