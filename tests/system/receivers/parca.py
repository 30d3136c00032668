# SPDX-License-Identifier: Apache-2.0
"""Parca's profile store, WriteRaw."""

import messages
import rules
from rules import Refusal, want

SERVICE = "parca.profilestore.v1alpha1.ProfileStoreService"
METHOD = "WriteRaw"
LARGEST = 64 << 20
# gRPC codes, by a Refusal's kind.
CODES = {"invalid": "INVALID_ARGUMENT", "undecodable": "INVALID_ARGUMENT", "unknown": "UNKNOWN"}


def take(body, names_code_of=lambda build_id: False):
    """(series, ticks) of an accepted request; else Refusal."""
    try:
        request = messages.parse("parca", "parca.profilestore.v1alpha1.WriteRawRequest", body)
    except messages.BadMessage as error:
        raise Refusal("invalid", "bad_request", str(error)) from error
    want(len(request.series) == 1, "one_series", str(len(request.series)))
    series = request.series[0]
    want(len(series.samples) == 1, "one_profile", str(len(series.samples)))
    pairs = [(label.name, label.value) for label in series.labels.labels]
    rules.check_labels(pairs, own=("__name__",))
    plain = rules.unpack(series.samples[0].raw_profile, truncated="unknown")
    return rules.series_text(pairs), rules.ticks_of(
        rules.check_pprof(plain, names_code_of=names_code_of))


def success():
    return b""
