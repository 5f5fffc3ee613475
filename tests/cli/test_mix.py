#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""presto-load --mix: several datasets in one stream, as a user runs it."""
import io
import json
import resource
import shutil
import sys

import cli

sys.path.append(str(cli.ROOT / "examples"))
import npy_stream


def of(payload):
    """The dataset and the number of a sample."""
    name, number = cli.example(payload)["key"][0].decode().split("-")
    return name, int(number)


class Mix(cli.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml = cls.folder / "texts.yaml"
        cls.yaml.write_text("name: texts\nsource: {type: files, match: ['*.txt'], feature: text}\n"
                            "steps:\n  - {step: read-file, yields: read}\n")
        cls.a, cls.b, cls.c = (cls.texts(name, count) for name, count in (("a", 100), ("b", 30), ("c", 7)))

    @classmethod
    def texts(cls, name, count, text="of"):
        source = cls.folder / f"texts-{name}"
        source.mkdir()
        for i in range(count):
            (source / f"{name}-{i}.txt").write_text(f"{text} {i}")
        out = cls.folder / name
        done = cli.run("presto-write", "-p", cls.yaml, "-s", 3, "-o", out, source)
        assert done.returncode == 0, done.stderr
        return out

    def stream(self, *arguments):
        return cli.frames(self.load("-q", *arguments))

    def keys(self, *arguments):
        return [cli.example(p)["key"][0] for p in self.stream(*arguments)]

    def mixed(self, *arguments):
        return self.keys("--mix", f"{self.a}=0.7", "--mix", f"{self.b}=0.3", *arguments)

    def test_many_shards_and_few_descriptors(self):
        """A dataset may have half as many files open as the process may; the inputs of a mix share that half."""
        inputs = []
        for name in ("x", "y", "z"):
            foreign = self.folder / f"foreign-{name}"
            foreign.mkdir()
            for i in range(20):
                for shard in self.a.glob("*.tfrecord"):
                    shutil.copy(shard, foreign / f"{i}-{shard.name}")
            inputs += ["--mix", f"{foreign}=1"]
        done = cli.run("presto-load", "-j", "2", "--shuffle", "full", "--format", "null", *inputs,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("6,000 samples in", done.stderr)

    def test_an_epoch_ends_as_asked_for(self):
        for end, epoch in (("longest", (100, 43)), ("shortest", (70, 30)), ("weights", (70, 9))):
            for epochs in (1, 3):
                stats = self.new("stats")
                keys = self.mixed("--mix-epoch", end, "-e", epochs, "--stats", stats)
                counts = tuple(sum(name + b"-" in key for key in keys) for name in (b"a", b"b"))
                self.assertEqual(counts, tuple(epochs * n for n in epoch))
                mix = json.loads(stats.read_text())["mix"]
                self.assertEqual([m["path"] for m in mix], [str(self.a), str(self.b)])
                self.assertEqual([m["weight"] for m in mix], [0.7, 0.3])
                self.assertEqual([m["input_samples"] for m in mix], [100, 30])
                self.assertEqual(tuple(m["epoch_samples"] for m in mix), epoch)
                self.assertEqual(tuple(m["samples"] for m in mix), counts)

    def test_each_dataset_comes_as_it_would_alone(self):
        for order in ([], ["--shuffle", "full"], ["--shuffle", "blocks:5"]):
            keys = self.mixed("-e", 4, "--seed", 3, *order)
            for name, path, epochs in ((b"/a-", self.a, 4), (b"/b-", self.b, 6)):
                alone = self.keys("-e", epochs, "--seed", 3, *order, path)
                mine = [key for key in keys if name in b"/" + key]
                self.assertEqual(mine, alone[: len(mine)])

    SPLIT = ["--split", "80/20", "--split-seed", 4, "--part"]

    def test_each_dataset_is_split_as_it_would_be_alone(self):
        a, b = (set(self.keys(path)) for path in (self.a, self.b))
        seen = {}
        for part in ("train", "eval"):
            split = [*self.SPLIT, part, "--seed", 5, "--shuffle", "full"]
            keys = self.mixed("-e", 6, *split)
            seen[part] = set(keys)
            for of, path in ((a, self.a), (b, self.b)):
                mine = [key for key in keys if key in of]
                self.assertEqual(mine, self.keys("-e", 40, *split, path)[: len(mine)])
            for cache in ("memory:1MiB", f"disk:{self.folder}/disk:9MiB"):
                cached = self.load("-q", "--format", "npy", "--mix", f"{self.a}=0.7", "--mix", f"{self.b}=0.3", "-e", 6, *split,
                                   "-j", 4, "--cache", cache, "-b", 1000)
                batches = npy_stream.batches(io.BufferedReader(io.BytesIO(cached)))
                self.assertEqual([bytes(key) for batch in batches for key in batch["key"]], keys)
        self.assertEqual(seen["train"] | seen["eval"], a | b)
        self.assertEqual(seen["train"] & seen["eval"], set())
        done = cli.run("presto-load", "--mix", f"{self.a}=1", "--mix", f"{self.b}=1", *self.SPLIT, "eval", "--format", "null")
        for path, of in ((self.a, a), (self.b, b)):
            self.assertIn(f"{path}: eval of 80/20, seed 4: {len(of & seen['eval'])} of {len(of)} samples\n", done.stderr)
        self.assert_fails(cli.run("presto-load", "--mix", f"{self.a}=1", "--mix", f"{self.c}=1", "--split", "1000000/1",
                                  "--part", "2"), 1, "no sample is in part 2")

    def test_state_and_skip_go_on_exactly(self):
        for split in ([], [*self.SPLIT, "train"]):
            order = ["-e", 3, "--shuffle", "full", *split]
            whole = self.mixed(*order, "-j", 2)
            state = self.new("state")
            pieces = []
            for limit in (1, 50, 99, 140, 1000):
                pieces += self.mixed(*order, "--state", state, "--limit", limit, "-j", limit % 3)
                self.assertEqual(self.mixed(*order, "--skip", len(pieces)), whole[len(pieces):])
            self.assertEqual(pieces, whole)
        other = cli.run("presto-load", "-q", "--state", state, "--mix", f"{self.a}=0.7", "--mix", f"{self.b}=0.3", *order[:-1],
                        "eval")
        self.assert_fails(other, 2, "another input in place of", state)

    def test_a_state_tells_the_inputs(self):
        state = self.new("state")
        self.mixed("-e", 3, "--shuffle", "full", "--state", state)
        saved = json.loads(state.read_text())
        self.assertEqual([part["share"] for part in saved["mix"]], [100, 43])
        self.assertEqual([part["epoch"] for part in saved["mix"]], [3, 4])
        self.assertEqual([part["next"] for part in saved["mix"]], [0, 9])
        other = cli.run("presto-load", "-q", "--state", state, "--mix", f"{self.a}=0.6", "--mix", f"{self.b}=0.4", "-e", 3,
                        "--shuffle", "full")
        self.assert_fails(other, 2, "other weights", state)

    def test_ranks_partition_the_stream(self):
        for split, world in (([], 2), ([], 5), ([*self.SPLIT, "eval"], 3)):
            whole = self.mixed("-e", 2, *split)
            ranks = [self.mixed("-e", 2, "--rank", r, "--world", world, *split) for r in range(world)]
            count = len(whole) // 2
            each = -(-count // world)
            for epoch in range(2):
                merged = [ranks[p % world][epoch * each + p // world] for p in range(count)]
                self.assertEqual(merged, whole[epoch * count : epoch * count + count])

    def test_a_repeated_sample_is_augmented_anew(self):
        one = self.write("-u", "decoded", "--limit", 1)
        many = self.write("-u", "decoded", "--limit", 12)
        frames = [cli.example(p) for p in self.stream("--mix", f"{one}=1", "--mix", f"{many}=1", "--seed", 1)]
        self.assertEqual(len(frames), 24)
        crops = [tuple(f["image"]) for f in frames]
        first = cli.example(self.stream("--limit", 1, one)[0])["key"]
        mine = {crop for crop, frame in zip(crops, frames) if frame["key"] == first}
        self.assertGreater(len(mine), 6)
        # It is the same again in another run, with other threads.
        again = [cli.example(p) for p in self.stream("--mix", f"{one}=1", "--mix", f"{many}=1", "--seed", 1, "-j", 0)]
        self.assertEqual(again, frames)

    def test_random_steps_draw_by_the_number_in_the_mix(self):
        """The inputs are the two halves of a corpus: the mix numbers its samples as a dataset of the whole corpus does."""
        photos, halves = self.make_photos(), [self.new("half"), self.new("half")]
        for at, part in enumerate(sorted(photos.iterdir())):
            shutil.copytree(part, halves[at * 2 // self.classes] / part.name)
        plain = self.new("plain.yaml")
        plain.write_text(self.pipeline.read_text().replace(", label: parent-folder", ""))
        whole, first, second = (self.write("-u", "decoded", pipeline=plain, source=source) for source in (photos, *halves))
        load = lambda *arguments: map(cli.example, self.stream("--seed", 1, *arguments))
        crops = lambda *arguments: {tuple(one["key"]): tuple(one["image"]) for one in load(*arguments)}
        alone = crops(whole)
        self.assertEqual(len(alone), self.photo_count)
        for threads in (0, 2):
            mixed = crops("--mix", f"{first}=1", "--mix", f"{second}=1", "--mix-epoch", "weights", "-j", threads)
            self.assertEqual(mixed, alone)
        self.assertEqual(crops(first), {key: alone[key] for key in crops(first)})
        second_alone = crops(second)
        self.assertLess(sum(alone[key] == crop for key, crop in second_alone.items()), len(second_alone) // 2)

    def test_raw_sources_are_mixed(self):
        sources = [self.folder / "texts-a", self.folder / "texts-c"]
        keys = self.keys("-p", self.yaml, "--mix", f"{sources[0]}=1", "--mix", f"{sources[1]}=1")
        self.assertEqual(len(keys), 200)
        self.assertEqual(len(set(keys)), 107)

    def test_raw_records_are_mixed(self):
        self.assertEqual(self.mixed("-e", 2, "--shuffle", "full", "--raw-records"), self.mixed("-e", 2, "--shuffle", "full"))

    def test_what_it_says(self):
        done = cli.run("presto-load", "--mix", f"{self.a}=0.7", "--mix", f"{self.b}=0.3", "--format", "null")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"mix: of 143 samples in an epoch, 43 from {self.b} (1.433 of its 30)", done.stderr)
        self.assertIn(f"mix: 100 samples of {self.a}\n", done.stderr)
        explained = self.load("--mix", f"{self.a}=0.7", "--mix", f"{self.b}=0.3", "--explain").decode()
        self.assertIn("input: 130 samples", explained)
        self.assertIn(", mix\n", explained)

    def test_what_does_not_go_together(self):
        pair = ["--mix", f"{self.a}=1", "--mix", f"{self.b}=1"]
        load = lambda *arguments: cli.run("presto-load", "--format", "null", *arguments)
        self.assert_usage(load(*pair, self.c), "no operands")
        self.assert_usage(load("--mix", self.a), "is not PATH=WEIGHT")
        self.assert_usage(load("--mix", f"{self.a}="), "is not a number")
        self.assert_usage(load("--mix", f"{self.a}=0"), "more than 0")
        self.assert_usage(load("--mix", f"{self.a}=-1"), "is not a number")
        self.assert_usage(load("--mix", "=1"), "is not PATH=WEIGHT")
        self.assert_usage(load("--mix-epoch", "shortest", self.a), "needs --mix")
        self.assert_usage(load(*pair, "--mix-epoch", "never"), "is not one of longest, shortest")
        self.assert_usage(load(*pair, "--shuffle", "buffer:3"), "not buffer:N")
        self.assert_fails(load("--mix", f"{self.a}=1", "--mix", f"{self.folder}/none=1"), 1, "none")
        decoded = self.write("-u", "decoded")
        self.assert_fails(load("--mix", f"{self.a}=1", "--mix", f"{decoded}=1"), 2, "cannot be mixed", self.a, decoded)
        label, photos = min(self.make_photos().iterdir()), self.folder / "one-label"
        shutil.copytree(label, photos / label.name)
        one = self.write("-u", "decoded", source=photos)
        self.assert_fails(load("--mix", f"{one}=1", "--mix", f"{decoded}=1"), 2,
                          f"cannot be mixed: {one} has 1 label and {decoded} has 4")


if __name__ == "__main__":
    cli.main()
