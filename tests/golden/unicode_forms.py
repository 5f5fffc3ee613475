#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write steps/text/generated/unicode_forms_newer.c: the characters that libutf8proc decomposes or orders and the library tokenizers does not.

The normal forms of tokenizers are those of Unicode 9; what came later stays as it is there. Needs libutf8proc 2.8 or later and tokenizers.

Usage: unicode_forms.py > steps/text/generated/unicode_forms_newer.c
"""
import ctypes

from tokenizers import normalizers

# STABLE, COMPAT, COMPOSE, DECOMPOSE of utf8proc.h
FORMS = {"NFC": 2 | 8, "NFD": 2 | 16, "NFKC": 2 | 4 | 8, "NFKD": 2 | 4 | 16}
library = ctypes.CDLL("libutf8proc.so.2")
library.utf8proc_map.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
library.utf8proc_map.restype = ctypes.c_ssize_t
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]


def ours(text, options):
    raw, out = text.encode(), ctypes.c_void_p()
    size = library.utf8proc_map(raw, len(raw), ctypes.byref(out), options)
    assert size >= 0, text
    result = ctypes.string_at(out, size).decode()
    libc.free(out)
    return result


def is_newer(point):
    """Does it act on its own, or among marks of a lower and a higher class?"""
    character = chr(point)
    for text in (character, "a\u0301" + character + "\u0327", character + "\u0327", "a\u0327" + character):
        for name, options in FORMS.items():
            if ours(text, options) != getattr(normalizers, name)().normalize_str(text):
                return True
    return False


def main():
    newer = [point for point in range(0x80, 0x110000) if not 0xD800 <= point < 0xE000 and is_newer(point)]
    ranges = []
    for point in newer:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    print("/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by tests/golden/unicode_forms.py. */")
    print('#include "unicode_internal.h"\n\n/* clang-format off */')
    print("const presto__point_range presto__newer_points[] = {")
    texts = [f"{{{first:#x}, {last:#x}}}" for first, last in ranges]
    for at in range(0, len(texts), 6):
        print("    " + ", ".join(texts[at:at + 6]) + ",")
    print("};\n/* clang-format on */\n")
    print("const size_t presto__newer_point_count =\n    sizeof presto__newer_points / sizeof presto__newer_points[0];")


if __name__ == "__main__":
    main()
