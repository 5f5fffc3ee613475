#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Consumers of presto-load that pause, leave or die; memory stays within bounds, and flat over long streams.

PRESTO_CHAOS_SECONDS sets for how long, in processor time, memory is watched.
"""
import gzip
import json
import os
import pathlib
import signal
import struct
import subprocess
import time
import unittest
import zlib

from chaos import PHOTOS, SANITIZED, WATCHDOG_S, ChaosCase, main, moments, run, seeded, start, status_bytes

MIB = 1 << 20
LONG_SECONDS = float(os.environ.get("PRESTO_CHAOS_SECONDS", 1))


def processor_seconds(pid):
    """User and system time of a process that runs."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def masked_crc(data, table=[]):
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
            table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def small_example(number):
    """An Example of 100 bytes: one feature "x" with one value."""
    value = b"%083d" % number
    feature = b"\x0a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value
    entry = b"\x0a\x01x\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    return b"\x0a" + bytes([len(features)]) + features


def frame(payload):
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked_crc(length)) + payload + struct.pack("<I", masked_crc(payload))


def field(number, data):
    """A protobuf field of bytes."""
    length, size = bytearray(), len(data)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2]) + bytes(length) + bytes([size]) + data


def progressive_jpeg(side):
    """A grey image of one colour. Each Huffman table has one code, a zero bit; the one scan has all DC values."""
    edge = side.to_bytes(2, "big")
    return b"".join([b"\xff\xd8\xff\xdb\0\x43\0", b"\x10" * 64, b"\xff\xc2\0\x0b\x08", edge, edge, b"\x01\x01\x11\0",
                     b"\xff\xc4\0\x14\0\x01", bytes(16), b"\xff\xda\0\x08\x01\x01\0\0\0\0", bytes((side // 8) ** 2 // 8),
                     b"\xff\xd9"])


class Consumer(ChaosCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = seeded(cls.__name__)
        cls.resized = cls.write("-u", "resized", "-c", "zstd:1", "-s", "3")

    # ---- pauses ----

    def peak_with_pauses(self, prefetch_mib, *options):
        """VmHWM of a run whose reader stops twice for a while; also what was read."""
        process = start("presto-load", "-q", "--prefetch-bytes", f"{prefetch_mib}MiB", *options)
        total = peak = 0
        pauses = {0: 0.4, 20 * MIB: 0.3}
        while True:
            for at in [at for at in pauses if at <= total]:
                time.sleep(pauses.pop(at))
            peak = max(peak, status_bytes(process.pid, "VmHWM") or 0)
            chunk = os.read(process.stdout.fileno(), 4 * MIB)
            total += len(chunk)
            if not chunk:
                break
        _, err = self.finish(process)
        self.assertEqual((process.returncode, err), (0, ""), options)
        return peak, total

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_memory_stays_bounded_while_the_reader_pauses(self):
        """Pixel-centered photos, 115 MB of them in batches of up to 33 MB, against --prefetch-bytes + 64 MiB."""
        source = self.new("source")
        subprocess.run([PHOTOS, "-n", "110", "-o", source], check=True)
        dataset = self.write("-u", "pixel-centered", "-s", "3", pipeline="cv", source=source)
        batches = ["--to", "pixel-centered", "--format", "npy", "-b", "32"]
        for options, sizes in ((["--format", "tfrecord", "-j", "4"], (1, 4, 16, 48)),
                               ([*batches, "-j", "4"], (1, 8, 32)), ([*batches, "-j", "0"], (1, 16)),
                               ([*batches, "-j", "2", "--shuffle", "full"], (4,)),
                               (["--format", "npy", "-b", "8", "-j", "2", "--shuffle", "buffer:30"], (16,))):
            for prefetch_mib in sizes:
                with self.subTest(prefetch_mib=prefetch_mib, options=options):
                    peak, total = self.peak_with_pauses(prefetch_mib, *options, dataset)
                    print(f"prefetch {prefetch_mib} MiB, {' '.join(options)}: VmHWM {peak / MIB:.0f} MiB, "
                          f"{total / MIB:.0f} MiB read", flush=True)
                    self.assertLess(peak, (prefetch_mib + 64) * MIB)

    # ---- what workers hold ----

    def peak(self, *options):
        """VmHWM of presto-load that discards what it makes."""
        process = start("presto-load", "-q", "--format", "null", *options)
        peak = 0
        while process.poll() is None:
            peak = max(peak, status_bytes(process.pid, "VmHWM") or 0)
            time.sleep(0.002)
        _, err = self.finish(process)
        self.assertEqual((process.returncode, err), (0, ""), options)
        return peak

    def inflating(self, value_bytes, records, raw_bytes=None):
        """A dataset of zlib records that are small and become large."""
        folder = self.new("inflating")
        folder.mkdir()
        value = bytes(value_bytes)
        example = field(1, field(1, field(1, b"x") + field(2, field(1, field(1, value)))))
        data = frame(zlib.compress(example)) * records
        shard = {"file": "data-00000-of-00001.tfrecord", "records": records, "stored_bytes": len(data),
                 "raw_bytes": raw_bytes or records * len(example),
                 "crc32c": "00000000"}
        totals = {key: shard[key] for key in ("records", "stored_bytes", "raw_bytes")}
        (folder / shard["file"]).write_bytes(data)
        (folder / "dataset.json").write_text(json.dumps({
            "format": "presto-dataset", "version": 1, "id": "0" * 16, "tool_version": "1", "input": None,
            "pipeline": None, "split": None, "main_feature": None, "labels": None, "codec": "zlib", "dictionary": None,
            "features": [{"name": "x", "dtype": "string", "shape": [], "encoding": "bytes"}],
            "file_compression": "none", "seed": 0, "shards": [shard], "totals": totals}))
        return folder

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_memory_does_not_grow_with_the_number_of_workers(self):
        """Records of 32 MiB, three times as much while they are decompressed; one at a time beside the limit."""
        dataset = self.inflating(32 * MIB, 24)
        for threads in (1, 8, 16):
            with self.subTest(threads=threads):
                peak = self.peak("-j", threads, "--prefetch-bytes", "16MiB", dataset)
                print(f"{threads} threads, records of 32 MiB: VmHWM {peak / MIB:.0f} MiB", flush=True)
                self.assertLess(peak, (16 + 64 + 3 * 32) * MIB)

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_memory_does_not_grow_with_the_number_of_compressed_shards(self):
        """Of 32 shards, something stays of the one that is read and of four that were."""
        folder = self.new("compressed")
        folder.mkdir()
        example = field(1, field(1, field(1, b"x") + field(2, field(1, field(1, bytes(MIB // 2))))))
        shard = gzip.compress(frame(example) * 48, 1)
        for number in range(32):
            (folder / f"part-{number:05}.tfrecord.gz").write_bytes(shard)
        peak = self.peak("-j", "1", "--prefetch-bytes", "16MiB", folder)
        print(f"32 compressed shards of 24 MiB: VmHWM {peak / MIB:.0f} MiB", flush=True)
        self.assertLess(peak, (16 + 64 + 5 * 64) * MIB)

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_large_photos_are_decoded_by_as_many_workers_as_fit(self):
        source = self.new("source")
        subprocess.run([PHOTOS, "-n", "1", "-c", "1", "-j", "0", "--width", "3000", "--height", "3000", "-o", source],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for threads in (1, 8, 16):
            with self.subTest(threads=threads):
                peak = self.peak("-j", threads, "--prefetch-bytes", "16MiB", "-p", "cv", "--to", "decoded",
                                 *[source] * 24)
                print(f"{threads} threads, photos of 26 MiB: VmHWM {peak / MIB:.0f} MiB", flush=True)
                self.assertLess(peak, (16 + 64 + 2 * 26) * MIB)

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_progressive_photos_are_decoded_by_as_many_workers_as_fit(self):
        """libjpeg keeps two bytes for each pixel until the last scan: 18 or 72 MiB beside 9 or 36 MiB of pixels."""
        pipeline = self.new("grey.yaml")
        pipeline.write_text("name: grey\nsource: {type: files, match: ['*.jpg']}\nsteps:\n"
                            "  - {step: read-file}\n  - {step: decode-image, channels: 1}\n")
        for side, count in ((3072, 100), (6144, 20)):
            source = self.new("source")
            source.mkdir()
            (source / "a.jpg").write_bytes(progressive_jpeg(side))
            for threads in (1, 16):
                with self.subTest(threads=threads, side=side):
                    peak = self.peak("-j", threads, "--prefetch-bytes", "16MiB", "-p", pipeline, *[source] * count)
                    print(f"{threads} threads, progressive photos of {side} x {side}: VmHWM {peak / MIB:.0f} MiB", flush=True)
                    self.assertLess(peak, (16 + 64) * MIB + 3 * side * side)

    def test_a_record_larger_than_its_whole_shard_is_corrupt(self):
        dataset = self.inflating(4 * MIB, 3, raw_bytes=1000)
        done = run("presto-load", "-q", "--format", "null", dataset)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"data-00000-of-00001\.tfrecord.*more than the 1000 bytes")

    def test_pauses_lose_and_change_nothing(self):
        for form in (["--format", "tfrecord"], ["--format", "npy", "-b", "5"], ["--format", "raw"]):
            options = ["-q", "-j", "3", "-e", "40", *form, "--prefetch-bytes", "1MiB", self.resized]
            whole = self.load(*options)
            process, got = start("presto-load", *options), b""
            while chunk := os.read(process.stdout.fileno(), self.random.randrange(1, 1 << 19)):
                got += chunk
                if self.random.random() < 0.1:
                    time.sleep(0.03)
            self.finish(process)
            self.assertEqual((process.returncode, got == whole), (0, True))

    # ---- ends ----

    def test_a_reader_that_leaves_early_ends_it_quietly(self):
        for _ in range(moments(16)):
            form = self.random.choice([["--format", "tfrecord"], ["--format", "npy", "-b", "7"], ["--format", "raw"]])
            options = ["-q", "-j", str(self.random.randrange(5)), "-e", "1000000", *form, self.resized]
            process = start("presto-load", *options)
            for _ in range(self.random.randrange(20)):
                os.read(process.stdout.fileno(), self.random.randrange(1, 1 << 17))
            process.stdout.close()
            process.stdout = None
            _, err = self.finish(process)
            self.assertEqual((process.returncode, err), (0, ""), options)

    def test_a_reader_that_is_killed_ends_it_quietly(self):
        for _ in range(moments(12)):
            loader = start("presto-load", "-q", "-j", self.random.randrange(5), "-e", "1000000", "--format",
                           self.random.choice(["tfrecord", "npy", "raw"]), self.resized)
            reader = subprocess.Popen(self.random.choice([["cat"], ["sleep", "100"]]), stdin=loader.stdout,
                                      stdout=subprocess.DEVNULL)
            loader.stdout.close()
            loader.stdout = None
            time.sleep(self.random.random() * 0.2)
            reader.kill()
            reader.wait()
            _, err = self.finish(loader)
            self.assertEqual((loader.returncode, err), (0, ""))

    def test_raw_records_end_as_quietly(self):
        process = start("presto-load", "-q", "--raw-records", "-e", "1000000", self.resized)
        os.read(process.stdout.fileno(), 1000)
        process.stdout.close()
        process.stdout = None
        _, err = self.finish(process)
        self.assertEqual((process.returncode, err), (0, ""))

    # ---- long streams ----

    @classmethod
    def small_samples(cls):
        """Four foreign shards with 10,000 Examples of 100 bytes."""
        folder = cls.folder / "small"
        if not folder.exists():
            folder.mkdir()
            for shard in range(4):
                frames = b"".join(frame(small_example(shard * 2500 + i)) for i in range(2500))
                (folder / f"small-{shard:05}-of-00004.tfrecord").write_bytes(frames)
        return folder

    @unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
    def test_memory_is_flat_over_a_long_stream_of_small_samples(self):
        for options in (["--format", "null", "-j", "2"], ["--format", "tfrecord", "-j", "2"],
                        ["--format", "tfrecord", "-j", "2", "--shuffle", "full"], ["--format", "null", "-j", "0"]):
            # A small limit: how much of it is in use is up to the scheduler, and no leak.
            process = start("presto-load", "-e", 1_000_000, "--prefetch-bytes", "2MiB", *options, self.small_samples(),
                            stdout=subprocess.DEVNULL)
            peaks = []
            for seconds in (0.3, 0.3 + LONG_SECONDS):  # of processor time: on a busy machine, too, many epochs are over
                while processor_seconds(process.pid) < seconds:
                    self.assertIsNone(process.poll(), options)
                    time.sleep(0.02)
                peaks.append(status_bytes(process.pid, "VmHWM"))
            process.send_signal(signal.SIGINT)
            _, err = self.finish(process)
            self.assertEqual(process.returncode, -signal.SIGINT, err)
            print(f"{' '.join(options)}: VmHWM {peaks[0] / MIB:.2f} MiB, {peaks[1] / MIB:.2f} MiB {LONG_SECONDS} s later", flush=True)
            self.assertLess(peaks[1], peaks[0] + 4 * MIB)


if __name__ == "__main__":
    main()
