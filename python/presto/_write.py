# SPDX-License-Identifier: Apache-2.0
"""write(): a pipeline over files becomes a dataset, as presto-write makes it. join(): the parts of one that several have written."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from . import _native
from ._dataset import _CODE_IF_NAMED, _CODE_NEVER, changes_of, plugin_files
from ._errors import ArgumentError
from ._filesystem import Given, checked, given, stripped
from ._guesses import advised
from ._loader import OnSkip
from ._notes import Warning, note, warn
from ._options import called, natural, natural_or_none, on_error_of
from ._paths import Path, output_of, paths_of
from ._pipeline import PipelineLike, pipeline_name
from ._process import cpu_count, size
from ._progress import Line, number, size as shown_size
from ._strategy import UNPROCESSED, Strategy, strategy_of
from ._summary import Summary
from ._writer import file_compression as compression_number


class Progress(NamedTuple):
    """How far a conversion is."""

    samples_done: int
    samples_total: int
    bytes_read: int
    bytes_written: int
    skipped: int
    elapsed_s: float


def changes(given: Mapping[str, object] | Iterable[str]) -> tuple[bytes, ...]:
    """{"random-crop.height": 160} or ["random-crop.height=160"]."""
    return tuple(text.encode("utf-8", "surrogateescape") for text in changes_of(given))


def encoded_paths(source: Path | Iterable[Path], place: Given | None = None) -> tuple[bytes, ...]:
    """A path or several, as the module takes them; `place`: the file system that has them."""
    if place is not None:
        return place.encoded(stripped(source, place.fs))
    return tuple(os.fsencode(path) for path in paths_of(source))


def thread_options(threads: int | str | None) -> dict[str, Any]:
    """Those of presto-write -j."""
    if isinstance(threads, str) and threads != "auto":
        raise ValueError(f'threads is a number or "auto", not {threads!r}')
    return {
        "threads": cpu_count() if threads is None or isinstance(threads, str) else natural(threads, "threads"),
        "auto_threads": threads == "auto",
    }


def _show(line: Line) -> Callable[..., None]:
    def show(done: int, total: int, read: int, written: int, skipped: int, elapsed_s: float) -> None:
        left_out = f", {skipped} left out" if skipped else ""
        rate = number(done / elapsed_s) if elapsed_s > 0 else "0"
        line.show(f"{done} of {total} samples{left_out}, {shown_size(written)}, {rate} samples/s")

    return show


def _names_of_before(
    up_to: str | None, split: str | None, parts: str | None, part: str | int | None
) -> tuple[str | None, str | None]:
    """up_to= and split=, also as they were called before: split= and parts=."""
    if parts is not None:
        if split is not None and up_to is not None:
            raise ArgumentError("split= and parts= are one thing: leave out parts=")
        note("presto.write", ["parts= of presto.write is now called split=; the old name will go"])
        up_to, split = up_to if split is None else split, parts
    elif split is not None and part is None and "/" not in split:
        if up_to is not None:
            raise ArgumentError('split= is a ratio, such as "90/10"; the representation is up_to=')
        note("presto.write", ["split= of presto.write, for the representation, is now called up_to=; the old name will go"])
        up_to, split = split, None
    return up_to, split


def _parts_of(part: str | int | tuple[str | int, str] | None) -> tuple[str | int | None, tuple[int, int] | None]:
    """Which part of a split, and (K, N): which part of the shards."""
    both = part if isinstance(part, tuple) else (None, part) if isinstance(part, str) and "/" in part else (part, None)
    if len(both) != 2:
        raise ArgumentError(f'part= is "K/N", a part of a split, or both, as in ("train", "3/8"), not {part!r}')
    name, share = both
    if share is None:
        return name, None
    number, _, count = share.partition("/") if isinstance(share, str) else ("", "", "")
    if not (number.isdecimal() and count.isdecimal()) or int(number) >= int(count):
        raise ArgumentError(f'part= is "K/N", with K from 0 to N - 1, not {share!r}')
    return name, (int(number), int(count))


@advised
def write(
    source: Path | Iterable[Path],
    output: Path,
    *,
    pipeline: PipelineLike | None = None,
    up_to: str | None = None,
    codec: str | None = None,
    strategy: Strategy | Path | None = None,
    shards: int | None = None,
    shard_bytes: int | str | None = None,
    file_compression: str = "none",
    threads: int | str | None = None,
    limit: int | None = None,
    seed: int | None = None,
    resume: bool = False,
    on_error: str = "fail",
    on_skip: OnSkip | None = None,
    set: Mapping[str, object] | Iterable[str] = (),
    progress: bool | Callable[[Progress], object] | None = None,
    prefetch: int | str | None = None,
    sync: bool = True,
    plugins: Path | Iterable[Path] = (),
    split: str | None = None,
    part: str | int | tuple[str | int, str] | None = None,
    split_seed: int = 0,
    parts: str | None = None,
    filesystem: Any = None,
    attempt: str | None = None,
) -> Summary:
    """Run a pipeline over source files up to one representation and store the samples, as presto-write does.

    Args:
        source:   a path, or several.
        output:   the folder to write; it must be empty, or not exist yet.
        pipeline: name of a built-in pipeline, path of a YAML file, or a presto.Pipeline. None: the source is a dataset or
                  TFRecords, which are stored again as they are, in another codec or number of files.
        up_to:    the representation to store. Default: the last one before a random step, and before a step that only widens
                  numbers (center-pixels) or looks them up (embed).
        codec:    compresses each record: "zstd:3", "lz4", ...; TensorFlow reads "none", "zlib" and "gzip". Default: "none",
                  without a pipeline the source's.
        strategy: of presto.sweep(), or a path of strategy.yaml: pipeline, representation, codec, shards, threads and seed. Arguments
                  that are given win.
        shards:   number of files; default: as many as threads. Or shard_bytes: as many as it takes, none larger.
        file_compression: compresses each file as a whole: "gzip" or "zlib".
        threads:  default: the CPUs of this process; "auto": as many of them as are found to help; 0: none.
        limit:    only so many samples, the first ones.
        seed:     is recorded in the dataset.
        resume:   go on with an interrupted run of the same call. Its whole shards are kept.
        on_error: "fail", "skip", "skip:N" or "skip:P%": samples that are damaged or do not fit a step.
        on_skip:  called with (0, sample, error) for each sample left out.
        set:      changes to the pipeline: {"random-crop.height": 160}, or a list of "STEP.OPTION=VALUE".
                  {"source.classes": [...]} gives the classes, so that their numbers do not depend on the files: a list, a path, or
                  a presto.Dataset, whose labels they are.
        progress: called with a presto.Progress some times a second; what it raises ends the call. Default: a line in a
                  terminal or a notebook; True: always; False: none.
        prefetch: memory for data in flight.
        sync:     files are on the disk before they get their names.
        plugins:  files of plugins, shared objects with steps of your own (docs/own-steps.md). That runs their code.
        split, part, split_seed: store only one part of the samples, as in presto.open(): split="90/10", part="train".
        filesystem: an fsspec file system that has the source, as in presto.open(). The output is not in it.
        part:     "3/8" writes the shards of part 3 of 8 alone, counted from 0, for other machines to write the others meanwhile;
                  presto.join() makes the dataset of them. `shards` is the number of all parts together, which must be given.
                  ("train", "3/8"): both.
        attempt:  what this run of part="3/8" is called, such as a task's number. Two may be under way; one of them counts.
                  Default: random.
        parts:    what `split` was called here before, when split= was what up_to= is now. Both are still taken, with a note.

    Returns:
        A presto.Summary.

    Ctrl-C ends it with KeyboardInterrupt. Then, and after any failure, there is no dataset.json, and resume=True goes on.

    Raises:
        presto.ArgumentError: the folder is not empty; a representation that cannot be stored; contradictions.
        presto.NotFoundError: a path, pipeline, representation or codec that is not there.
        presto.CorruptError, presto.InputError: a sample that is damaged, or does not fit a step.
        presto.StorageError:  a file cannot be read or written, or the program of a step has failed.
    """
    part, share = _parts_of(part)
    if attempt is not None and share is None:
        raise ArgumentError('attempt= needs part="K/N"')
    up_to, split = _names_of_before(up_to, split, parts, part)
    if (split is None) != (part is None):
        raise ArgumentError('a part is chosen by split= and part=, as in split="90/10", part="train"')
    options: dict[str, Any] = {"set": changes(set)}
    files = plugin_files(plugins)
    if strategy is not None:
        wanted = strategy_of(strategy)
        if wanted.stored == UNPROCESSED and up_to is None:
            raise ArgumentError("this strategy is to read the source as it is: there is nothing to write")
        if pipeline is None:
            pipeline = wanted.pipeline
            options["set"] = changes(wanted.set) + options["set"]
            options["code"] = _CODE_IF_NAMED if wanted.is_own else _CODE_NEVER
            files = wanted.plugins + files
        up_to = wanted.stored if up_to is None else up_to
        codec = wanted.codec if codec is None else codec
        shards = wanted.shards or None if shards is None and shard_bytes is None else shards
        threads = wanted.threads if threads is None else threads
        seed = wanted.seed if seed is None else seed
    if up_to == UNPROCESSED:
        raise ArgumentError("'unprocessed' is the source as it is: there is nothing to write")
    name = None if pipeline is None else pipeline_name(pipeline)
    notes: list[str] = []
    told: list[str] = []
    line = Line(False if callable(progress) else progress)
    report = progress if callable(progress) else None
    options |= {
        "dir": os.fsencode(output_of(output, may_be_bucket=True)),
        "pipeline": name,
        "plugins": tuple(os.fsencode(file) for file in files),
        "up_to": up_to,
        "codec": codec if codec is not None or name is None else "none",
        "keeps_codec": codec is None and name is None,  # that of the source
        "file_compression": compression_number(file_compression),
        "shards": natural_or_none(shards, "shards"),
        "shard_bytes": None if shard_bytes is None else size(shard_bytes, "shard_bytes"),
        "limit_samples": natural_or_none(limit, "limit", 1),
        "seed": natural_or_none(seed, "seed"),
        "resume": resume,
        "prefetch_bytes": None if prefetch is None else size(prefetch, "prefetch"),
        "sync": sync,
        "split": split,
        "part": None if part is None else str(part),
        "split_seed": natural(split_seed, "split_seed"),
        "share_number": None if share is None else share[0],
        "share_count": None if share is None else share[1],
        "attempt": attempt,
        "on_skip": called(on_skip, "on_skip"),
        "notes": notes,
        "warnings": told,
        "progress": _show(line) if report is None else lambda *figures: report(Progress(*figures)),
        **thread_options(threads),
        **on_error_of(on_error),
    }
    place = None if filesystem is None else given(checked(filesystem))  # until the call is over
    encoded = encoded_paths(source, place)
    try:
        figures = _native.convert(encoded, options)
    finally:
        line.end()
    for text in told:
        warn(text, Warning)
    note(encoded, notes)
    return Summary(path=os.fspath(output), notes=tuple(notes), **figures)


@advised
def join(output: Path, *, attempts: Iterable[str] | None = None, sync: bool = True) -> Summary:
    """Make one dataset of the parts that presto.write(part="K/N") or presto-write --part K/N has written to `output`.

    Exactly one whole attempt at each part counts. The files have the bytes of one presto.write() with as many shards. All is checked
    before anything is changed. A join that dies is finished by the next one; of a dataset that is joined already, there is nothing to do.

    Args:
        output:   the folder.
        attempts: names of folders in `output`/_parts, such as "00003-of-00008.task7": only these count. Default: all that are whole.
        sync:     files are on the disk before they get their names.

    Returns:
        A presto.Summary of the dataset.

    Raises:
        presto.BusyError:     a part is not whole yet; the message says which. Or somebody else writes to the folder.
        presto.ArgumentError: parts of two datasets are whole; two attempts at a part have written other records.
        presto.CorruptError:  a part is damaged; more samples were left out in all than may be.
        presto.NotFoundError: there are no parts; an attempt that is not there.
        presto.StorageError:  a file cannot be renamed or written. The next join goes on.
    """
    notes: list[str] = []
    if isinstance(attempts, str):
        raise TypeError("attempts= is a list of names")
    names = None if attempts is None else tuple(os.fsencode(name) for name in attempts)
    folder = output_of(output, may_be_bucket=True)
    figures = _native.join(os.fsencode(folder), names, sync, notes)
    note((os.fsencode(folder),), notes)
    return Summary(path=os.fspath(output), notes=tuple(notes), **figures)
