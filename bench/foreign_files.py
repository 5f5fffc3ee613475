# SPDX-License-Identifier: Apache-2.0
"""Rows of foreign.py about files of other programs that are handed on as they are: tars, records, the first batch of a large file."""
import json
import pathlib
import subprocess
import sys
import time

from foreign import Row, Timed, Way

IMAGE_BATCH = 64
RECORD_BATCH = 256
RECORD_BYTES = 1000
BUFFER = 1000  # samples, of a shuffle

# In a Python that has torch, which may be another one: webdataset is found behind its own packages.
WEB_LOADER = f"""
import json, os, sys, time
sys.path.append(sys.argv[1])
import torch, webdataset as wds
paths, workers = sys.argv[3:], int(sys.argv[2])
torch.set_num_threads(1)

def wanted(sample):
    return sample["__key__"], sample["jpg"], int(sample["cls"])

start, busy, count = time.perf_counter(), sum(os.times()[:4]), 0
data = wds.WebDataset(paths, shardshuffle=False).map(wanted).batched({IMAGE_BATCH}, collation_fn=list)
for batch in wds.WebLoader(data, batch_size=None, num_workers=workers):
    count += len(batch)
print(json.dumps([count, time.perf_counter() - start, sum(os.times()[:4]) - busy]))
"""


def web_samples(paths):
    """As tuples of key, image, class, in order, in this process."""
    import webdataset

    for sample in webdataset.WebDataset(paths, shardshuffle=False):
        yield sample["__key__"], sample["jpg"], int(sample["cls"])


def write_tars(folder, shards, samples):
    """Tars by webdataset: bytes of the size of photos for ImageNet's classes. Nobody decodes them."""
    import numpy as np
    import webdataset

    rng = np.random.default_rng(11)
    noise = rng.integers(0, 256, 1 << 20, dtype=np.uint8).tobytes()
    sizes, starts, classes = rng.integers(4_000, 16_000, samples), rng.integers(0, 1 << 19, samples), rng.integers(0, 1000, samples)
    paths = []
    for shard in range(shards):
        paths.append(str(folder / f"photos-{shard}.tar"))
        with webdataset.TarWriter(paths[-1]) as tar:
            for i in range(samples * shard // shards, samples * (shard + 1) // shards):
                image = noise[starts[i] : starts[i] + sizes[i]]
                tar.write({"__key__": f"{i:08d}", "jpg": image, "cls": int(classes[i])})
    return paths


def web_loader(bench, paths):
    """webdataset in as many processes as threads; None: no Python here has torch."""
    import foreign_steps
    import webdataset

    try:
        python = foreign_steps.python_with_torch()
    except ImportError:
        return None
    packages = pathlib.Path(webdataset.__file__).resolve().parent.parent
    command = [python, "-W", "ignore", "-c", WEB_LOADER, packages, bench.threads, *paths]

    def run():
        done = subprocess.run(list(map(str, command)), capture_output=True, check=True)
        return Timed(*json.loads(done.stdout))

    return run


def tars(bench):
    """Tars that webdataset wrote: keys, the bytes of images, and classes, in batches of 64."""
    import warnings

    import presto

    warnings.simplefilter("ignore", ResourceWarning)  # webdataset leaves its files open
    samples = 256 if bench.quick else 40_000
    paths = write_tars(bench.folder, 4, samples)

    def batches():
        data = presto.open(paths, pipeline="cv", to="concatenated", set={"source.type": "tar"})
        return presto.Loader(data, batch=IMAGE_BATCH, threads=bench.threads)

    def compare():
        theirs, count = web_samples(paths), 0
        for batch in batches():
            for i in range(len(batch["key"])):
                assert (batch["key"][i].decode(), batch["image"][i], batch["label"][i]) == next(theirs), count
                count += 1
        assert next(theirs, None) is None and count == samples, count
        return f"{count} samples of {len(paths)} tars are equal"

    ways = [Way("presto.Loader", lambda: sum(len(batch["key"]) for batch in batches())),
            Way("webdataset, one process", lambda: sum(1 for _ in web_samples(paths)))]
    several = web_loader(bench, paths)
    if several is not None:
        ways.append(Way("webdataset, WebLoader of torch", several))
    else:
        print("tars: webdataset in several processes is left out: no Python has torch", file=sys.stderr)
    return Row("samples", ways, compare)


def write_records(folder, shards, records):
    """TFRecords by TensorFlow, of 1,000 bytes each, which are no Examples."""
    import numpy as np
    import tensorflow as tf

    noise = np.random.default_rng(5).integers(0, 256, 1 << 20, dtype=np.uint8).tobytes()
    paths = []
    for shard in range(shards):
        paths.append(str(folder / f"raw-{shard}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for i in range(records // shards):
                start = (i * 31 + shard * 7) % ((1 << 20) - RECORD_BYTES)
                writer.write(noise[start : start + RECORD_BYTES])
    return paths


def tf_records(bench, paths):
    import tensorflow as tf

    options = tf.data.Options()
    options.threading.private_threadpool_size = bench.threads
    dataset = tf.data.TFRecordDataset(paths, buffer_size=1 << 20).batch(RECORD_BATCH)
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)


def raw_records(bench, paths):
    import npy_stream

    arguments = bench.presto_load("--raw-records", "-b", RECORD_BATCH, *paths)
    return npy_stream.load(*arguments[1:], program=arguments[0])


def raw(bench):
    """Records of 1,000 bytes that are no Examples, in batches of 256."""
    records = 8_192 if bench.quick else 1_048_576
    paths = write_records(bench.folder, 4, records)

    def compare():
        count = 0
        for mine, theirs in zip(raw_records(bench, paths), tf_records(bench, paths), strict=True):
            mine = mine["record"]
            assert [mine[i] for i in range(len(mine))] == list(theirs.numpy()), count
            count += len(mine)
        assert count == records, count
        return f"{count} records are equal"

    def to_nowhere():
        arguments = bench.presto_load("--raw-records", "--format", "npy", "-b", RECORD_BATCH, *paths)
        subprocess.run(arguments, stdout=subprocess.DEVNULL, check=True)
        return records

    return Row("samples", [Way("presto-load --raw-records --format npy", to_nowhere),
                           Way("the same, read by Python", lambda: sum(len(b["record"]) for b in raw_records(bench, paths))),
                           Way("tf.data", lambda: sum(len(batch) for batch in tf_records(bench, paths)))], compare)


def first_batch(bench):
    """The first batch of a file of 2 GB without an index, from the start of a program or the making of a pipeline."""
    import presto

    paths = write_records(bench.folder, 1, 20_480 if bench.quick else 2_097_152)
    # The same loader, without a process to start: records that are no Examples are read by presto-load only.
    examples = bench.folder / "examples.tfrecord"
    write_examples(examples, 10_240 if bench.quick else 1_048_576)

    def first_of(batches):
        start = time.perf_counter()
        stream = iter(batches())
        batch = next(stream)
        seconds = time.perf_counter() - start
        del stream
        return batch, Timed(1, seconds)

    def ours():
        return first_of(lambda: raw_records(bench, paths))

    def in_process():
        return first_of(lambda: presto.Loader(presto.open(examples), batch=RECORD_BATCH, threads=bench.threads))

    def theirs():
        return first_of(lambda: tf_records(bench, paths))

    def compare():
        mine, wanted = ours()[0]["record"], list(theirs()[0].numpy())
        assert [mine[i] for i in range(len(mine))] == wanted
        assert len(in_process()[0]["data"]) == RECORD_BATCH
        return f"the first {len(wanted)} records are equal; the file has {pathlib.Path(paths[0]).stat().st_size / 1e9:.2f} GB"

    return Row("first batches", [Way("presto-load, started for it", lambda: ours()[1]),
                                 Way("presto.Loader", lambda: in_process()[1]),
                                 Way("tf.data", lambda: theirs()[1])], compare)


def first_of_a_shuffle(bench):
    """The first batch of 1 GB in 16 files without an index, in order, through a buffer, and fully shuffled."""
    import presto

    files, records = 16, 10_240 if bench.quick else 524_288
    paths = [bench.folder / f"examples-{number:02}.tfrecord" for number in range(files)]
    for path in paths:
        write_examples(path, records // files)

    def first_of(shuffle):
        start = time.perf_counter()
        loader = presto.Loader(presto.open(paths), batch=RECORD_BATCH, threads=bench.threads, shuffle=shuffle, seed=1)
        numbers = next(iter(loader)).numbers
        seconds = time.perf_counter() - start
        del loader
        return numbers, Timed(1, seconds)

    def way(name, shuffle):
        return Way(name, lambda: first_of(shuffle)[1])

    def compare():
        in_order, buffered, shuffled = (set(first_of(shuffle)[0].tolist()) for shuffle in ("none", f"buffer:{BUFFER}", "full"))
        assert in_order == set(range(RECORD_BATCH)), in_order
        assert len(buffered) == len(shuffled) == RECORD_BATCH
        assert max(buffered) < BUFFER + RECORD_BATCH, max(buffered)
        assert max(shuffled) >= records // 2, max(shuffled)
        return f"of {records} records, those of a shuffle are from all over, those of a buffer from its reach"

    return Row("first batches", [way(f"presto.Loader, shuffle buffer:{BUFFER}", f"buffer:{BUFFER}"),
                                 way("presto.Loader, in order", "none"),
                                 way("presto.Loader, shuffle full", "full")], compare)


def write_examples(path, records):
    """Examples of 2,000 bytes, by TensorFlow."""
    import tensorflow as tf

    data = tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(range(250)) * 8]))
    example = tf.train.Example(features=tf.train.Features(feature={"data": data})).SerializeToString()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(records):
            writer.write(example)


ROWS = {"tars": tars, "raw": raw, "first-batch": first_batch, "first-shuffled": first_of_a_shuffle}
