#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bpe-encode against the libraries that models come from: the ids of 1 MB of hard text must be the same. embed against NumPy.

Runs in the tests' Python environment. Usage: tokenizers.py TOOLS_DIR GOLDEN_DIR
"""
import json
import pathlib
import sys

# The script's own folder would hide the package of the same name.
sys.path[0] = str(pathlib.Path(sys.argv[2]).resolve())
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

import tempfile

import numpy
import safetensors.numpy
import sentencepiece
from tokenizers import AddedToken, ByteLevelBPETokenizer, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

import npy_stream
from mixed_text import mixed

PIPELINE = """\
name: texts
source: {type: files, match: ["*.txt"], feature: text}
steps:
  - {step: read-file,  yields: concatenated}
  - {step: bpe-encode, yields: bpe-encoded}
  - {step: embed,      yields: embedded}
"""
SENTENCEPIECE = {
    "unigram, nmt_nfkc": {"model_type": "unigram", "vocab_size": 2000},
    "unigram, nmt_nfkc_cf": {"model_type": "unigram", "vocab_size": 1500, "normalization_rule_name": "nmt_nfkc_cf", "character_coverage": 0.99},
    "bpe, nmt_nfkc_cf": {"model_type": "bpe", "vocab_size": 1500, "normalization_rule_name": "nmt_nfkc_cf", "user_defined_symbols": ["<mask>"]},
    "bpe, nfkc, bytes": {"model_type": "bpe", "vocab_size": 3000, "normalization_rule_name": "nfkc", "byte_fallback": True, "split_digits": True,
                         "user_defined_symbols": ["<mask>", "\n", "  ", "    "], "remove_extra_whitespaces": False},
    "bpe, identity": {"model_type": "bpe", "vocab_size": 2500, "normalization_rule_name": "identity", "add_dummy_prefix": False},
    "char": {"model_type": "char", "vocab_size": 400},
    "word": {"model_type": "word", "vocab_size": 300},
}


def load(tools, folder, *options):
    """The result of each file of the folder, in the order of their names."""
    rows = []
    for batch in npy_stream.load("--quiet", "-j", "2", "-b", "4", "-p", folder / "pipeline.yaml", *options, "--features", "text", folder / "texts",
                                 program=tools / "presto-load"):
        rows += [batch["text"][row] for row in range(len(batch["text"]))]
    return rows


def encode(tools, folder, model):
    return load(tools, folder, "--to", "bpe-encoded", "--set", f"bpe-encode.model={model}")


def compare(name, got, texts, reference):
    count = 0
    assert len(got) == len(texts), f"{name}: {len(got)} texts"
    for number, (ids, text) in enumerate(zip(got, texts)):
        wanted = numpy.asarray(reference(text), "<i4")
        assert ids.dtype == wanted.dtype, ids.dtype
        if not numpy.array_equal(ids, wanted):
            first = next((i for i, (a, b) in enumerate(zip(ids, wanted)) if a != b), min(len(ids), len(wanted)))
            sys.exit(f"{name}: text {number}: id {first} of {len(ids)} and {len(wanted)}: {ids[first:first + 5]}, not {wanted[first:first + 5]}")
        count += len(ids)
    print(f"{name}: {count} ids equal", flush=True)


def check_sentencepiece(tools, folder, train, texts):
    for name, options in SENTENCEPIECE.items():
        sentencepiece.SentencePieceTrainer.train(input=str(train), model_prefix=str(folder / "model"), num_threads=1, minloglevel=2, hard_vocab_limit=False,
                                                 **options)
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "model.model"))
        compare(name, encode(tools, folder, folder / "model.model"), texts, model.encode)


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
            r"\s*[\r\n]+|\s+(?!\S)|\s+")
POSSESSIVE = r"\p{L}++|\p{N}{2}|\p{Nd}?+| ?[^\s\p{L}\p{N}]*?[!?.]|\s{2,}|(?=\S)[\P{L}]|(?:ab|a)?\d|\D".replace(r"\p{Nd}?+|", "")


def split_then_bytes(*splits):
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def isolated(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def template(single, *tokens):
    return processors.TemplateProcessing(single=single, special_tokens=list(tokens))


# name: (pre_tokenizer, further choices of check_byte_level)
BYTE_LEVEL = {
    "gpt2": (pre_tokenizers.ByteLevel(add_prefix_space=False), {}),
    "roberta": (pre_tokenizers.ByteLevel(add_prefix_space=True), {
        "special": ["<s>", "</s>", AddedToken("<mask>", lstrip=True, normalized=False)], "added": [AddedToken("[SEP]", rstrip=True), "don't", "\u0915"],
        "post": lambda id: processors.RobertaProcessing(("</s>", id("</s>")), ("<s>", id("<s>")))}),
    "llama3": (split_then_bytes(isolated(LLAMA3)), {
        "special": ["<s>", "<|endoftext|>"], "ignore_merges": True, "post": lambda id: processors.Sequence([
            processors.ByteLevel(trim_offsets=True), template("<s> $A", ("<s>", id("<s>")))])}),
    "qwen": (split_then_bytes(isolated(LLAMA3.replace("{1,3}", ""))), {"special": ["<|endoftext|>", "<|end"], "legacy": True}),
    "o200k": (split_then_bytes(isolated(O200K)), {"special": ["<|endoftext|>"], "post": lambda id: template(
        "<|endoftext|> $A <|endoftext|>", ("<|endoftext|>", id("<|endoftext|>")))}),
    "deepseek": (split_then_bytes(isolated(r"\p{N}{1,3}"), isolated("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), isolated(DEEPSEEK)), {}),
    "starcoder": (pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), {}),
    "digits": (pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel()]), {}),
    "removed": (split_then_bytes(pre_tokenizers.Split("e", "removed"), pre_tokenizers.Split(Regex(r"\S+"), "removed", invert=True)), {}),
    "possessive": (split_then_bytes(isolated(POSSESSIVE)), {}),
    **{f"qwen, {form}": (split_then_bytes(isolated(LLAMA3)), {
        "normalizer": getattr(normalizers, form)(), "special": ["<|endoftext|>", "<s>\u0301"], "added": ["\ufb03", "don't", "e\u0301\u0323"]})
       for form in ("NFC", "NFD", "NFKC", "NFKD")},
    "no split": (pre_tokenizers.ByteLevel(use_regex=False), {}),
    "unknown": (pre_tokenizers.ByteLevel(add_prefix_space=False), {"alphabet": False, "unknown": "<unk>"}),
    "unknown, joined": (pre_tokenizers.ByteLevel(add_prefix_space=False), {"alphabet": False, "unknown": "<unk>", "fuse": True}),
    "unknown, left out": (pre_tokenizers.ByteLevel(add_prefix_space=False), {"alphabet": False}),
}


def train_byte_level(train, pre_tokenizer, choices):
    unknown = choices.get("unknown")
    tokenizer = Tokenizer(models.BPE(unk_token=unknown, fuse_unk=choices.get("fuse", False), ignore_merges=choices.get("ignore_merges", False)))
    tokenizer.pre_tokenizer = pre_tokenizer
    if "normalizer" in choices:
        tokenizer.normalizer = choices["normalizer"]
    alphabet = pre_tokenizers.ByteLevel.alphabet() if choices.get("alphabet", True) else []
    special = choices.get("special", []) + ([unknown] if unknown else [])
    tokenizer.train([str(train)], trainers.BpeTrainer(vocab_size=900, special_tokens=special, initial_alphabet=alphabet, show_progress=False,
                                                     limit_alphabet=1000 if alphabet else 80))
    tokenizer.add_tokens(choices.get("added", []))
    if "post" in choices:
        tokenizer.post_processor = choices["post"](tokenizer.token_to_id)
    return tokenizer


def check_byte_level(tools, folder, train, texts):
    """tokenizers takes texts: bytes are decoded as Python's "replace" does."""
    path = folder / "tokenizer.json"
    for name, (pre_tokenizer, choices) in BYTE_LEVEL.items():
        tokenizer = train_byte_level(train, pre_tokenizer, choices)
        content = json.loads(tokenizer.to_str())
        if choices.get("legacy"):
            content["model"]["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]
        path.write_text(json.dumps(content))
        compare(name, encode(tools, folder, path), texts, lambda text: tokenizer.encode(text.decode(errors="replace")).ids)
        if name == "o200k":
            without = load(tools, folder, "--to", "bpe-encoded", "--set", f"bpe-encode.model={path}", "--set", "bpe-encode.special-tokens=false")
            compare("o200k, without special tokens", without, texts,
                    lambda text: tokenizer.encode(text.decode(errors="replace"), add_special_tokens=False).ids)
    tokenizer = train_byte_level(train, *BYTE_LEVEL["gpt2"])
    vocab, merges = tokenizer.model.save(str(folder))
    tokenizer = ByteLevelBPETokenizer(vocab, merges)
    compare("vocab.json", load(tools, folder, "--to", "bpe-encoded", "--set", f"bpe-encode.model={vocab}", "--set", f"bpe-encode.merges={merges}"), texts,
            lambda text: tokenizer.encode(text.decode(errors="replace")).ids)


def made_table(rows, columns, seed):
    """As docs/tokenizers.md has it."""
    raw = numpy.random.Philox(key=[seed, 0]).random_raw((rows * columns + 1) // 2)
    bits = raw.view(numpy.uint32)[:rows * columns]
    table = ((bits >> 8).astype("f4") * numpy.float32(2**-24) - numpy.float32(0.5)) * numpy.float32(0.1)
    return table.reshape(rows, columns)


def check_embed(tools, folder, golden):
    model = ["--set", f"bpe-encode.model={golden / 'tokenizers' / 'bpe.model'}"]
    ids = load(tools, folder, "--to", "bpe-encoded", *model)
    table = numpy.random.default_rng(1).standard_normal((1300, 17)).astype("<f4")
    table[5] = numpy.nan
    numpy.save(folder / "table.npy", table)
    safetensors.numpy.save_file({"other": table[:3].astype("f2"), "table": table}, folder / "two.safetensors")
    safetensors.numpy.save_file({"table": table}, folder / "one.safetensors", metadata={"format": "np"})
    for options, wanted in (
        (["embed.table=table.npy"], table),
        (["embed.table=one.safetensors"], table),
        (["embed.table=two.safetensors", "embed.tensor=table"], table),
        (["embed.rows=1300", "embed.columns=5", "embed.seed=2147483647"], made_table(1300, 5, 2147483647)),
        ([], made_table(50001, 768, 0)),
    ):
        sets = [word for option in options for word in ("--set", option.replace("embed.table=", f"embed.table={folder}/"))]
        rows = load(tools, folder, *model, *sets)
        for number, row in enumerate(rows):
            assert row.tobytes() == wanted[ids[number]].tobytes(), f"embed {options}: text {number}"
        print(f"embed {options}: {sum(map(len, rows))} rows equal", flush=True)


def main():
    tools, golden = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "texts").mkdir()
        (folder / "pipeline.yaml").write_text(PIPELINE)
        texts = [b"", b" ", b"\n", b"a", b"\xff"] + [mixed(50_000, seed) for seed in range(20)]
        for number, text in enumerate(texts):
            (folder / "texts" / f"{number:03}.txt").write_bytes(text)
        check_sentencepiece(tools, folder, golden / "tokenizers" / "train.txt", texts)
        check_byte_level(tools, folder, golden / "tokenizers" / "train.txt", texts)
        for path in sorted((folder / "texts").iterdir())[7:]:
            path.unlink()
        check_embed(tools, folder, golden)


if __name__ == "__main__":
    main()
