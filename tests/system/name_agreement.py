# SPDX-License-Identifier: Apache-2.0
"""Compares names of the same addresses from two sources, and sorts what differs."""

import collections
import itertools

# Why two answers are the same in other words, or the reference is known to be wrong.
#
# Of one field of a frame: `same` takes our frame and the reference's, which differ in it.
Spelling = collections.namedtuple("Spelling", "field title reason same")
# Of all frames: `applies` takes ours and the reference's.
Rule = collections.namedtuple("Rule", "title reason applies")

SHOWN = 3  # examples of each kind
LONG = 100  # characters of a name


class Agreement:
    """Of one program: how many addresses have the same frames, and which kinds of others there are.
    What a rule explains counts as agreement, but is told with examples; all else is a
    disagreement."""

    def __init__(self, title, rules=()):
        """`rules`: Spellings and Rules."""
        self.title = title
        self.rules = [rule for rule in rules if isinstance(rule, Rule)]
        self.spellings = [rule for rule in rules if isinstance(rule, Spelling)]
        self.compared = 0
        self.inlined = 0  # of them: with more than one frame
        self.with_lines = 0
        self.explained = collections.defaultdict(list)  # by reason: addresses with both answers
        self.unexplained = collections.defaultdict(list)  # by what differs first

    def compare(self, addresses, ours, theirs):
        for address, mine, other in zip(addresses, ours, theirs, strict=True):
            self.compared += 1
            self.inlined += len(other) > 1
            self.with_lines += any(frame.line for frame in other)
            if mine == other:
                continue
            reasons = self.reasons(mine, other)
            for reason in reasons or ():
                self.explained[reason].append((address, mine, other))
            if not reasons:
                self.unexplained[difference(mine, other)].append((address, mine, other))

    def reasons(self, mine, other):
        """Why the answers are as good as equal; nothing if they are not."""
        for rule in self.rules:
            if rule.applies(mine, other):
                return {(rule.title, rule.reason)}
        if len(mine) != len(other):
            return None
        reasons = set()
        for one, another in zip(mine, other):
            for field in one._fields:
                if getattr(one, field) == getattr(another, field):
                    continue
                for rule in self.spellings:
                    if rule.field == field and rule.same(one, another):
                        reasons.add((rule.title, rule.reason))
                        break
                else:
                    return None
        return reasons

    def share(self):
        return 1 - sum(map(len, self.unexplained.values())) / self.compared if self.compared else 0

    def report(self):
        lines = ["%s: of %d addresses (%d with inlined calls, %d with lines) %.3f %% agree" % (
            self.title, self.compared, self.inlined, self.with_lines, 100 * self.share())]
        for reason, found in self.explained.items():
            lines.append("  %d are %s: %s" % (len(found), *reason))
            lines += examples(found)
        for what, found in self.unexplained.items():
            lines.append("  %d DISAGREE: %s" % (len(found), what))
            lines += examples(found)
        return "\n".join(lines)


def examples(found):
    """The first few, of each pair of frames that differ one."""
    different = {differing(mine, other): address for address, mine, other in reversed(found)}
    lines = []
    for (mine, other), address in sorted(different.items(), key=lambda pair: pair[1])[:SHOWN]:
        lines.append("    %#x: %s, not %s" % (address, mine, other))
    return lines


def differing(mine, other):
    """The innermost frames that are not the same, as texts."""
    for one, another in itertools.zip_longest(mine, other):
        if one != another:
            break
    return text_of(one), text_of(another)


def difference(mine, other):
    if not mine:
        return "no name"
    if not other:
        return "a name where there is none"
    if len(mine) != len(other):
        return "other inlined calls"
    for field in ("name", "file", "line"):
        if [getattr(frame, field) for frame in mine] != [getattr(frame, field) for frame in other]:
            return "another " + field
    return "nothing"


def text_of(frame):
    if not frame:
        return "-"
    name = frame.name if len(frame.name) <= LONG else "%s... (%d)" % (frame.name[:LONG], len(frame.name))
    return "%s %s:%d" % (name or "?", frame.file.rsplit("/", 1)[-1] or "?", frame.line)
