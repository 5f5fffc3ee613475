#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write steps/text/generated/unicode_categories.c: general categories of all code points, as the regex library of the Python package tokenizers
(Oniguruma, Unicode 16) has them. Usage: unicode_categories.py (with build/venv/bin/python)"""
import pathlib

from tokenizers import Regex, pre_tokenizers

# In the order of the enum in steps/text/unicode_internal.h; what is in none of them is unassigned.
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def members(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return {ord(piece) for piece, _ in split.pre_tokenize_str("".join(map(chr, CODES)))}


def main():
    table = [len(CATEGORIES)] * 0x110000
    for number, name in enumerate(CATEGORIES):
        for code in members(rf"\p{{{name}}}"):
            table[code] = number
    starts = [(code, table[code]) for code in range(0x110000) if code == 0 or table[code] != table[code - 1]]
    numbers = [f"0x{code << 5 | number:x}" for code, number in starts]
    lines = [", ".join(numbers[at:at + 10]) + "," for at in range(0, len(numbers), 10)]
    out = pathlib.Path(__file__).resolve().parents[2] / "steps" / "text" / "unicode_categories.c"
    out.write_text("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by tests/golden/unicode_categories.py. */\n#include \"unicode_internal.h\"\n\n"
                   "/* clang-format off */\nconst uint32_t presto__unicode_ranges[] = {\n" + "\n".join(lines) + "\n};\n/* clang-format on */\n"
                   f"const size_t presto__unicode_range_count = {len(numbers)};\n")


if __name__ == "__main__":
    main()
