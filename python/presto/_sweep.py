# SPDX-License-Identifier: Apache-2.0
"""sweep(): which strategy? Measured, as presto-sweep does."""
from __future__ import annotations

import html
import io
import json
import os
import pathlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from . import _native
from ._dataset import plugin_files, printable
from ._errors import ArgumentError
from ._guesses import ARGUMENTS, advised, of_argument
from ._notes import note
from ._options import names_of, natural, on_error_of
from ._paths import output_of
from ._pipeline import PipelineLike, pipeline_name
from ._progress import Line, number, size as shown_size
from ._strategy import Strategy
from ._write import changes, encoded_paths

Path = str | os.PathLike[str]

_RESULTS = "results.json"
_SEEKABLE = ("seekable=true",)  # what a pipeline is read with for the split `seekable`, if it does not list that
_PRICES = {
    "storage_gb_month": "price_storage_gb_month",
    "cpu_h": "price_cpu_h",
    "accelerator_h": "price_accelerator_h",
    "epochs": "epochs",
    "months": "months",
}


_MODES = {"measure": 0, "predict": 1}  # presto_sweep_mode


class Trial(NamedTuple):
    """What a sweep is doing: `done` of `total` trials, and the strategy; `finished`: that was its last trial. `total` is 0 until
    it is known: steps and storage are looked at first."""

    done: int
    total: int
    stored: str
    codec: str | None
    threads: int
    finished: bool

    @property
    def split(self) -> str:
        """What `stored` was called before; it will go."""
        note("presto.Trial", ["Trial.split is now called Trial.stored; the old name will go"])
        return self.stored


_ARGUMENTS = ("source", "pipeline", "stored", "codecs", "threads", "samples", "batch", "seed", "set", "on_error", "output")


class SweepResult:
    """What presto.sweep() has found.

    Attributes:
        best:       the recommended presto.Strategy, for presto.write(..., strategy=...).
        strategies: all of them, in the order of the table; `figures` of each is what was measured.
        reason:     why this one, in a few sentences with numbers.
        notes:      what a reader of the figures must know.
        commands:   the command lines to run next: a list of one or two.
        stopped:    the sweep was interrupted; what was not measured has failed.
        json:       everything, as results.json has it (docs/results.schema.json).
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        pipeline: str,
        set: tuple[str, ...],
        plugins: tuple[str, ...] = (),
        is_own: bool = False,
    ) -> None:
        self._files = dict(files)
        self._pipeline, self._set, self._plugins, self._is_own = pipeline, set, plugins, is_own
        self.json: dict[str, Any] = json.loads(self._files[_RESULTS])
        told = self.json["recommendation"]
        self.strategies = [self._strategy(figures) for figures in self.json["results"]]
        self.best = self.strategies[told["result"]]
        self.reason: str = told["reason"]
        self.notes: list[str] = list(self.json["notes"])
        self.commands: list[str] = [line for line in (told["write_command"], told["load_command"]) if line]
        self.stopped: bool = self.json["is_stopped"]

    def _strategy(self, figures: dict[str, Any]) -> Strategy:
        adds = self.json["options"].get("adds_seekable", False)
        return Strategy(
            stored=figures["stored"],
            codec=figures["codec"],
            shards=figures["shards"],
            threads=figures["threads"],
            batch=self.json["options"]["batch_samples"],
            seed=int(self.json["options"]["seed"]),
            pipeline=self._pipeline,
            set=self._set + (_SEEKABLE if adds and figures["stored"] == "seekable" else ()),
            plugins=self._plugins,
            figures=figures,
            is_own=self._is_own,
        )

    def save(self, dir: Path) -> list[str]:
        """Write results.json, results.csv, strategy.yaml and, if this build makes it, report.html into a folder, which is
        made if it is missing. Returns their paths."""
        folder = _made(dir)
        paths = []
        for name, content in self._files.items():
            # Under a name that nobody can know before: a link in its place would lead elsewhere.
            path, part = folder / name, folder / f".{name}.{secrets.token_hex(8)}.partial"
            try:
                with open(part, "xb") as file:
                    file.write(content)
                os.replace(part, path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            paths.append(str(path))
        return paths

    @property
    def report(self) -> str | None:
        """report.html, a page that works offline; None if this build makes none."""
        found = self._files.get("report.html")
        return None if found is None else found.decode()

    def to_pandas(self) -> Any:
        """results.csv as a pandas.DataFrame: a row a strategy. Needs pandas."""
        import pandas

        return pandas.read_csv(io.BytesIO(self._files["results.csv"]))

    # ---- shown ----

    def _rows(self) -> list[list[str]]:
        rows = []
        for strategy in self.strategies:
            cells = [strategy.stored, strategy.codec or "-", str(strategy.threads)]
            figures = strategy.figures
            if strategy.failed:
                failure = figures.get("failure", figures.get("message", "failed"))
                cells += ["failed", str(failure), "", ""]
            else:
                cells[2] += "" if figures.get("measured", True) else " (predicted)"
                cells += [
                    _shown(figures["cold"]["samples_per_s"]["median"], number),
                    _shown(figures["cached"]["samples_per_s"]["median"], number),
                    _shown(figures["total_stored_bytes"], shown_size),
                    _shown(figures["total_preparation_s"], lambda value: f"{value:.3g} s"),
                ]
            rows.append(cells)
        return rows

    _HEADS = ("stored", "codec", "threads", "cold samples/s", "cached samples/s", "storage", "preparation")

    def __repr__(self) -> str:
        best = self.best
        codec = f", codec {best.codec}" if best.codec else ""
        return (
            f"<presto.SweepResult of {len(self.strategies)} strategies; best: {printable(best.stored)}{printable(codec)}, "
            f"{best.threads} threads>\n{printable(self.reason)}"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows. All texts are escaped: names come from files."""
        heads = "".join(f"<th>{html.escape(head)}</th>" for head in self._HEADS)
        body = []
        for strategy, cells in zip(self.strategies, self._rows(), strict=True):
            style = ' style="font-weight: bold"' if strategy is self.best else ""
            body.append(f"<tr{style}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        commands = "\n".join(self.commands)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<div><p>{html.escape(self.reason)}</p><table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody>"
            f"</table>{f'<ul>{notes}</ul>' if notes else ''}<pre>{html.escape(commands)}</pre></div>"
        )

    def __copy__(self) -> SweepResult:
        return SweepResult(self._files, self._pipeline, self._set, self._plugins, self._is_own)

    def __deepcopy__(self, memo: object) -> SweepResult:
        return self.__copy__()

    def __reduce__(self) -> Any:
        # Without plugins, and not as one that was made here: a result that somebody has sent runs no code of theirs when it is used.
        return SweepResult, (self._files, self._pipeline, self._set)


def _shown(value: float | None, how: Callable[[float], str]) -> str:
    return "?" if value is None else how(value)


def _read_results(folder: pathlib.Path) -> dict[str, bytes]:
    names = (_RESULTS, "results.csv", "strategy.yaml", "report.html")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def _made(dir: Path) -> pathlib.Path:
    """The folder, which is made if it is missing."""
    folder = pathlib.Path(output_of(dir))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _counts(threads: Iterable[int]) -> tuple[int, ...]:
    if isinstance(threads, (str, bytes)) or not isinstance(threads, Iterable):
        raise TypeError(f"threads is a list of numbers, not {threads!r}: [1, 4]")
    return tuple(natural(one, "threads") for one in threads)


def _choosing(
    weights: Iterable[float] | None,
    target: float | None,
    prices: Mapping[str, float] | None,
    most_storage: int | None,
    most_preparation: float | None,
) -> dict[str, Any]:
    if prices is not None and not isinstance(prices, Mapping):
        raise TypeError(f"prices are a dict of {', '.join(_PRICES)}, not {prices!r}")
    options: dict[str, Any] = {
        "target_samples_per_s": target,
        "most_stored_bytes": most_storage,
        "most_preparation_s": most_preparation,
    }
    if weights is not None:
        preparation, storage, throughput = weights
        options |= {
            "weight_preparation": preparation,
            "weight_storage": storage,
            "weight_throughput": throughput,
        }
    for name, price in (prices or {}).items():
        if name not in _PRICES:
            raise ArgumentError(f"prices are {', '.join(_PRICES)}, not {name!r}")
        options[_PRICES[name]] = price
    if prices and not prices.get("epochs"):
        raise ArgumentError('prices need "epochs", the length of the training')
    return options


@advised
def sweep(
    source: Path | Iterable[Path],
    pipeline: PipelineLike,
    *,
    stored: Iterable[str] | None = None,
    codecs: Iterable[str] | None = None,
    threads: Iterable[int] | None = None,
    samples: int = 200,
    runs: int = 3,
    batch: int = 32,
    weights: Iterable[float] | None = None,
    target: float | None = None,
    prices: Mapping[str, float] | None = None,
    most_storage: int | None = None,
    most_preparation: float | None = None,
    mode: str = "predict",
    storage: Mapping[str, float] | None = None,
    set: Mapping[str, object] | Iterable[str] = (),
    seed: int = 0,
    on_error: str = "fail",
    output: Path | None = None,
    resume: bool = False,
    work_dir: Path | None = None,
    progress: bool | Callable[[Trial], object] | None = None,
    plugins: Path | Iterable[Path] = (),
    **more: Any,
) -> SweepResult:
    """Try out how far to prepare a dataset before it is stored, in which codec, read by how many threads: strategies are
    written and loaded for real, on a sample of the data. As presto-sweep; docs/sweep.md says what the figures mean.

    Run it alone in the process: CPU, disk and memory are what is measured.

    Args:
        source:   a path, or several.
        pipeline: name of a built-in pipeline, path of a YAML file, or a presto.Pipeline.
        stored:   representations to store. Default: all that can be, and "unprocessed"; where photos are cropped also
                  "seekable", JPEGs with an index, of which a crop decodes its part only (no_seekable=True: not that).
        codecs:   default: none, zstd:1, zstd:3, lz4, snappy, gzip.
        threads:  numbers of threads. Default: 1 and the number of CPUs.
        samples:  how many samples are tried on; 0: all.
        runs:     of each strategy.
        batch:    samples a batch.
        weights:  what preparation time, storage and throughput count. Default: (0, 0, 1).
        target:   samples per second that the training takes: the cheapest strategy that delivers them.
        prices:   {"storage_gb_month": ..., "cpu_h": ..., "accelerator_h": ..., "epochs": ..., "months": ...}: what costs
                  least.
        most_storage, most_preparation: bytes and seconds that may not be exceeded.
        mode:     "predict": some strategies are run, the others are predicted, and the best are run to confirm it;
                  "measure": all are run.
        storage:  plan for another storage: {"bytes_per_s": 910e6, "bytes_per_s_per_thread": ..., "reads_per_s": 222e3,
                  "latency_s": 8e-6, "open_s": ...}.
        set:      changes to the pipeline.
        on_error: "fail", "skip", "skip:N" or "skip:P%".
        output:   a folder for the results, and for trials.jsonl, by which a sweep that was stopped goes on with
                  resume=True. Default: none; see SweepResult.save().
        work_dir: trials are written in here, on the storage that is judged, and removed. Default: in `output`, else in the
                  working folder.
        progress: called with a presto.Trial. Default: a line in a terminal or a notebook; True: always; False: none.
        plugins:  files of plugins, shared objects with steps of your own (docs/own-steps.md). That runs their code.
        more:     further options of presto_sweep_options, by their names there: run_s=1.0, cold_epochs=4, ...

    Returns:
        A presto.SweepResult.

    Ctrl-C ends it with KeyboardInterrupt.

    Raises:
        TypeError: an option that there is not.
        presto.ArgumentError, presto.NotFoundError: a representation, codec or weight that cannot be; an `output` that
            holds the results of another sweep.
        presto.BusyError: somebody else writes to `output`.
    """
    if "splits" in more:
        note("presto.sweep", ["splits= of presto.sweep is now called stored=; the old name will go"])
        given_before = more.pop("splits")
        if stored is not None:
            raise ArgumentError("stored= and splits= are one thing: leave out splits=")
        stored = given_before
    for known in more:
        if known in ARGUMENTS:
            raise TypeError(of_argument("presto.sweep", known, _ARGUMENTS))
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f'mode is "predict" or "measure", not {mode!r}')
    if storage is not None and not isinstance(storage, Mapping):
        raise TypeError(f'storage is a dict such as {{"bytes_per_s": 910e6}}, not {storage!r}')
    name = pipeline_name(pipeline)
    given, files = changes(set), plugin_files(plugins)
    line = Line(False if callable(progress) else progress)
    report = progress if callable(progress) else None

    def show(done: int, total: int, stored: str, codec: str | None, count: int, finished: bool) -> None:
        if report is not None:
            report(Trial(done, total, stored, codec, count, finished))
        phase = "looking at steps and storage" if total == 0 else f"trial {done} of {total}" if done < total else "runs in turn, to decide"
        line.show(f"{phase}: {stored}{f' {codec}' if codec else ''}{f', {count} threads' if count else ''}")

    options: dict[str, Any] = {
        "pipeline": name,
        "pipeline_name": name,
        "set": given,
        "plugins": tuple(os.fsencode(file) for file in files),
        "stored": None if stored is None else names_of(stored, "stored"),
        "codecs": None if codecs is None else names_of(codecs, "codecs"),
        "threads": None if threads is None else _counts(threads),
        "samples": natural(samples, "samples"),
        "runs": natural(runs, "runs"),
        "batch_samples": natural(batch, "batch"),
        "seed": natural(seed, "seed"),
        "mode": _MODES[mode],
        "resume": resume,
        **{f"storage_{key}": value for key, value in (storage or {}).items()},
        "progress": show,
        **_choosing(weights, target, prices, most_storage, most_preparation),
        **on_error_of(on_error),
        **more,
    }
    place = pathlib.Path.cwd() if work_dir is None else pathlib.Path(work_dir)
    if output is not None:
        _made(output)
        place = pathlib.Path(output) if work_dir is None else place
        options["journal"] = os.fsencode(pathlib.Path(output) / "trials.jsonl")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix=".presto-sweep-", dir=place))
    results = scratch / "results" if output is None else pathlib.Path(output)
    options["work_dir"] = os.fsencode(scratch / "trials")
    options["results"] = os.fsencode(results)
    try:
        _native.sweep(encoded_paths(source), options)
        texts = tuple(os.fsdecode(text) for text in given)
        return SweepResult(_read_results(results), name, texts, files, is_own=True)
    finally:
        line.end()
        shutil.rmtree(scratch, ignore_errors=True)
