"""A `gcloud` for tests: keeps what was made in a file, records every call, answers as the real one, fails on request.

It is started as a program of its own, with `QFLOCK_STAND_IN` naming a folder that holds `state.json` and `calls.jsonl`,
and `failures.json`: for the Nth command that changes something, the message to fail with.
"""

import json
import os
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("QFLOCK_STAND_IN", "."))
NOUNS = {
    ("artifacts", "repositories"): "repositories",
    ("iam", "service-accounts"): "accounts",
    ("container", "clusters"): "clusters",
    ("container", "node-pools"): "pools",
    ("storage", "buckets"): "buckets",
}
READ = {"describe", "list", "get-iam-policy"}


def load(name, default):
    path = FOLDER / name
    return json.loads(path.read_text()) if path.exists() else default


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(1)


def flags(words):
    parts = [word.lstrip("-").partition("=") for word in words if word.startswith("--")]
    return {key: value or True for key, _, value in parts}


def labels(options):
    return dict([options["labels"].partition("=")[::2]]) if "labels" in options else {}


def created(noun, name, options):
    """What `describe` will show."""
    if noun == "repositories":
        return {"format": options["repository-format"].upper(), "labels": labels(options)}
    if noun == "accounts":
        return {"description": options["description"]}
    if noun == "clusters":
        datapath = "ADVANCED_DATAPATH" if "enable-dataplane-v2" in options else "LEGACY_DATAPATH"
        return {
            "status": "RUNNING",
            "workloadIdentityConfig": {"workloadPool": options.get("workload-pool")},
            "networkConfig": {"datapathProvider": datapath},
            "resourceLabels": labels(options),
        }
    if noun == "pools":
        config = {"machineType": options["machine-type"], "resourceLabels": labels(options)}
        return {
            "status": "RUNNING",
            "config": config | ({"spot": True} if "spot" in options else {}),
            "autoscaling": {"totalMaxNodeCount": int(options["total-max-nodes"])},
        }
    prevention = "enforced" if "public-access-prevention" in options else "inherited"
    uniform = "uniform-bucket-level-access" in options
    return {"public_access_prevention": prevention, "uniform_bucket_level_access": uniform}


def change(state, noun, verb, name, options):
    things = state[noun]
    key = (
        f"{name}@{options['project']}.iam.gserviceaccount.com"
        if noun == "accounts" and "@" not in name
        else name
    )
    if verb == "create":
        if key in things:
            fail(f"ERROR: (gcloud) ALREADY_EXISTS: {key}")
        if noun == "pools" and options["cluster"] not in state["clusters"]:
            fail(f"ERROR: (gcloud) ResponseError: code=404, message=Not found: {options['cluster']}")
        things[key] = created(noun, key, options)
        return
    if key not in things:
        fail(f"ERROR: (gcloud) NOT_FOUND: {key}")
    if verb == "delete":
        del things[key]
        if noun == "clusters":
            state["pools"] = {}
    elif verb == "update":
        things[key]["labels"] = dict([options["update-labels"].partition("=")[::2]])
    elif verb == "get-credentials":
        state["kubeconfig"] = key
    else:
        bindings = things[key].setdefault("bindings", [])
        binding = {"role": options["role"], "members": [options["member"]]}
        if verb == "add-iam-policy-binding":
            if binding not in bindings:
                bindings.append(binding)
        else:
            bindings.remove(binding)


def read(state, noun, verb, name):
    thing = state[noun].get(name)
    if thing is None:
        fail(f"ERROR: (gcloud) NOT_FOUND: {name} was not found")
    if verb == "get-iam-policy":
        return {"bindings": thing.get("bindings", [])}
    states = thing.get("states")
    return thing | ({"status": states.pop(0)} if states else {})


def main(words):
    with (FOLDER / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(words) + "\n")
    options, plain = flags(words), [word for word in words if not word.startswith("--")]
    state = load("state.json", {noun: {} for noun in NOUNS.values()} | {"apis": [], "changes": 0})
    answer = None
    if plain[:2] == ["auth", "list"]:
        answer = load("accounts.json", [{"account": "me@example.com", "status": "ACTIVE"}])
    elif plain[:2] == ["projects", "describe"]:
        if plain[2] != "my-project":
            fail("ERROR: (gcloud.projects.describe) NOT_FOUND: project not found")
        answer = {"projectNumber": "4711", "lifecycleState": "ACTIVE"}
    elif plain[:2] == ["services", "list"]:
        answer = [{"config": {"name": name}} for name in state["apis"]]
    elif plain[-1] in READ or plain[2] in READ:
        answer = read(state, NOUNS[tuple(plain[:2])], plain[2], plain[3])
    else:
        state["changes"] += 1
        message = load("failures.json", {}).get(str(state["changes"]))
        (FOLDER / "state.json").write_text(json.dumps(state))
        if message:
            fail(message)
        if plain[:2] == ["services", "enable"]:
            state["apis"] = plain[2:]
        elif plain[:2] == ["storage", "rm"]:
            change(state, "buckets", "delete", plain[2], options)
        else:
            change(state, NOUNS[tuple(plain[:2])], plain[2], plain[3], options)
    (FOLDER / "state.json").write_text(json.dumps(state))
    if options.get("format") == "json":
        print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
