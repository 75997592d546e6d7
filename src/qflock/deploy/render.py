"""A job as Kubernetes manifests. Pure functions: the same job gives the same text."""

from __future__ import annotations

from typing import Literal

from qflock.deploy.companions import accounts, inference, network_policies, tensorboard
from qflock.deploy.pods import Manifest
from qflock.deploy.spec import JobSpec
from qflock.deploy.training import training

Task = Literal["train", "infer"]


def manifests(job: JobSpec, task: Task = "train") -> list[Manifest]:
    """The objects of a job, in the order in which they are to be made: accounts and rules before pods."""
    parts = [accounts(job), network_policies(job)]
    if task == "infer":
        parts.append(inference(job))
    else:
        parts += [tensorboard(job) if job.tensorboard else [], training(job)]
    return [each for part in parts for each in part]


def render(job: JobSpec, task: Task = "train") -> str:
    """The manifests as YAML documents.

    Example:
        >>> render(JobSpec(name="first", store="gs://my-bucket/first")).splitlines()[:2]
        ['apiVersion: v1', 'automountServiceAccountToken: false']
    """
    return to_yaml(manifests(job, task))


def to_yaml(objects: list[Manifest]) -> str:
    """YAML documents with sorted keys and without aliases: a difference in text is one in meaning."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    return "---\n".join(yaml.dump(each, Dumper=Plain, sort_keys=True, width=1000) for each in objects)
