#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""File systems of fsspec: batches, samples, states and what is written are those of the folder, whatever file system holds it."""
import os
import pathlib
import pickle
import shutil
import signal
import tarfile
import threading
import unittest
import zipfile

import fsspec
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from case import PythonCase, frozen, main, plain, presto

OPTIONS = ({"batch": 5}, {"batch": 3, "shuffle": "full", "epochs": 2, "threads": 3}, {"batch": 4, "world": 2, "rank": 1, "threads": 0})


class OneByOne(LocalFileSystem):
    """Calls of it at the same time would be told."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.inside, self.most, self.threads = 0, 0, set()

    def _count(self, change):
        self.inside += change
        self.most = max(self.most, self.inside)
        self.threads.add(threading.get_ident())

    def info(self, path, **options):
        self._count(1)
        try:
            return super().info(path, **options)
        finally:
            self._count(-1)

    def _open(self, path, mode="rb", **options):
        self._count(1)
        try:
            return super()._open(path, mode, **options)
        finally:
            self._count(-1)


class Failing(LocalFileSystem):
    """Fails with `error` where a file is opened."""

    error = PermissionError("no key for this door")

    def _open(self, path, mode="rb", **options):
        raise self.error


class ByName(LocalFileSystem):
    """A handle reads what has the name now, as those of many clouds do; a list has a marker of the folder, and what is elsewhere."""

    class Handle:
        def __init__(self, path):
            self.path, self.at = path, 0

        def seek(self, at):
            self.at = at

        def read(self, count):
            with open(self.path, "rb") as file:
                file.seek(self.at)
                data = file.read(count)
            self.at += len(data)
            return data

        def close(self):
            pass

    def _open(self, path, mode="rb", **options):
        return self.Handle(path)

    def ls(self, path, detail=False, **options):
        elsewhere = {"name": "/elsewhere/data-9.tfrecord", "size": 5, "type": "file"}
        return [{"name": f"{path}/", "size": 0, "type": "file"}, elsewhere, *super().ls(path, detail=detail, **options)]


class FileSystems(PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        stored, photos = pathlib.Path(cls.stored), pathlib.Path(cls.make_photos())
        cls.zip, cls.tar = pathlib.Path(cls.folder) / "all.zip", pathlib.Path(cls.folder) / "all.tar"
        with zipfile.ZipFile(cls.zip, "w", zipfile.ZIP_DEFLATED) as archive:
            for root in (stored, photos):
                for file in sorted(root.rglob("*")):
                    archive.write(file, file.relative_to(root.parent))
        with tarfile.open(cls.tar, "w") as archive:
            for root in (stored, photos):
                archive.add(root, root.name)
        cls.memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
        for root in (stored, photos):
            for file in root.rglob("*"):
                if file.is_file():
                    cls.memory.pipe_file(f"/data/{file.relative_to(root.parent)}", file.read_bytes())
        cls.stored_name, cls.photos_name = stored.name, photos.name

    def places(self):
        """(file system, folder that holds the dataset and the photos) of each kind."""
        return [(LocalFileSystem(), self.folder), (self.memory, "memory://data"), (fsspec.filesystem("zip", fo=str(self.zip)), ""),
                (fsspec.filesystem("tar", fo=str(self.tar)), ""), (DirFileSystem(str(self.folder), LocalFileSystem()), "")]

    @staticmethod
    def below(folder, name):
        return f"{folder}/{name}" if str(folder) else name

    def batches(self, where, **options):
        with presto.Loader(where, **options) as loader:
            return [frozen(batch) for batch in loader]

    # ---- reading ----

    def test_batches_are_those_of_the_folder(self):
        for fs, folder in self.places():
            path = self.below(folder, self.stored_name)
            for options in OPTIONS:
                with self.subTest(fs=type(fs).__name__, options=options):
                    self.assertEqual(self.batches(path, filesystem=fs, **options), self.batches(self.stored, **options))
            there, here = presto.open(path, filesystem=fs), presto.open(self.stored)
            self.assertEqual(len(there), len(here))
            self.assertEqual({k: plain(v) for k, v in there[3].items()}, {k: plain(v) for k, v in here[3].items()})

    def test_so_are_those_of_raw_files_and_patterns(self):
        wanted = self.batches(presto.open(self.make_photos(), pipeline="cv"), batch=5, seed=3)
        for fs, folder in self.places():
            with self.subTest(fs=type(fs).__name__):
                photos = presto.open(self.below(folder, self.photos_name), pipeline="cv", filesystem=fs)
                self.assertEqual(self.batches(photos, batch=5, seed=3), wanted)
                shards = self.below(folder, self.stored_name) + "/data-*.tfrecord"
                found = presto.open(shards, filesystem=fs)
                self.assertEqual(len(found), len(presto.open(self.stored)))

    def test_a_state_goes_on(self):
        options = {"batch": 3, "shuffle": "full", "seed": 5, "epochs": 2, "filesystem": self.memory}
        path = f"/data/{self.stored_name}"
        whole = self.batches(path, **options)
        loader = presto.Loader(path, **options)
        taken = [frozen(batch) for _, batch in zip(range(2), loader)]
        again = presto.Loader(path, **options)
        again.load_state_dict(loader.state_dict())
        self.assertEqual(taken + [frozen(batch) for batch in again], whole)

    def test_parts_and_mixes(self):
        fs, path = self.memory, f"/data/{self.stored_name}"
        for i, part in enumerate(presto.open(path, filesystem=fs).split("50/50", seed=1)):
            self.assertEqual(self.batches(part, batch=4), self.batches(presto.open(self.stored).split("50/50", seed=1)[i], batch=4))
        mix = presto.mix([(presto.open(path, filesystem=fs), 0.5), (presto.open(path, filesystem=fs), 0.5)])
        here = presto.mix([(self.stored, 0.5), (self.stored, 0.5)])
        self.assertEqual(self.batches(mix, batch=4), self.batches(here, batch=4))
        with self.assertRaisesRegex(presto.ArgumentError, "filesystem"):
            presto.mix([(presto.open(path, filesystem=fs), 0.5), (self.stored, 0.5)])

    def test_a_cache_on_disk_knows_the_files_again(self):
        cache = f"disk:{self.folder}/cache:100MB"
        path = str(self.stored)
        wanted = self.batches(path, batch=5)
        for _ in range(2):
            with presto.Loader(path, batch=5, cache=cache, filesystem=LocalFileSystem()) as loader:
                self.assertEqual([frozen(batch) for batch in loader], wanted)
                cached = loader.stats()["cached_samples"]
        self.assertEqual(cached, len(presto.open(self.stored)))

    # ---- other processes ----

    def test_a_dataset_is_opened_again_in_another_process(self):
        where = pathlib.Path(self.folder) / "pickled"
        where.write_bytes(pickle.dumps(presto.open(self.stored_name, filesystem=fsspec.filesystem("zip", fo=str(self.zip)))))
        code = "import pickle, sys; d = pickle.load(open(sys.argv[1], 'rb')); print(len(d), sum(len(d[i]) for i in range(len(d))))"
        here = presto.open(self.stored)
        self.assertEqual(self.python(code, where).split(), [str(len(here)), str(sum(len(here[i]) for i in range(len(here))))])

    def test_a_child_reads_with_files_of_its_own(self):
        wanted = self.batches(self.stored, batch=5)
        for fs in (fsspec.filesystem("zip", fo=str(self.zip)), fsspec.filesystem("tar", fo=str(self.tar))):
            dataset = presto.open(self.stored_name, filesystem=fs)
            self.assertEqual(self.batches(dataset, batch=5), wanted)
            child = os.fork()
            if child == 0:
                try:
                    is_own = self.batches(dataset, batch=5) == wanted and dataset._place.fs is not fs
                    os._exit(0 if is_own else 1)
                finally:
                    os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(self.batches(dataset, batch=5), wanted)

    # ---- writing and looking ----

    def test_what_is_written_has_the_same_bytes(self):
        options = {"pipeline": "cv", "up_to": "resized", "shards": 2, "threads": 2}
        here = pathlib.Path(self.folder) / "written"
        presto.write(self.make_photos(), here, **options)
        for i, (fs, folder) in enumerate(self.places()):
            there = pathlib.Path(self.folder) / f"written-{i}"
            presto.write(self.below(folder, self.photos_name), there, filesystem=fs, **options)
            for file in sorted(here.glob("data-*")):
                self.assertTrue((there / file.name).read_bytes() == file.read_bytes(), (type(fs), file.name))
        again = pathlib.Path(self.folder) / "again"
        presto.write(f"/data/{self.stored_name}", again, codec="none", shards=1, filesystem=self.memory)
        self.assertEqual(len(presto.open(again)), len(presto.open(self.stored)))

    def test_damage_is_found(self):
        self.assertEqual(presto.inspect(f"/data/{self.stored_name}", verify=True, filesystem=self.memory).faults, 0)
        shard = sorted(pathlib.Path(self.stored).glob("data-*.tfrecord"))[1]
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
        here = pathlib.Path(self.folder) / "damaged"
        here.mkdir()
        for file in pathlib.Path(self.stored).iterdir():
            (here / file.name).write_bytes(bytes(content) if file == shard else file.read_bytes())
            fs.pipe_file(f"/{file.name}", (here / file.name).read_bytes())
        found = presto.inspect("/", verify=True, filesystem=fs)
        self.assertGreater(found.faults, 0)
        self.assertEqual([(one.kind, one.record, one.offset, one.lost_bytes) for one in found.damage],
                         [(one.kind, one.record, one.offset, one.lost_bytes) for one in presto.inspect(here, verify=True).damage])
        with self.assertRaisesRegex(presto.CorruptError, shard.name):
            self.batches("/", batch=5, filesystem=fs)

    # ---- what fails ----

    def test_errors_are_in_the_words_of_the_file_system(self):
        with self.assertRaisesRegex(presto.NotFoundError, r"memory\+[0-9a-f]{8}:///data/none: "):
            presto.open("/data/none", filesystem=self.memory)
        with self.assertRaisesRegex(presto.StorageError, r"dataset\.json: PermissionError: no key for this door") as caught:
            self.batches(str(self.stored), batch=5, filesystem=Failing(skip_instance_cache=True))
        self.assertIn("+", caught.exception.file)
        with self.assertRaisesRegex(TypeError, "fsspec file system"):
            presto.open(self.stored, filesystem=object())
        with self.assertRaisesRegex(TypeError, r'fsspec.filesystem\(.memory.\)'):
            presto.open(self.stored, filesystem="memory")
        with self.assertRaisesRegex(presto.ArgumentError, "open already"):
            presto.Loader(presto.open(self.stored), filesystem=self.memory)

    def test_a_file_that_is_replaced_is_an_error(self):
        fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
        for file in pathlib.Path(self.make_photos()).rglob("*"):
            if file.is_file():
                fs.pipe_file(f"/photos/{file.parent.name}/{file.name}", file.read_bytes())
        loader = presto.Loader(presto.open("/photos", pipeline="cv", filesystem=fs), threads=0, epochs=2)
        batches = iter(loader)
        next(batches)
        last = sorted(fs.find("/photos"))[-1]
        fs.pipe_file(last, fs.cat_file(last))  # the same bytes, and another time
        with self.assertRaisesRegex(presto.Error, "has changed since") as caught:
            for _ in batches:
                pass
        self.assertIn(last, caught.exception.file)

    def test_a_shard_that_is_replaced_under_an_open_handle_is_an_error(self):
        folder = pathlib.Path(self.folder) / "replaced"
        shutil.copytree(self.stored, folder)
        fs = ByName(skip_instance_cache=True)
        loader = presto.Loader(str(folder), batch=1, threads=0, epochs=20, shuffle="full", filesystem=fs)
        batches = iter(loader)
        next(batches)
        for shard in folder.glob("*.tfrecord"):
            os.utime(shard, (1, 1))
        with self.assertRaisesRegex(presto.StorageError, "data-.*has changed since it was opened"):
            for _ in batches:
                pass

    def test_markers_and_names_of_elsewhere_are_left_out(self):
        fs = ByName(skip_instance_cache=True)
        wanted = self.batches(presto.open(self.make_photos(), pipeline="cv"), batch=5)
        self.assertEqual(self.batches(presto.open(str(self.make_photos()), pipeline="cv", filesystem=fs), batch=5), wanted)

    def test_paths_may_come_from_a_generator(self):
        shards = sorted(str(shard) for shard in pathlib.Path(self.stored).glob("*.tfrecord"))
        self.assertEqual(len(presto.open((shard for shard in shards), filesystem=LocalFileSystem())), len(presto.open(self.stored)))

    def test_names_have_no_digest_of_a_secret(self):
        class Cloud(LocalFileSystem):
            def __init__(self, host, password=None, client_kwargs=None, **options):
                super().__init__(**options)

        names = []
        for password in ("a", "b"):
            fs = Cloud("example.org", password=password, client_kwargs={"token": password, "url": f"sftp://me:{password}@host/x"},
                       skip_instance_cache=True)
            names.append(presto.open(str(self.stored), filesystem=fs)._place.name)
        self.assertEqual(names[0], names[1])
        other = presto.open(str(self.stored), filesystem=Cloud("example.com", skip_instance_cache=True))
        self.assertNotEqual(other._place.name, names[0])

    def test_what_is_not_made_for_threads_is_called_by_one_at_a_time(self):
        fs = OneByOne(skip_instance_cache=True)
        wanted = self.batches(self.stored, batch=2)
        self.assertEqual(self.batches(str(self.stored), batch=2, threads=4, filesystem=fs), wanted)
        self.assertEqual((fs.most, fs.inside), (1, 0))

    def test_handles_are_closed(self):
        def opened():
            return sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))

        before = [name for name in opened() if self.stored_name in name]
        dataset = presto.open(str(self.stored), filesystem=LocalFileSystem())
        self.batches(dataset, batch=5, threads=3)
        del dataset
        self.assertEqual([name for name in opened() if self.stored_name in name], before)

    def test_ctrl_c_in_a_call_of_the_file_system_is_heard(self):
        class Interrupted(LocalFileSystem):
            def _open(self, path, mode="rb", **options):
                signal.raise_signal(signal.SIGINT)
                return super()._open(path, mode, **options)

        with self.assertRaises(KeyboardInterrupt):
            self.batches(str(self.stored), batch=5, threads=0, filesystem=Interrupted(skip_instance_cache=True))

    def test_names_are_the_same_in_each_process_and_end_with_their_use(self):
        code = ("import sys, fsspec, presto; d = presto.open(sys.argv[1], filesystem=fsspec.filesystem('zip', fo=sys.argv[2]))\n"
                "print(d._place.name)")
        fs = fsspec.filesystem("zip", fo=str(self.zip))
        dataset = presto.open(self.stored_name, filesystem=fs)
        name = dataset._place.name
        self.assertEqual(self.python(code, self.stored_name, self.zip).strip(), name)
        other = presto.open(self.stored_name, filesystem=fsspec.filesystem("zip", fo=str(self.zip)))  # another object, perhaps of another file
        self.assertEqual(other._place.name, f"{name}.2")
        self.assertIs(presto.open(self.stored_name, filesystem=fs)._place, dataset._place)
        del dataset, other
        self.assertEqual(presto.open(self.stored_name, filesystem=fsspec.filesystem("zip", fo=str(self.zip)))._place.name, name)

    def test_a_file_system_without_a_size_says_so(self):
        class Sizeless(LocalFileSystem):
            def info(self, path, **options):
                return {**super().info(path, **options), "size": None}

        with self.assertRaisesRegex(presto.StorageError, "does not say how large it is"):
            presto.open(str(self.stored), filesystem=Sizeless(skip_instance_cache=True))


if __name__ == "__main__":
    main()
