# SPDX-License-Identifier: Apache-2.0
"""Numbers as text."""

import statistics


def table(rows):
    """Rows of cells in columns: the first left, the others right aligned; None is a rule."""
    widths = [max(len(row[i]) for row in rows if row) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        if row is None:
            lines.append("-" * (sum(widths) + 2 * (len(widths) - 1)))
            continue
        cells = [cell.rjust(width) for cell, width in zip(row, widths)]
        cells[0] = row[0].ljust(widths[0])
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def measured(numbers):
    """Of one figure for each repetition those that there are: None is one that was left out."""
    return [number for number in numbers if number is not None]


def with_spread(numbers, form="%.2f"):
    """The median, and behind it how far apart the least and the greatest are."""
    numbers = measured(numbers)
    if not numbers:
        return "-"
    median = statistics.median(numbers)
    spread = (max(numbers) - min(numbers)) / median * 100 if median else 0
    return (form + " (%2.0f %%)") % (median, spread)


def median(numbers, form="%.1f"):
    numbers = measured(numbers)
    return form % statistics.median(numbers) if numbers else "-"


def ratio(numerators, denominators):
    """The median of the ratios of what was measured in the same repetition."""
    pairs = [n / d for n, d in zip(numerators, denominators) if n is not None and d]
    return "%.1f" % statistics.median(pairs) if pairs else "-"


def line_through(points):
    """(intercept, slope) of the least squares line."""
    result = statistics.linear_regression([x for x, _ in points], [y for _, y in points])
    return result.intercept, result.slope


def megabytes(number):
    return "%.1f" % (number / 1e6)
