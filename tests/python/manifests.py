"""Holds Kubernetes manifests against the schemas of the API and of the Prometheus Operator, a bill of
materials against CycloneDX's. Prints one line for each mistake; exit code 1 if there is one.

    manifests.py FILE.yaml... | manifests.py --sbom FILE.json
"""

import json
import sys

import kubernetes_validate
import yaml
from cloudcoil.models.prometheus_operator import v1 as operator
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

# The oldest that these schemas and today's clusters share, and the newest that there are schemas of.
VERSIONS = ["1.27", kubernetes_validate.latest_version()]


def mistakes_of_operator(document):
    """The models leave out what they do not know, so what is left must be the whole."""
    model = getattr(operator, document["kind"], None)
    if model is None:
        return [f"no schema of {document['kind']}"]
    try:
        parsed = model.model_validate(document)
    except ValueError as error:
        return [str(error)]
    left = json.loads(parsed.model_dump_json(by_alias=True, exclude_unset=True))
    return [] if left == document else [f"unknown keys: {document} is read as {left}"]


def mistakes_of_kubernetes(document):
    mistakes = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            mistakes.append(f"Kubernetes {version}: {error.message} at {list(error.path)}")
    return mistakes


def manifests(paths):
    checked = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for document in yaml.safe_load_all(file):
                group = document["apiVersion"]
                if group.startswith("kustomize."):
                    continue
                if group.startswith("monitoring.coreos.com/"):
                    mistakes = mistakes_of_operator(document)
                else:
                    mistakes = mistakes_of_kubernetes(document)
                checked += 1
                for mistake in mistakes:
                    yield f"{path}: {document['kind']}: {mistake}"
    print(f"{checked} documents")


def sbom(path):
    with open(path, encoding="utf-8") as file:
        error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
    if error:
        yield f"{path}: {error}"


def main(arguments):
    mistakes = list(sbom(arguments[1]) if arguments[0] == "--sbom" else manifests(arguments))
    for mistake in mistakes:
        print(mistake)
    return 1 if mistakes else 0


sys.exit(main(sys.argv[1:]))
