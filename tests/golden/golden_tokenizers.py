# SPDX-License-Identifier: Apache-2.0
"""Small models of tokenizers, trained on tokenizers/train.txt, and the ids that the libraries they come from give."""
import json
import pathlib
import zlib

import numpy
import sentencepiece

from mixed_text import mixed

# A map of characters: keys that begin alike, one text for several keys, one that grows and one that vanishes.
RULES = {"\u00c5": "A\u030a", "\uff21": "A", "\uff22": "B", "\u2460": "1", "\ufb01": "fi", "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647", "\t": " ",
         "\u3000": " ", "e\u0301": "\u00e9", "\u200b": "", "\u2026": "..."}
SENTENCEPIECE = {
    "unigram": {"model_type": "unigram", "vocab_size": 700},
    "bpe": {"model_type": "bpe", "vocab_size": 1200, "user_defined_symbols": ["<mask>", "[SEP]", "[SEP]x"]},
    "bpe-bytes": {"model_type": "bpe", "vocab_size": 1200, "byte_fallback": True, "add_dummy_prefix": False, "remove_extra_whitespaces": False,
                  "split_digits": True},
    "suffix": {"model_type": "unigram", "vocab_size": 600, "treat_whitespace_as_suffix": True},
}


def train_sentencepiece(folder, name, options):
    """Deterministic: one thread, no sampling."""
    rules = folder / "rules.tsv"
    codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    rules.write_text("".join(f"{codes(key)}\t{codes(text)}\n" for key, text in RULES.items()))
    options = {**({} if "normalization_rule_name" in options else {"normalization_rule_tsv": str(rules)}), "character_coverage": 0.98, **options}
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "train.txt"), model_prefix=str(folder / name), num_threads=1, minloglevel=2, hard_vocab_limit=False, **options)
    (folder / f"{name}.vocab").unlink()
    rules.unlink()


def put_ids(path, ids):
    path.write_bytes(zlib.compress(numpy.asarray(ids, "<i4").tobytes(), 9))


def make(folder):
    text = mixed(60_000, seed=1)
    (folder / "mixed.txt").write_bytes(text)
    for name, options in SENTENCEPIECE.items():
        train_sentencepiece(folder, name, options)
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.model"))
        put_ids(folder / f"{name}.ids.z", model.encode(text))
