"""NetworkPolicies as a packet filter, and Services as names: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """A pod as the network sees it."""

    address: str
    namespace: str
    labels: Mapping[str, str]
    host: str = ""
    subdomain: str = ""


def packet_filter(pod: Endpoint, policies: Iterable[Manifest], pods: Iterable[Endpoint]) -> str:
    """The rules of nftables for one pod. A pod that no policy selects hears everybody."""
    chosen = [p["spec"] for p in policies if _selects(p, pod)]
    everybody = list(pods)
    allowed = [line for spec in chosen for rule in spec["ingress"] for line in _accept(rule, pod, everybody)]
    lines = [
        "table inet cluster",
        "delete table inet cluster",
        "table inet cluster {",
        "chain input {",
        f"type filter hook input priority 0; policy {'drop' if chosen else 'accept'};",
        "iif lo accept",
        "ct state established,related accept",
        *allowed,
        "}",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _selects(policy: Manifest, pod: Endpoint) -> bool:
    _only(policy["spec"], {"podSelector", "policyTypes", "ingress"})
    if policy["spec"]["policyTypes"] != ["Ingress"]:
        raise ValueError(f"unknown policyTypes {policy['spec']['policyTypes']}")
    return policy["metadata"]["namespace"] == pod.namespace and matches(policy["spec"]["podSelector"], pod)


def matches(selector: Manifest, pod: Endpoint) -> bool:
    """Whether a label selector chooses a pod."""
    _only(selector, {"matchLabels"})
    return selector.get("matchLabels", {}).items() <= pod.labels.items()


def _accept(rule: Manifest, pod: Endpoint, pods: list[Endpoint]) -> list[str]:
    _only(rule, {"from", "ports"})
    for peer in rule["from"]:
        _only(peer, {"podSelector"})
    peers = [
        other.address
        for other in pods
        if other.namespace == pod.namespace
        and any(matches(peer["podSelector"], other) for peer in rule["from"])
    ]
    for port in rule["ports"]:
        _only(port, {"protocol", "port"})
    return [
        f"ip saddr {{ {', '.join(peers)} }} {port['protocol'].lower()} dport {int(port['port'])} accept"
        for port in rule["ports"]
        if peers
    ]


def names(services: Iterable[Manifest], pods: Iterable[Endpoint]) -> str:
    """Lines of a hosts file: what the cluster's DNS says about the pods of headless Services."""
    everybody = list(pods)
    lines = ["127.0.0.1 localhost"]
    for service in services:
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        if service["spec"].get("clusterIP") != "None":
            continue
        for pod in everybody:
            chosen = matches({"matchLabels": service["spec"]["selector"]}, pod)
            if chosen and pod.namespace == namespace and pod.subdomain == name and pod.host:
                short = f"{pod.host}.{name}"
                forms = [short + end for end in ("", f".{namespace}", f".{namespace}.svc.cluster.local")]
                lines.append(f"{pod.address} {' '.join(forms)}")
    return "\n".join(lines) + "\n"


def _only(given: Mapping[str, object], known: set[str]) -> None:
    if unknown := set(given) - known:
        raise ValueError(f"this cluster does not know {sorted(unknown)}")
