#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes steps/text/page/generated/encodings.c: the labels and the tables of one byte of the Encoding Standard.

Labels are those of the package webencodings. The tables are in encoding-indexes.js of the npm package text-encoding, which are the standard's.
Usage: encodings.py encoding-indexes.js
"""
import json
import pathlib
import re
import sys

import webencodings.labels

OUT = pathlib.Path(__file__).resolve().parents[2] / "steps" / "text" / "page" / "generated" / "encodings.c"
# What the C library's converters are called, of those with characters of several bytes.
ICONV = {"gbk": "GB18030", "gb18030": "GB18030", "big5": "BIG5-HKSCS", "euc-jp": "EUC-JP-MS", "iso-2022-jp": "ISO-2022-JP", "shift_jis": "CP932",
         "euc-kr": "CP949", "utf-16le": "UTF-16LE", "utf-16be": "UTF-16BE"}
KINDS = {"utf-8": "UTF8", "replacement": "REPLACEMENT", "x-user-defined": "USER_DEFINED", "utf-16le": "UTF16", "utf-16be": "UTF16"}


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    indexes, _ = json.JSONDecoder().raw_decode(text, text.index("{", text.index('"encoding-indexes"]')))
    labels = webencodings.labels.LABELS
    names = sorted(set(labels.values()))
    lines = ["/* SPDX-License-Identifier: Apache-2.0 */",
             "/* Labels and tables of encoding.spec.whatwg.org. Made by tests/golden/encodings.py: do not edit. */",
             '#include "../encodings_internal.h"', "", "/* clang-format off */"]
    entries = []
    for name in names:
        kind = KINDS.get(name, "CONVERTED" if name in ICONV else "TABLE")
        table = "NULL"
        if kind == "TABLE":
            table = re.sub(r"[^a-z0-9]", "_", name)
            index = indexes["iso-8859-8" if name == "iso-8859-8-i" else name]
            lines.append(f"static const uint16_t table_{table}[128] = {{")
            for row in range(0, 128, 16):
                lines.append("    " + ", ".join(f"0x{value or 0:04x}" for value in index[row:row + 16]) + ",")
            lines += ["};", ""]
            table = f"table_{table}"
        iconv = f'"{ICONV[name]}"' if name in ICONV else "NULL"
        entries.append(f'    {{"{name}", PRESTO__ENCODING_{kind}, {iconv}, {table}}},')
    lines += ["const presto__page_encoding presto__encodings[] = {", *entries, "};", "", "const presto__encoding_label presto__encoding_labels[] = {"]
    lines += [f'    {{"{label}", &presto__encodings[{names.index(labels[label])}]}},' for label in sorted(labels)]
    lines += ["};", f"const size_t presto__encoding_label_count = {len(labels)};", "/* clang-format on */"]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
