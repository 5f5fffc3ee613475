# SPDX-License-Identifier: Apache-2.0
"""What people write who come from another library: one line says what it is here."""
from __future__ import annotations

import difflib
import functools
import glob
import inspect
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_ORDER = 'shuffle="full" is an exact permutation, anew in each epoch; "buffer:N" a random one of the next N'
_WORKERS = "there are no worker processes: threads of the library do the work"
_STEPS = "what is done to a sample are steps of the pipeline, in C on threads; a Python function becomes one by presto.step()"
_PARTS = 'parts are dataset.split("90/10"), or split="90/10", part="train"'
_SHARE = "rank= and world= choose the share of a process; presto.torch.Loader takes those of torch.distributed"
_DEVICE = 'presto.torch.Loader(..., device="cuda") copies from pinned memory, one batch ahead'
_TUPLES = 'as_tuple=("image", "label") gives tuples, pad={"tokens": 0} pads, collate= is called with each batch'

# Names of arguments in torch, tf.data, WebDataset, Hugging Face, LitData, MosaicML, Grain, DALI: (the one here, what to know).
ARGUMENTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("batch_size", "bs", "batchsize", "per_device_batch_size", "minibatch_size", "batched"), ("batch", "")),
    **dict.fromkeys(
        ("num_workers", "workers", "n_workers", "nworkers", "num_threads", "nthreads", "num_parallel_calls", "num_parallel_reads",
         "num_proc", "worker_count", "n_jobs", "cycle_length", "max_workers", "nprocs", "jobs"), ("threads", _WORKERS)),
    **dict.fromkeys(("persistent_workers", "multiprocessing_context", "worker_init_fn", "worker_buffer_size", "in_order", "timeout",
                     "use_shared_memory", "mp_context", "workersplitter"), ("", _WORKERS)),
    **dict.fromkeys(("pin_memory", "pin_memory_device", "device", "non_blocking", "device_id", "to_device"), ("", _DEVICE)),
    **dict.fromkeys(("collate_fn", "collation_fn", "collator", "data_collator"), ("collate", _TUPLES)),
    **dict.fromkeys(("prefetch_factor", "prefetch_size", "buffer_output_elements", "read_ahead", "queue_size", "max_pre_download",
                     "predownload", "prefetch_queue_depth", "num_prefetch"), ("prefetch", 'memory, such as "256MiB"')),
    **dict.fromkeys(("shuffle_size", "shuffle_buffer", "shuffle_buffer_size", "buffer_size", "shardshuffle", "shuffle_files",
                     "random_shuffle", "initial_fill", "block_size", "shuffle_block_size"), ("shuffle", _ORDER)),
    **dict.fromkeys(("reshuffle_each_iteration", "reshuffle"), ("shuffle", _ORDER)),
    **dict.fromkeys(("sampler", "batch_sampler", "index_sampler"), ("shuffle", f"{_ORDER}; {_SHARE}")),
    **dict.fromkeys(("generator", "random_state", "random_seed", "shuffle_seed", "rng", "data_seed", "base_seed"), ("seed", "")),
    **dict.fromkeys(("num_replicas", "world_size", "num_shards", "shard_count", "process_count", "nodesplitter", "num_nodes"),
                    ("world", _SHARE)),
    **dict.fromkeys(("local_rank", "shard_id", "shard_index", "process_index", "shard", "rank_id"), ("rank", _SHARE)),
    **dict.fromkeys(("drop_remainder", "partial", "drop_incomplete", "last_batch_policy"), ("drop_last", "")),
    **dict.fromkeys(("num_epochs", "n_epochs", "nepochs", "repeat", "max_epochs", "repeats", "num_repeats"),
                    ("epochs", "None: without end")),
    **dict.fromkeys(("handler", "ignore_errors", "skip_errors", "on_exception", "error_handler", "skip_bad"),
                    ("on_error", 'such as "skip:1%"')),
    **dict.fromkeys(("deterministic",), ("order", '"strict", or "completion": whatever is ready first')),
    **dict.fromkeys(("transform", "transforms", "target_transform", "map_fn", "preprocess", "preprocessing", "preprocess_fn", "augment",
                     "augmentation", "transformations", "decoders", "decoder", "operations", "map_func", "preprocessor"),
                    ("pipeline", _STEPS)),
    **dict.fromkeys(("columns", "column_names", "keys", "fields", "names", "input_columns", "feature_names"), ("features", "")),
    **dict.fromkeys(("padded_shapes", "padding_values", "padding", "pad_value", "pad_token_id", "padding_value"), ("pad", '{"tokens": 0}')),
    **dict.fromkeys(("cache_dir", "cache_path", "local", "download_dir"), ("cache", '"memory:8GiB" or "disk:FOLDER:200GiB"')),
    **dict.fromkeys(("data_files", "data_dir", "file_pattern", "filenames", "file_paths", "urls", "url", "root", "remote", "path",
                     "input_dir", "folder", "dataset_path", "files"), ("", "the path, or a list of paths, is the first argument")),
    **dict.fromkeys(("streaming", "resampled", "keep_in_memory", "trust_remote_code"), ("", "it is always so, or never: leave it out")),
    **dict.fromkeys(("num_classes", "class_to_idx", "class_names", "label_mode", "labels"), ("", "dataset.labels has the names of the labels")),
    **dict.fromkeys(("validation_split", "test_size", "train_size", "subset", "train"), ("split", _PARTS)),
    **dict.fromkeys(("compression", "compression_type", "compressor"), ("codec", 'such as "zstd:1"; for reading it is found by itself')),
    **dict.fromkeys(("chunk_bytes", "size_limit", "maxsize", "max_shard_size", "chunk_size"), ("shard_bytes", 'such as "64MiB"')),
    **dict.fromkeys(("maxcount", "samples_per_shard", "num_output_shards"), ("shards", "")),
    **dict.fromkeys(("output_dir", "out", "out_dir", "output_path", "dst"), ("output", "")),
    **dict.fromkeys(("fs", "storage_options", "file_system", "client"), ("filesystem", "an fsspec file system that has the paths")),
    **dict.fromkeys(("fn", "inputs"), ("pipeline", _STEPS)),
    **dict.fromkeys(("image_size", "target_size", "resize"), ("set", '{"resize-image.min-side": 64} changes an option of a step')),
}  # fmt: skip

# Methods and attributes.
_METHODS: dict[str, str] = {
    **dict.fromkeys(("map", "apply", "with_transform", "set_transform", "map_dict", "map_tuple", "transform", "decode", "map_batches",
                     "interleave", "flat_map", "rename", "compose", "then"), _STEPS),
    **dict.fromkeys(("filter", "select", "slice", "reject"), "the step filter leaves samples out; dataset[mask] and dataset[10:20] choose some"),
    **dict.fromkeys(("shuffle", "random_shuffle"), f"give the loader its order: presto.Loader(dataset, shuffle=...): {_ORDER}"),
    **dict.fromkeys(("batched", "batch", "ragged_batch", "unbatch", "listed", "collate", "iter_batches"), "a loader makes batches: presto.Loader(dataset, batch=32)"),
    "padded_batch": 'a loader pads batches: presto.Loader(dataset, batch=32, pad={"tokens": 0})',
    **dict.fromkeys(("prefetch", "with_options", "options"), 'a loader reads ahead by itself, as far as prefetch="256MiB" allows'),
    **dict.fromkeys(("repeat", "with_epoch", "resampled"), "a loader repeats: presto.Loader(dataset, epochs=90), or None: without end"),
    **dict.fromkeys(("cache", "persist", "cache_to_disk"), 'a loader caches: presto.Loader(dataset, cache="memory:8GiB")'),
    **dict.fromkeys(("take", "skip", "head", "first"), "dataset[:100] are samples by number; of a loader, itertools.islice(loader, n)"),
    **dict.fromkeys(("shard", "split_by_node", "split_dataset_by_node", "distribute", "split_by_worker"), _SHARE),
    **dict.fromkeys(("train_test_split", "random_split"), _PARTS),
    **dict.fromkeys(("to_tuple", "as_tuple", "tuple"), 'a loader gives tuples: presto.Loader(dataset, as_tuple=("image", "label"))'),
    **dict.fromkeys(("to_tf_dataset", "as_numpy_iterator", "to_tf"), "presto.tf.dataset(dataset, batch=32) is a tf.data.Dataset; presto.Loader gives NumPy arrays"),
    **dict.fromkeys(("with_format", "set_format", "to", "cuda", "cpu", "pin_memory", "as_torch"), "presto.torch.Loader gives tensors, presto.jax.Loader arrays of JAX, presto.Loader those of NumPy"),
    **dict.fromkeys(("set_epoch",), "a loader needs none: each `for` has another order"),
    **dict.fromkeys(("column_names", "columns", "element_spec", "dtypes", "schema"), "dataset.features has names, dtypes and shapes"),
    **dict.fromkeys(("targets", "samples", "imgs", "y"), 'all labels are presto.Loader(dataset, 256, features=["label"]); their names dataset.labels'),
    **dict.fromkeys(("batch_size",), "it is batch here"),
    **dict.fromkeys(("num_workers", "num_threads"), _WORKERS),
    **dict.fromkeys(("next", "get_next"), "iterate over it: for batch in loader, or next(iter(loader))"),
    **dict.fromkeys(("save", "save_to_disk", "to_parquet"), 'presto.write("photos", "photos-small", pipeline="cv", up_to="resized") stores a dataset'),
    **dict.fromkeys(("to_pandas", "to_dict", "to_arrow"), "a loader is an Arrow stream: pyarrow.RecordBatchReader.from_stream(loader)"),
    **dict.fromkeys(("cardinality", "size", "num_rows", "num_samples", "n"), "len(dataset) is the number of samples"),
    **dict.fromkeys(("concatenate", "zip", "sample_from_datasets"), "presto.open takes several paths; presto.mix mixes datasets in proportions"),
    **dict.fromkeys(("reset", "rewind", "restart"), "the next `for` begins the epochs behind; load_state_dict() goes anywhere"),
}  # fmt: skip

# Names of modules.
_NAMES: dict[str, str] = {
    **dict.fromkeys(("DataLoader", "StreamingDataLoader", "WebLoader", "StatefulDataLoader"), "presto.Loader(dataset, batch=32), or presto.torch.Loader for tensors"),
    **dict.fromkeys(("ImageFolder", "TFRecordDataset", "WebDataset", "StreamingDataset", "load_dataset", "load", "read", "ImageDataset",
                     "from_tensor_slices", "image_dataset_from_directory", "load_from_disk", "open_dataset", "FileDataset", "IterableDataset",
                     "make_csv_dataset", "list_files", "ParquetReader"), 'presto.open("photos", pipeline="cv"), or presto.open(path) of TFRecords and datasets'),
    **dict.fromkeys(("optimize", "convert", "preprocess", "prepare", "build"), 'presto.write("photos", "photos-small", pipeline="cv", up_to="resized")'),
    **dict.fromkeys(("MDSWriter", "TFRecordWriter", "ShardWriter", "TarWriter", "ArrayRecordWriter", "DatasetWriter"), 'presto.Writer("digits")'),
    **dict.fromkeys(("DistributedSampler", "RandomSampler", "Sampler"), f"presto.Loader(...): {_ORDER}; {_SHARE}"),
    **dict.fromkeys(("random_split", "train_test_split"), _PARTS),
    **dict.fromkeys(("transforms", "Compose", "map", "function", "transform"), _STEPS),
    **dict.fromkeys(("sample_from_datasets", "interleave_datasets", "ConcatDataset", "concatenate_datasets", "Mixture"), "presto.mix({one: 0.7, other: 0.3})"),
    **dict.fromkeys(("AUTOTUNE", "autotune"), 'threads="auto", which is the default'),
    **dict.fromkeys(("info", "verify", "cat", "describe"), "presto.inspect(path, verify=True)"),
    **dict.fromkeys(("profile", "benchmark", "tune", "autoscale"), 'presto.sweep("photos", "cv")'),
}  # fmt: skip


def of_argument(function: str, name: str, known: Iterable[str]) -> str:
    """Why there is no such argument, and what there is."""
    names = [one for one in known if one != "self"]
    here, what = ARGUMENTS.get(name, ("", ""))
    if here in names:
        way = f": it is {here}= here" + (f" ({what})" if what else "")
    elif what:
        way = f": {what}"
    elif here:
        way = f": presto.Loader has it as {here}="
    elif _is_of_loader(name):
        way = f": presto.Loader(dataset, {name}=...) has it"
    elif alike := difflib.get_close_matches(name, names, 1):
        way = f": is it {alike[0]}=?"
    else:
        way = f": there are {', '.join(names)}"
    return f"{function} has no argument {name!r}{way}"


def _is_of_loader(name: str) -> bool:
    from ._loader import Loader

    return name in inspect.signature(Loader.__init__).parameters


def advised(function: _Function) -> _Function:
    """The function. What is wrong with names and numbers of its arguments is told with the way out."""
    parameters = inspect.signature(function).parameters
    shown = "presto." + function.__qualname__.removesuffix(".__init__")
    is_open = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    by_place = [name for name, one in parameters.items() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if not is_open:
            for name in named:
                if name not in parameters:
                    raise TypeError(of_argument(shown, name, parameters))
        if len(given) > len(by_place):
            mine = [name for name in by_place if name != "self"]
            raise TypeError(f"{shown} takes only {', '.join(mine)} by place: all others by name, as in shuffle=\"full\", seed=1")
        return function(*given, **named)

    return call  # type: ignore[return-value]


class Advised:
    """A class whose missing attributes are advised about."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            way = None if name.startswith("_") else _METHODS.get(name)
            kind = f"{type(self).__module__.split('._')[0]}.{type(self).__name__}"
            if way is None:
                alike = [] if name.startswith("_") else difflib.get_close_matches(name, [one for one in dir(type(self)) if one[0] != "_"], 1)
                way = f"is it {alike[0]}?" if alike else ""
            raise AttributeError(f"a {kind} has no {name!r}" + (f": {way}" if way else ""), name=name, obj=self)


def of_module(module: str, name: str) -> AttributeError:
    """For a module's __getattr__."""
    way = "import presto." + name if name in ("torch", "jax", "tf", "huggingface") else _NAMES.get(name, "")
    way = "import presto.tf" if name in ("tensorflow", "keras") else way
    return AttributeError(f"module {module!r} has no attribute {name!r}" + (f": here it is {way}" if way else ""), name=name)


def of_shuffle(value: Any) -> str:
    """What a shuffle that is none may mean."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        return ""
    return f'. {number} samples in a buffer, as .shuffle({number}) of tf.data and WebDataset has, are shuffle="buffer:{number}"; "full" is exact' if number > 1 else ""


_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)::?//?")


# The kinds of storage that the library reads beside files.
_URL = re.compile(r"s3://|gs://|hf://|https?://")


def is_url(path: Any) -> bool:
    """Is it the name of an object on another machine, as the library takes it?"""
    return _URL.match(os.fsdecode(path)) is not None


def of_path(path: Any) -> str | None:
    """What is to be done about a path that is none; None: it may be one."""
    try:
        text = os.fsdecode(path)
    except (TypeError, ValueError):
        return None
    if os.path.lexists(text):
        return None
    found = _SCHEME.match(text)
    if found is not None and found[1].lower() == "file":
        return f"give the path itself: {text[found.end():] if text[found.end():].startswith('/') else '/' + text[found.end():].lstrip('/')!r}"
    if found is not None and ("://" in text or "::" in text):
        return (
            "of object storage, s3:// is read, and datasets that presto.write made from gs://, hf:// and https://; nothing is written there. "
            "Mount it (mountpoint-s3, gcsfuse, rclone mount), or copy it to a disk"
        )
    if text.startswith("pipe:"):
        return "no program is started by a path: presto.npy_stream takes a command, and presto.open reads files"
    if text.startswith("~"):
        return f"~ is not expanded: os.path.expanduser({text!r})"
    if "$" in text and os.path.expandvars(text) != text:
        return f"variables are not expanded: os.path.expandvars({text!r})"
    if "{" in text and "}" in text:
        return "braces are not expanded: give a list of paths, or the folder, of which all files are taken"
    if any(one in text for one in "*?["):
        if glob.glob(text):
            return None  # the library expands it
        count = len(glob.glob(text, recursive=True))
        if count == 0:
            return "no file matches this pattern"
        return f"** is not expanded: sorted(glob.glob({text!r}, recursive=True)), which has {count} path{'s' * (count != 1)}; or name the folder"
    return None
