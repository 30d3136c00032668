# SPDX-License-Identifier: Apache-2.0
"""How far a sampled share may lie from the true one.

Every bound here is chosen so that a correct profiler fails it once in about 150,000 comparisons
(4.5 standard deviations of a normal distribution, two-sided). The whole suite makes a few hundred:
about one false alarm in 500 runs, and less in truth, because periodic samples of a long-running
program scatter less than independent draws do.
"""

import math

STANDARD_DEVIATIONS = 4.5
FALSE_ALARM = math.erfc(STANDARD_DEVIATIONS / math.sqrt(2))


def _log_choose(n, k):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def binomial_probability(n, k, p):
    """P(k hits of n) where each hits with probability p."""
    if p <= 0 or p >= 1:
        return 1.0 if k == (n if p >= 1 else 0) else 0.0
    return math.exp(_log_choose(n, k) + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_limits(n, p):
    """The smallest and largest number of hits among n that is not an alarm.

    Exact, not the normal approximation, which is wrong for the few hits that a small share has
    at 99 Hz.
    """
    tail = FALSE_ALARM / 2
    low, below = 0, binomial_probability(n, 0, p)
    while below < tail and low < n:
        low += 1
        below += binomial_probability(n, low, p)
    high, above = n, binomial_probability(n, n, p)
    while above < tail and high > 0:
        high -= 1
        above += binomial_probability(n, high, p)
    return low, high


def cpu_time_limits(cpu_ns, period_ns, periods_on_all_cpus, tolerance=0.01, stolen_ns=0):
    """How many samples a process may have that used `cpu_ns`, and from which a hypervisor may have stolen up
    to `stolen_ns` more: the kernel books those for nobody, but a tick that was due then comes as soon as the
    CPU runs again, and hits who runs there.

    Each of the `periods_on_all_cpus` ticks of the recording hits it with the probability of its
    share of all CPU time. `tolerance` (of the expectation, and two samples) is for what is known
    of the CPU time itself: when the recording began and ended, and what the kernel books where.
    """
    def margin(expected):
        share = min(1.0, expected / max(periods_on_all_cpus, 1))
        return STANDARD_DEVIATIONS * math.sqrt(expected * (1 - share)) + tolerance * expected + 2

    least, most = cpu_ns / period_ns, (cpu_ns + stolen_ns) / period_ns
    return least - margin(least), most + margin(most)
