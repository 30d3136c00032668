# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a manifest by Kubernetes' own types, as the package python3-kubernetes has them:
fields that do not exist, values of the wrong type, required fields that are missing."""

import re

from kubernetes import client

# Fields younger than the oldest package that this has to work with.
NEWER = {"V1SecurityContext": {"appArmorProfile"}}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def problems_of(manifest):
    return list(_problems(manifest, "V1" + manifest["kind"], manifest["kind"]))


def _problems(value, kind, where):
    if listed := re.fullmatch(r"list\[(.*)\]", kind):
        if not isinstance(value, list):
            yield "%s: is no list" % where
        else:
            for i, item in enumerate(value):
                yield from _problems(item, listed[1], "%s[%d]" % (where, i))
    elif mapped := re.fullmatch(r"dict\(str, (.*)\)", kind):
        if not isinstance(value, dict):
            yield "%s: is no mapping" % where
        else:
            for key, item in value.items():
                yield from _problems(item, mapped[1], "%s.%s" % (where, key))
    elif kind in PLAIN:
        # To Python true is a number.
        if not isinstance(value, PLAIN[kind]) or (kind != "bool" and isinstance(value, bool)):
            yield "%s: %r is no %s" % (where, value, kind)
    elif kind != "object":
        yield from _problems_of_model(value, kind, where)


def _problems_of_model(value, kind, where):
    model = getattr(client, kind)
    if not isinstance(value, dict):
        yield "%s: is no mapping" % where
        return
    known = {name: attribute for attribute, name in model.attribute_map.items()}
    for name, item in value.items():
        if name in known:
            yield from _problems(item, model.openapi_types[known[name]], "%s.%s" % (where, name))
        elif name not in NEWER.get(kind, ()):
            yield "%s: there is no field %s" % (where, name)
    try:
        model(**{known[name]: item for name, item in value.items() if name in known})
    except ValueError as error:
        yield "%s: %s" % (where, error)
