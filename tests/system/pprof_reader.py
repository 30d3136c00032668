# SPDX-License-Identifier: Apache-2.0
"""Reads a pprof file far enough to check it, from the wire format up.

`go tool pprof` says that a profile can be read; this says what is in it. Anything that pprof's
own checks (profile.CheckValid) or our contract forbids raises MalformedProfile.
"""

import dataclasses
import gzip


class MalformedProfile(Exception):
    pass


@dataclasses.dataclass
class Frame:
    function: str
    mapping: str  # file name; "" if none
    address: int
    file: str  # of the source; "" if that is not known
    line: int


@dataclasses.dataclass
class Sample:
    frames: list  # of Frame, root first, inlined functions as frames of their own
    values: list  # one per sample type
    labels: dict  # key -> str or int


@dataclasses.dataclass
class Mapping:
    filename: str
    build_id: str


@dataclasses.dataclass
class Profile:
    sample_types: list  # of (type, unit)
    default_type: str
    period_type: tuple
    period: int
    time_nanos: int
    duration_nanos: int
    mappings: list
    samples: list

    def total(self, index=0):
        return sum(sample.values[index] for sample in self.samples)


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise MalformedProfile("varint is too long")


def _signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def _fields(data):
    """Yields (field number, int or bytes) for each field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire_type = key & 7
        if wire_type == 0:
            value, at = _varint(data, at)
        elif wire_type == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise MalformedProfile("field %d ends behind its message" % (key >> 3))
            value, at = data[at : at + size], at + size
        else:
            raise MalformedProfile("wire type %d is in no pprof message" % wire_type)
        yield key >> 3, value


def submessages(data, number):
    """The bytes of each field `number` of a message, as they are nested in requests."""
    return [value for field, value in _fields(data) if field == number]


def _message(data):
    """All fields of a message: number -> list of values."""
    fields = {}
    for number, value in _fields(data):
        fields.setdefault(number, []).append(value)
    return fields


def _number(message, field):
    return _signed(message[field][-1]) if field in message else 0


def _numbers(message, field):
    """A repeated integer, packed or not."""
    numbers = []
    for value in message.get(field, []):
        if isinstance(value, int):
            numbers.append(_signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            numbers.append(_signed(number))
    return numbers


class _Tables:
    """The tables of a profile that its samples refer to."""

    def __init__(self, message):
        self.strings = [raw.decode("utf-8") for raw in message.get(6, [])]
        if not self.strings or self.strings[0] != "":
            raise MalformedProfile("string_table[0] is not the empty string")
        self.mappings = self._by_id("mapping", message.get(3, []), self._mapping)
        self.functions = self._by_id("function", message.get(5, []), self._function)
        self.locations = self._by_id("location", message.get(4, []), self._location)

    def text(self, index):
        if not 0 <= index < len(self.strings):
            raise MalformedProfile("string %d of %d" % (index, len(self.strings)))
        return self.strings[index]

    def _by_id(self, what, raw_messages, make):
        table = {}
        for raw in raw_messages:
            message = _message(raw)
            identity = _number(message, 1)
            if identity in table:
                raise MalformedProfile("%s %d stands twice" % (what, identity))
            table[identity] = make(message)
        if sorted(table) != list(range(1, len(table) + 1)):
            raise MalformedProfile("ids of the %ss are not 1..%d" % (what, len(table)))
        return table

    def _mapping(self, message):
        return Mapping(self.text(_number(message, 5)), self.text(_number(message, 6)))

    def _function(self, message):
        return self.text(_number(message, 2)), self.text(_number(message, 4))

    def _location(self, message):
        mapping_id = _number(message, 2)
        if mapping_id and mapping_id not in self.mappings:
            raise MalformedProfile("a location in mapping %d, which is missing" % mapping_id)
        mapping = self.mappings[mapping_id].filename if mapping_id else ""
        address = _number(message, 3) & (1 << 64) - 1
        frames = []
        for raw in message.get(4, []):
            line = _message(raw)
            function = _number(line, 1)
            if function not in self.functions:
                raise MalformedProfile("a line in function %d, which is missing" % function)
            name, file = self.functions[function]
            frames.append(Frame(name, mapping, address, file, _number(line, 2)))
        return frames

    def sample(self, raw, types):
        message = _message(raw)
        values = _numbers(message, 2)
        if len(values) != types:
            raise MalformedProfile("%d values for %d sample types" % (len(values), types))
        frames = []
        for location in _numbers(message, 1):
            if location not in self.locations:
                raise MalformedProfile("a sample at location %d, which is missing" % location)
            frames.extend(self.locations[location])
        labels = {}
        for raw_label in message.get(3, []):
            label = _message(raw_label)
            key = self.text(_number(label, 1))
            labels[key] = self.text(_number(label, 2)) if 2 in label else _number(label, 3)
        return Sample(frames[::-1], values, labels)


def parse(data):
    """The Profile in `data`, gzip-compressed or not."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    try:
        message = _message(data)
        tables = _Tables(message)
        types = [_value_type(tables, raw) for raw in message.get(1, [])]
        return Profile(
            sample_types=types,
            default_type=tables.text(_number(message, 14)),
            period_type=_value_type(tables, message[11][-1]) if 11 in message else None,
            period=_number(message, 12),
            time_nanos=_number(message, 9),
            duration_nanos=_number(message, 10),
            mappings=[tables.mappings[i] for i in sorted(tables.mappings)],
            samples=[tables.sample(raw, len(types)) for raw in message.get(2, [])],
        )
    except (IndexError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise MalformedProfile("not a pprof message: %s" % error) from error


def _value_type(tables, raw):
    message = _message(raw)
    return tables.text(_number(message, 1)), tables.text(_number(message, 2))
