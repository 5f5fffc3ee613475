#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The limits that docs/security.md promises are those of the code, and none of them is lost.

Usage: limits.py ROOT
"""
import pathlib
import re
import sys

UNITS = {"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ROW = re.compile(r"^\| .+ \| ([\d,]+) ?(\w*) \| `(\w+)` in (\S+) \|$", re.MULTILINE)

# What must have a row: a limit that gets one belongs here, too.
PROMISED = """
include/presto/codec.h PRESTO_CODEC_MAX_DICTIONARY_BYTES
include/presto/codec.h PRESTO_CODEC_MAX_RECORD_BYTES
include/presto/convert.h PRESTO_MAX_SHARDS
include/presto/dataset.h PRESTO_MAX_FEATURES
include/presto/drift.h PRESTO_DRIFT_RESULTS_MOST_BYTES
include/presto/frame.h PRESTO_FRAME_MAX_PAYLOAD_BYTES
include/presto/tensor.h PRESTO_MAX_RANK
loader/source/lines/jsonl_row.c MOST_ROW_WEIGHT
loader/source/lines/look.c MOST_NAMES_BYTES
loader/source/table/manifest.c MOST_LINE_WEIGHT
loader/source/table/manifest.c MOST_SPARE_CELLS
loader/source/files/source_files_labels.c MOST_CSV_BYTES
loader/source/files/source_manifest.c MOST_MANIFEST_BYTES
loader/source/tar/source_tar.c OPEN_FILES
loader/source/tar/source_tar_scan.c MOST_FOLDER_BYTES
loader/source/tar/source_tar_scan.c MOST_LOST_BYTES
loader/source/tar/tar.c MOST_NAME_BYTES
loader/source/tar/tar.c MOST_PAX_BYTES
profile/trial/journal.c MOST_BYTES
profile/trial/journal.c MOST_LINE_WEIGHT
profile/strategy.c MOST_BYTES
records/dataset/dataset_internal.h PRESTO__JSON_MAX_BYTES
records/dataset/dataset_internal.h PRESTO__JSON_MAX_WEIGHT
records/shard/shard_pool.c FILES_IF_UNLIMITED
records/shard/shard_pool.c SHARE_OF_FILES
storage/credentials/aws_config_internal.h PRESTO__AWS_FILE_MOST_BYTES
storage/credentials/provider_internal.h PRESTO__MOST_ANSWER_BYTES
storage/credentials/provider_internal.h PRESTO__MOST_ROLES
storage/xml_internal.h PRESTO__XML_MOST_BYTES
storage/xml_internal.h PRESTO__XML_MOST_DEPTH
storage/hf_list.c MOST_PAGE_BYTES
storage/hf_list.c MOST_WEIGHT
steps/image/index_jpeg.c MOST_PIXEL_BYTES
steps/image/jpeg.c MAX_SCANNED_PIXELS
steps/image/jpeg.c MAX_SCANS
steps/image/jpeg.c MAX_UNUSUAL_PIXELS
steps/image/jpeg.c MAX_USUAL_PIXELS
steps/image/png.c MAX_CHUNK_BYTES
steps/pipeline/pipeline_internal.h PRESTO__PIPELINE_MAX_STEPS
steps/pipeline/pipeline_internal.h PRESTO__YAML_MAX_BYTES
steps/pipeline/pipeline_internal.h PRESTO__YAML_MAX_KEYS
steps/steps_internal.h PRESTO__STEP_MAX_OUTPUT_BYTES
steps/text/bpe_encode.c MAX_MODEL_BYTES
steps/text/byte_bpe_internal.h PRESTO__BPE_MAX_MERGES
steps/text/charsmap_check.c MAX_MAP_BYTES
steps/text/embed.c MAX_MADE_BYTES
steps/text/page/extract_text_internal.h PRESTO__PAGE_MAX_DEPTH
steps/text/page/extract_text_internal.h PRESTO__PAGE_MAX_ITEMS
steps/text/sentencepiece_internal.h PRESTO__MODEL_MAX_TOKENS
steps/text/sentencepiece_internal.h PRESTO__SENTENCEPIECE_MAX_COMPARED_BYTES
steps/text/sentencepiece_internal.h PRESTO__SENTENCEPIECE_MAX_TOKEN_BYTES
steps/text/table_internal.h PRESTO__TABLE_MAX_HEADER_BYTES
steps/text/table_safetensors.c MAX_JSON_WEIGHT
steps/text/tokenizer.c MAX_JSON_WEIGHT
tools/load/state_file.c MAX_STATE_BYTES
""".split("\n")[1:-1]


def constant(text, name):
    """Value of a macro or an enumerator that is a number, or a product or shift of numbers."""
    found = re.search(rf"(?:#define {name}|\b{name} =)\s+([^,}}\n/]+)", text)
    if found is None:
        return None
    plain = re.sub(r"\((?:uint64_t|size_t)\)|(?<=\d)(?:ULL|UL|LL|u|U|L)\b|UINT64_C", "", found.group(1))
    plain = plain.replace("INT32_MAX", str(2**31 - 1))
    return eval(plain, {"__builtins__": {}}) if re.fullmatch(r"[\d\s()<*+-]+", plain) else None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    text = (root / "docs" / "security.md").read_text()
    rows = ROW.findall(text)
    table = re.findall(r"^\|.*", text[text.index("\n## Limits\n") :].split("\n## ")[1], re.MULTILINE)[2:]
    faults = [f"docs/security.md: no number, constant and file: {row}" for row in table if not ROW.match(row)]
    for figure, unit, name, file in rows:
        path = root / file
        value = constant(path.read_text(), name) if path.is_file() else None
        promised = int(figure.replace(",", "")) * UNITS.get(unit, 0)
        if value != promised:
            faults.append(f"docs/security.md: {name} in {file} is {value}, not {promised}")
    there = {f"{file} {name}" for _, _, name, file in rows}
    faults += [f"docs/security.md has no row for {limit} any more" for limit in PROMISED if limit not in there]
    faults += [f"tests/house/limits.py: PROMISED lacks {limit}" for limit in sorted(there - set(PROMISED))]
    print("\n".join(faults) or f"{len(rows)} limits hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
