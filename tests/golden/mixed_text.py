# SPDX-License-Identifier: Apache-2.0
"""Text that is hard on tokenizers: many languages, emoji, combining marks, white space and control characters of every kind,
code points of all planes, contractions, long words, and bytes that are no UTF-8. The same bytes for the same arguments."""
import pathlib
import random

LINES = (pathlib.Path(__file__).parent / "tokenizers" / "train.txt").read_text().splitlines()
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u180e\u2000\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
BROKEN = [b"\x80", b"\xbf\xbf", b"\xc0\xaf", b"\xc3", b"\xe0\x80\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80",
          b"\xf8\x88\x80\x80\x80", b"\xff", b"\xfe\xff", b"\xf0\x80\x80\x80", b"\xe1\x80\xe2\xf0\x91\x92\xf1\xbfA"]
EMOJI = ["\U0001F600", "\u2764\ufe0f", "\U0001F44D\U0001F3FD", "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\U0001F1E9\U0001F1EA", "1\ufe0f\u20e3",
         "\U0001F3F4\U000E0067\U000E0062\U000E007F"]
SPECIAL = ["<s>", "</s>", "<unk>", "<pad>", "<|endoftext|>", "<mask>", " <mask> ", "<0x41>", "[SEP]", "\u2581", "\u0120", "don't", "I'LL", "we\u2019ve",
           "'s'S'\u017f", "\u0130I\u0131", "\u212a", "\ufb03", "\u1e9e"]


def character(chance):
    """A code point that is no surrogate, from a range chosen first, so that all kinds occur."""
    low, high = chance.choice([(0, 0x80), (0, 0x20), (0x80, 0x250), (0x300, 0x370), (0x370, 0x800), (0x800, 0x1100), (0x1100, 0x3000), (0x3000, 0xA000),
                               (0xA000, 0xD800), (0xE000, 0x10000), (0x10000, 0x20000), (0x20000, 0x32000), (0xE0000, 0x110000)])
    return chr(chance.randrange(low, high))


def piece(chance):
    kind = chance.randrange(12)
    if kind < 5:
        line = chance.choice(LINES)
        at = chance.randrange(len(line))
        return line[at:at + chance.randrange(1, 90)]
    if kind == 5:
        return "".join(character(chance) for _ in range(chance.randrange(1, 12)))
    if kind == 6:
        return "".join(chance.choice(SPACES) for _ in range(chance.randrange(1, 9)))
    if kind == 7:
        return chance.choice("aeiou\u0915\u05d0 ") + "".join(chr(chance.randrange(0x300, 0x370)) for _ in range(chance.randrange(1, 6)))
    if kind == 8:
        return "".join(chance.choice(EMOJI) for _ in range(chance.randrange(1, 4)))
    if kind == 9:
        return chance.choice(SPECIAL)
    if kind == 10:
        return chance.choice([str(chance.randrange(10 ** chance.randrange(1, 18))), chance.choice("\u0663\u096a\u2167\u00bd\uff15") * 3, "a" * chance.randrange(1, 300),
                              "".join(chance.choice("etaoinshrdlu_-./") for _ in range(chance.randrange(1, 60)))])
    return chance.choice([" ", " ", "\n", ", ", ". ", "  ", "!?", "\"", "\r\n"])


def mixed(size, seed=0, broken=True):
    """About `size` bytes; with `broken` some of them are no UTF-8."""
    chance = random.Random(seed)
    parts, used = [], 0
    while used < size:
        part = piece(chance).encode()
        if broken and chance.randrange(20) == 0:
            part += chance.choice(BROKEN)
        parts.append(part)
        used += len(part)
    return b"".join(parts)
