# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged copies of a file: (what was done, a function that makes the bytes), one after the other.

Knows protobuf's wire format and no message: a length-delimited field whose
bytes read as a message is one.
"""

import random
from functools import partial


def replaced(data, begin, end, part):
    return data[:begin] + part + data[end:]


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def read_varint(data, at):
    """(the value or None, the position behind it)"""
    value = shift = 0
    while at < len(data) and shift < 64:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at
    return None, at


def fields(data):
    """[(where a length begins, where it ends, where its bytes end)], or None if the data are no message."""
    found, at = [], 0
    while at < len(data):
        tag, begin = read_varint(data, at)
        if tag is None or not 0 < tag >> 3 < 1000 or tag & 7 not in (0, 1, 2, 5):
            return None
        value, inner = (0, begin) if tag & 7 in (1, 5) else read_varint(data, begin)
        if value is None:
            return None
        at = inner + {0: 0, 1: 8, 2: value, 5: 4}[tag & 7]
        if at > len(data):
            return None
        if tag & 7 == 2:
            found.append((begin, inner, at))
    return found


def lengths(data, base=0):
    """(begin, end, value) of every length in the message and in its parts."""
    for begin, inner, end in fields(data) or []:
        yield base + begin, base + inner, end - inner
        yield from lengths(data[inner:end], base + inner)


def with_lengths(data):
    for begin, end, value in lengths(data):
        for other in sorted({0, value - 1, value + 1, 2**31, 2**63} - {value, -1}):
            yield (f"length {value} at {begin} is {other}",
                   partial(replaced, data, begin, end, varint(other)))


def prefixes(data):
    for end in range(len(data)):
        yield f"prefix of {end}", partial(replaced, data, end, len(data), b"")


def flips(data):
    for at in range(len(data)):
        for mask in [1 << bit for bit in range(8)] + [0xFF]:
            yield f"byte {at} ^ {mask:#x}", partial(replaced, data, at, at + 1, bytes([data[at] ^ mask]))


def with_bytes(files, count, seed):
    """`count` copies of the files in turn, each with one to three other bytes."""
    rng = random.Random(seed)
    for number in range(count):
        data = bytearray(files[number % len(files)])
        places = [rng.randrange(len(data)) for _ in range(rng.randint(1, 3))]
        for at in places:
            data[at] = rng.choice([rng.randrange(256), data[at] ^ 1 << rng.randrange(8), 0x7F, 0xFF])
        yield f"copy {number} with other bytes at {places}", partial(bytes, data)
