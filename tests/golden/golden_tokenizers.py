# SPDX-License-Identifier: Apache-2.0
"""Small models of tokenizers, trained on tokenizers/train.txt, and the ids that the libraries they come from give."""
import contextlib
import json
import pathlib
import zlib

import numpy
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, processors, trainers

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
    """Deterministic: one thread, no sampling. A model has the paths of its making in it, so they are relative."""
    rules = folder / "rules.tsv"
    codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    rules.write_text("".join(f"{codes(key)}\t{codes(text)}\n" for key, text in RULES.items()))
    options = {**({} if "normalization_rule_name" in options else {"normalization_rule_tsv": rules.name}), "character_coverage": 0.98, **options}
    with contextlib.chdir(folder):
        sentencepiece.SentencePieceTrainer.train(input="train.txt", model_prefix=name, num_threads=1, minloglevel=2, hard_vocab_limit=False, **options)
    (folder / f"{name}.vocab").unlink()
    rules.unlink()


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def train_byte_level(folder, name, pre_tokenizer, special, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train([str(folder / "train.txt")], trainers.BpeTrainer(
        vocab_size=1000, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    if name == "roberta":
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    if name == "llama3":
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def make_byte_level(folder, text):
    """The library takes texts, so broken bytes are replaced first."""
    for name, pre_tokenizer, special, options in (
        ("gpt2", pre_tokenizers.ByteLevel(add_prefix_space=False), [], {}),
        ("roberta", pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "</s>", AddedToken("<mask>", lstrip=True, normalized=False), "<|endoftext|>"], {}),
        ("llama3", pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
         ["<s>", "[SEP]"], {"ignore_merges": True}),
    ):
        tokenizer = train_byte_level(folder, name, pre_tokenizer, special, **options)
        put_ids(folder / f"{name}.ids.z", tokenizer.encode(text.decode(errors="replace")).ids)
        if name == "gpt2":
            tokenizer.model.save(str(folder))
        else:
            (folder / f"{name}.json").write_text(json.dumps(json.loads(tokenizer.to_str()), separators=(",", ":")))


def put_ids(path, ids):
    path.write_bytes(zlib.compress(numpy.asarray(ids, "<i4").tobytes(), 9))


def make(folder):
    text = mixed(60_000, seed=1)
    (folder / "mixed.txt").write_bytes(text)
    for name, options in SENTENCEPIECE.items():
        train_sentencepiece(folder, name, options)
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.model"))
        put_ids(folder / f"{name}.ids.z", model.encode(text))
    make_byte_level(folder, text)
