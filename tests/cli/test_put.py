#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets written to a bucket: the bytes of the folder; nothing of a run that died is a dataset; two writers are told apart.

`--kills N` kills N writers instead of ten. PRESTO_TEST_SEED chooses where.
"""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.request

import servers
from cli import TIMEOUT_S, TOOLS, Case, main, run
from test_remote import environment

KILLS = int(sys.argv.pop(sys.argv.index("--kills") + 1)) if "--kills" in sys.argv else 10
sys.argv = [argument for argument in sys.argv if argument != "--kills"]
SEED = int(os.environ.get("PRESTO_TEST_SEED", random.randrange(1 << 32)))
ANYTHING = "name: any\nsource: {type: files, match: ['*'], label: none}\nsteps:\n  - {step: read-file, yields: concatenated}\n"
WRITES = ("PUT", "POST", "DELETE")


class Watched(servers.Faulty):
    """A proxy that calls `at` when the n-th request has been answered."""

    def __init__(self, upstream, n=0, at=None, kinds=(), rate=0.0, **more):
        super().__init__(upstream, list(kinds), rate, **more)
        self.n, self.at, self.seen, self.begun, self.gate = n, at, 0, 0, None

    def serve(self, handler):
        with self.lock:
            self.begun += 1
            begun = self.begun
        if self.gate is not None:
            self.gate(begun)
        super().serve(handler)
        with self.lock:
            self.seen += 1
            is_it = self.seen == self.n
        if is_it:
            self.at()


class Put(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program, why = servers.versitygw()
        if program is None:
            raise unittest.SkipTest(why)
        cls.store = cls.folder / "store"
        cls.server = servers.S3(program, cls.store).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.bucket = "bucket"
        status, content = cls.server.send("PUT", f"/{cls.bucket}")
        assert status in (200, 409), content
        draw = random.Random(1)
        cls.small, cls.large, cls.many = (cls.folder / name for name in ("small", "large", "many"))
        for folder, count, size in ((cls.small, 60, 3000), (cls.large, 24, 1 << 20), (cls.many, 100, 100)):
            folder.mkdir()
            for i in range(count):
                # Half of it can be compressed.
                (folder / f"{i:03}").write_bytes(draw.randbytes(size // 2 + i) + bytes(size // 2))
        cls.any = cls.folder / "any.yaml"
        cls.any.write_text(ANYTHING)

    def variables(self, url=None, **more):
        return environment(AWS_ACCESS_KEY_ID=servers.ACCESS, AWS_SECRET_ACCESS_KEY=servers.SECRET, HOME=str(self.folder / "nobody"),
                           AWS_ENDPOINT_URL=url or self.server.url, **more)

    def there(self, program, *arguments, server=None, **options):
        return run(program, *arguments, env=self.variables(server), **options)

    def command(self, out, *options, source=None):
        return ["-q", "-p", self.any, "-o", out, "-j", "3", *options, source or self.small]

    def here(self, *options, source=None):
        out = self.new("here")
        done = run("presto-write", *self.command(out, *options, source=source))
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def key(self):
        return self.new("put").name

    def url(self, key):
        return f"s3://{self.bucket}/{key}"

    def objects(self, key):
        folder, found = self.store / self.bucket / key, {}
        for file in folder.iterdir() if folder.exists() else ():
            try:
                found[file.name] = file.read_bytes()
            except FileNotFoundError:  # the server still does what a killed run has asked for
                pass
        return found

    def uploads(self):
        """Of the whole bucket, as the server keeps them."""
        folder = self.store / self.bucket / ".sgwtmp" / "multipart"
        return [str(file) for file in folder.glob("*/*")] if folder.exists() else []

    def assert_equal_bytes(self, key, here):
        wanted = {file.name: file.read_bytes() for file in here.iterdir()}
        found = self.objects(key)
        self.assertEqual(sorted(found), sorted(wanted))
        for name, content in wanted.items():
            self.assertTrue(found[name] == content, f"{name} differs")

    def assert_nothing_to_see(self, key):
        self.assertNotIn("dataset.json", self.objects(key))
        done = self.there("presto-inspect", self.url(key))
        self.assertNotEqual(done.returncode, 0)


class Written(Put):
    def test_the_bytes_are_those_of_the_folder(self):
        codecs = ["none", "zlib", "gzip", "zstd:3", "lz4", "snappy", "zstd:3+dict", "none+crc"]
        for options in [["-c", codec, "-s", "3"] for codec in codecs] + [
                ["--shard-bytes", "40000"], ["-s", "70"], ["-s", "2", "--file-compression", "gzip"],
                ["--shard-bytes", "40KiB", "--file-compression", "zlib"]]:
            with self.subTest(options=options):
                probe = run("presto-write", *self.command(self.new("probe"), *options))
                if probe.returncode != 0 and "codec" in probe.stderr:
                    continue  # not in this build
                here, key = self.here(*options), self.key()
                done = self.there("presto-write", *self.command(self.url(key), *options))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_equal_bytes(key, here)
                self.assertEqual(self.uploads(), [])
                stream = self.there("presto-load", "-q", self.url(key))
                self.assertEqual(stream.returncode, 0, stream.stderr)
                self.assertTrue(stream.stdout == self.load("-q", here))

    def test_large_shards_are_uploads_of_several_parts(self):
        here, key = self.here("-s", "2", source=self.large), self.key()
        with Watched(self.server.url) as proxy:
            done = self.there("presto-write", *self.command(self.url(key), "-s", "2", "--json", source=self.large), server=proxy.url)
            self.assertEqual(done.returncode, 0, done.stderr)
            parts = [path for method, path, _ in proxy.requests if method == "PUT" and "partNumber=" in path]
            self.assertEqual(len(parts), 4)  # 12 MiB in parts of 8
            figures = json.loads(done.stdout)
            self.assertGreater(figures["sent_requests"], 10)
            self.assertGreater(figures["sent_bytes"], 24 << 20)
            self.assertEqual(figures["sent_retries"], 0)
        self.assert_equal_bytes(key, here)
        self.assertEqual(self.uploads(), [])

    def test_verify_asks_the_server(self):
        for options, source in ((["-s", "2"], self.large), (["--shard-bytes", "9MiB"], self.large), (["-s", "3"], self.small)):
            key = self.key()
            done = self.there("presto-write", *self.command(self.url(key), *options, source=source))
            self.assertEqual(done.returncode, 0, done.stderr)
            done = self.there("presto-inspect", "verify", "--json", self.url(key))
            self.assertEqual(done.returncode, 0, done.stderr)
            figures = json.loads(done.stdout)
            self.assertEqual((figures["faults"], figures["said_files"]), (0, figures["files"]), figures)

    def test_what_stands_there_is_refused(self):
        key = self.key()
        self.assertEqual(self.there("presto-write", *self.command(self.url(key))).returncode, 0)
        before = self.objects(key)
        done = self.there("presto-write", *self.command(self.url(key)))
        self.assert_fails(done, 2, self.url(key), "holds a whole dataset already")
        self.assertEqual(self.objects(key), before)
        done = self.there("presto-write", *self.command(self.url(key), "--resume"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.objects(key), before)
        other = self.key()
        self.server.send("PUT", f"/{self.bucket}/{other}/notes.txt", b"mine")
        done = self.there("presto-write", *self.command(self.url(other)))
        self.assert_fails(done, 2, self.url(other), "is not empty (it holds notes.txt)")
        self.assertEqual(self.objects(other), {"notes.txt": b"mine"})

    def test_what_cannot_be_written_is_refused(self):
        for url in ("https://127.0.0.1:1/x", "hf://datasets/a/b/x"):
            done = self.there("presto-write", *self.command(url))
            self.assert_fails(done, 1, url, "nothing is written to")
        done = self.there("presto-write", *self.command(self.url("x"), "--shard-bytes", "6GiB"))
        self.assert_fails(done, 2, "5 GiB", "give a number of shards")
        done = self.there("presto-write", *self.command("s3://no-such-bucket/x"))
        self.assert_fails(done, 1, "NoSuchBucket")

    def test_two_writers_one_wins(self):
        here = self.here("-s", "8")
        for _ in range(4):
            key = self.key()
            both = [subprocess.Popen([TOOLS / "presto-write", *map(str, self.command(self.url(key), "-s", "8"))], env=self.variables(),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
            told = [one.communicate(timeout=TIMEOUT_S)[1] for one in both]
            codes = sorted(one.returncode for one in both)
            self.assertEqual(codes[0], 0, told)
            self.assertIn(codes[1], (1, 2), told)
            loser = next(text for one, text in zip(both, told) if one.returncode != 0)
            self.assertIn(self.url(key), loser)
            self.assertRegex(loser, "is being written to by|holds a whole dataset already|is not empty|stands there already")
            self.assert_equal_bytes(key, here)

    def test_a_dataset_that_appears_meanwhile_stays(self):
        """Somebody who knows no locks has written dataset.json."""
        key, here = self.key(), self.here("-s", "4")

        def put():
            self.server.send("PUT", f"/{self.bucket}/{key}/dataset.json", b"{}")

        with Watched(self.server.url, 12, put) as proxy:
            done = self.there("presto-write", *self.command(self.url(key), "-s", "4"), server=proxy.url)
        self.assert_fails(done, 1, f"{self.url(key)}/dataset.json", "stands there already")
        self.assertEqual(self.objects(key)["dataset.json"], b"{}")
        self.assertTrue(here.exists())

    def test_a_lock_that_is_taken_ends_the_run(self):
        key = self.key()

        def take():
            self.server.send("PUT", f"/{self.bucket}/{key}/.progress.json", b"{}")

        with Watched(self.server.url, 14, take) as proxy:
            done = self.there("presto-write", *self.command(self.url(key), "-s", "20"), server=proxy.url)
        self.assert_fails(done, 1, self.url(key), "taken over by another process")
        self.assert_nothing_to_see(key)

    def test_a_server_without_conditions_is_refused(self):
        for name in ("If-None-Match", "If-Match"):
            with self.subTest(name=name), Watched(self.server.url) as proxy:
                key, serve = self.key(), proxy.serve

                def forget(handler, serve=serve, name=name):
                    if handler.command == "PUT" and name in handler.headers:
                        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
                        return handler.answer(200, [("ETag", f'"{len(body)}"')])
                    return serve(handler)

                proxy.serve = forget
                done = self.there("presto-write", *self.command(self.url(key)), server=proxy.url)
                self.assert_fails(done, 1, self.url(key), f"does not know {name}")
                self.assertEqual(self.objects(key), {})

    def test_the_lock_lists_all_shards_before_the_dataset_does(self):
        """Who takes over then keeps them."""
        key, listed = self.key(), []
        with Watched(self.server.url) as proxy:
            serve = proxy.serve

            def look(handler):
                if handler.command == "PUT" and handler.path.endswith("dataset.json"):
                    listed.append(len(json.loads(self.objects(key)[".progress.json"])["shards"]))
                return serve(handler)

            proxy.serve = look
            done = self.there("presto-write", *self.command(self.url(key), "-s", "90", source=self.many), server=proxy.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(listed, [90])

    def test_a_shard_of_somebody_else_keeps_its_index(self):
        key, theirs = self.key(), "data-00019-of-00020.tfrecord"

        def put():
            for name in (theirs, theirs + ".index"):
                self.server.send("PUT", f"/{self.bucket}/{key}/{name}", b"theirs")

        with Watched(self.server.url, 14, put) as proxy:
            done = self.there("presto-write", *self.command(self.url(key), "-s", "20"), server=proxy.url)
        self.assert_fails(done, 1, f"{self.url(key)}/{theirs}", "stands there already, with other bytes")
        found = self.objects(key)
        self.assertEqual((found.get(theirs), found.get(theirs + ".index")), (b"theirs", b"theirs"))


class Faults(Put):
    def test_a_fifth_of_all_requests_fails_and_the_bytes_are_the_same(self):
        here = self.here("-s", "9")
        for kind in ("503", "500", "429", "silent", "lost", "torn", "late", "reset", "cut"):
            with self.subTest(kind=kind), Watched(self.server.url, kinds=[kind], rate=0.2, seed=SEED) as proxy:
                key = self.key()
                done = self.there("presto-write", *self.command(self.url(key), "-s", "9"), server=proxy.url)
                self.assertEqual(done.returncode, 0, f"seed {SEED}: {done.stderr}")
                self.assert_equal_bytes(key, here)
                self.assertEqual(self.uploads(), [], kind)
                self.assertGreater(proxy.counts[kind], 2)

    def test_uploads_of_several_parts_survive(self):
        here = self.here("-s", "2", source=self.large)
        kinds = ["503", "silent", "lost", "torn", "late"]
        with Watched(self.server.url, kinds=kinds, rate=0.3, seed=SEED) as proxy:
            key = self.key()
            done = self.there("presto-write", *self.command(self.url(key), "-s", "2", source=self.large), server=proxy.url)
            self.assertEqual(done.returncode, 0, f"seed {SEED}: {done.stderr}")
            self.assert_equal_bytes(key, here)
            self.assertEqual(self.uploads(), [])
        for kind in kinds:  # of the end of an upload alone
            with Watched(self.server.url, kinds=[kind], rate=0.4, seed=SEED, only="uploadId=") as proxy:
                key = self.key()
                done = self.there("presto-write", *self.command(self.url(key), "-s", "2", source=self.large), server=proxy.url)
                self.assertEqual(done.returncode, 0, f"seed {SEED}, {kind}: {done.stderr}")
                self.assert_equal_bytes(key, here)
                self.assertEqual(self.uploads(), [])

    def test_names_that_take_copies_survive(self):
        here = self.here("--shard-bytes", "30000")
        with Watched(self.server.url, kinds=["503", "silent", "lost", "torn"], rate=0.2, seed=SEED) as proxy:
            key = self.key()
            done = self.there("presto-write", *self.command(self.url(key), "--shard-bytes", "30000"), server=proxy.url)
            self.assertEqual(done.returncode, 0, f"seed {SEED}: {done.stderr}")
            self.assert_equal_bytes(key, here)

    def test_a_copy_has_the_key_of_the_customer_twice(self):
        """Of what is read, and of what is written."""
        key, here, asked = self.key(), self.here("--shard-bytes", "30000"), []

        def note(handler):
            if "x-amz-copy-source" in handler.headers:
                asked.append({name.lower(): value for name, value in handler.headers.items()})

        secret = base64.b64encode(bytes(range(32))).decode()
        with self.answered(Watched(self.server.url), note) as proxy:
            done = run("presto-write", *self.command(self.url(key), "--shard-bytes", "30000"),
                       env=self.variables(proxy.url, PRESTO_S3_SSE_CUSTOMER_KEY=secret))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_equal_bytes(key, here)  # this server keeps no keys
        self.assertGreater(len(asked), 2)
        for headers in asked:
            for name, value in (("algorithm", "AES256"), ("key", secret), ("key-md5", base64.b64encode(hashlib.md5(bytes(range(32))).digest()).decode())):
                self.assertEqual(headers.get(f"x-amz-server-side-encryption-customer-{name}"), value)
                self.assertEqual(headers.get(f"x-amz-copy-source-server-side-encryption-customer-{name}"), value)

    def test_a_server_without_etags_is_refused(self):
        """What was put so does not stay."""
        key = self.key()

        def put(handler):
            if handler.command != "PUT":
                return None
            self.server.send("PUT", handler.path, handler.rfile.read(int(handler.headers["Content-Length"])))
            handler.headers.replace_header("Content-Length", "0")
            return 200, b""

        with self.answered(Watched(self.server.url), put) as proxy:
            done = self.there("presto-write", *self.command(self.url(key)), server=proxy.url)
        self.assert_fails(done, 1, f"{self.url(key)}/.progress.json", "gives no ETag")
        self.assertEqual(self.objects(key), {})

    def test_a_server_that_fails_for_good_is_told(self):
        key = self.key()
        with Watched(self.server.url, kinds=["500"], rate=1, only=".tfrecord") as proxy:
            done = self.there("presto-write", *self.command(self.url(key), "-s", "2", "-j", "1"), server=proxy.url)
        self.assert_fails(done, 1, self.url(key), "500 InternalError", "after 10 tries")
        self.assertEqual(self.objects(key), {})
        self.assertEqual(self.uploads(), [])

    def answered(self, proxy, answer):
        """Ask `answer` first; what it leaves, the server answers."""
        serve = proxy.serve

        def instead(handler):
            told = answer(handler)
            if told is None:
                return serve(handler)
            handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
            status, body = told
            return handler.answer(status, [], body)

        proxy.serve = instead
        return proxy

    @staticmethod
    def refuse_end(handler):
        """Of a server that completes uploads without conditions alone."""
        if handler.command == "POST" and "uploadId=" in handler.path and "if-none-match" in handler.headers:
            return 501, b"<Error><Code>NotImplemented</Code><Message>A header is not implemented.</Message></Error>"
        return None

    def test_an_end_without_conditions(self):
        key, here = self.key(), self.here("-s", "2", source=self.large)
        with self.answered(Watched(self.server.url), self.refuse_end) as proxy:
            done = self.there("presto-write", *self.command(self.url(key), "-s", "2", source=self.large), server=proxy.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_equal_bytes(key, here)
        self.assertEqual(self.uploads(), [])

    def test_an_end_without_conditions_replaces_nothing(self):
        key, theirs = self.key(), []

        def refuse(handler):
            told = self.refuse_end(handler)
            if told is not None and not theirs:
                theirs.append(handler.path.partition("?")[0])
                self.server.send("PUT", theirs[0], b"theirs")
            return told

        with self.answered(Watched(self.server.url), refuse) as proxy:
            done = self.there("presto-write", *self.command(self.url(key), "-s", "2", "-j", "1", source=self.large), server=proxy.url)
        self.assert_fails(done, 1, "stands there already, with other bytes")
        self.assertEqual(self.objects(key)[pathlib.Path(theirs[0]).name], b"theirs")
        self.assertEqual(self.uploads(), [])

    def test_a_server_that_knows_no_checksums(self):
        """It takes the objects, and what it cannot check is said."""

        def refuse(handler):
            known = not any(name.lower().startswith("x-amz-checksum-") and name.lower() != "x-amz-checksum-mode" for name in handler.headers)
            return None if known else (400, b"<Error><Code>InvalidArgument</Code><Message>What is that?</Message></Error>")

        for source, options, count in ((self.small, ["-s", "3"], 3), (self.large, ["-s", "2"], 2)):
            key, here = self.key(), self.here(*options, source=source)
            with self.answered(Watched(self.server.url), refuse) as proxy:
                done = self.there("presto-write", *self.command(self.url(key), *options, source=source)[1:], server=proxy.url)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_equal_bytes(key, here)
            self.assertIn(f"keeps no CRC-32C of {count} objects", str(done.stderr))

    def test_an_object_with_another_checksum_does_not_stay(self):
        key = self.key()

        def change(handler):
            if handler.command != "POST" or "uploadId=" not in handler.path:
                return None
            upstream = http.client.HTTPConnection(*proxy.upstream)
            body = handler.rfile.read(int(handler.headers["Content-Length"]))
            handler.headers.replace_header("Content-Length", "0")
            upstream.putrequest("POST", handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                upstream.putheader(name, str(len(body)) if name.lower() == "content-length" else value)
            upstream.endheaders(body)
            content = upstream.getresponse().read()
            upstream.close()
            self.assertIn(b"CompleteMultipartUploadResult", content)
            told = b"<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C><ChecksumType>FULL_OBJECT</ChecksumType>"
            content = re.sub(rb"<Checksum.*</Checksum[A-Za-z0-9]*>", b"", content, flags=re.DOTALL)
            return 200, content.replace(b"</CompleteMultipartUploadResult>", told + b"</CompleteMultipartUploadResult>")

        proxy = Watched(self.server.url)
        with self.answered(proxy, change):
            done = self.there("presto-write", *self.command(self.url(key), "-s", "2", "-j", "1", source=self.large), server=proxy.url)
        self.assert_fails(done, 1, "the server has made the CRC-32C 00000000 of it")
        self.assertEqual(self.objects(key), {})
        self.assertEqual(self.uploads(), [])


class Killed(Put):
    def start(self, key, proxy, *options, source=None):
        return subprocess.Popen([TOOLS / "presto-write", *map(str, self.command(self.url(key), *options, source=source))],
                                env=self.variables(proxy.url), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def requests_of(self, *options, source):
        with Watched(self.server.url) as proxy:
            process = self.start(self.key(), proxy, *options, source=source)
            _, told = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0, told)
            return proxy.seen

    def kill_at(self, key, n, *options, source):
        """Kill it when the n-th request was answered; or it ends before."""
        ready, killed = threading.Event(), threading.Event()

        def kill():
            ready.wait()
            process.send_signal(signal.SIGKILL)
            killed.set()

        with Watched(self.server.url, n, kill) as proxy:
            process = self.start(key, proxy, *options, source=source)
            ready.set()
            process.communicate(timeout=TIMEOUT_S)
            if proxy.seen >= n:
                killed.wait(TIMEOUT_S)
        # No request begins any more. What it has asked for before it died is done, or will never be.
        for thread in threading.enumerate():
            if "process_request_thread" in thread.name:
                thread.join(TIMEOUT_S)
        return process.returncode

    def test_kill_resume_to_equal_bytes(self):
        draw = random.Random(SEED)
        kinds = [(["-s", "12"], self.small), (["--shard-bytes", "30000"], self.small), (["-s", "3"], self.large)]
        wanted = [(options, source, self.here(*options, source=source), self.requests_of(*options, source=source)) for options, source in kinds]
        for i in range(KILLS):
            options, source, here, requests = wanted[i % len(wanted)]
            n, key = draw.randrange(1, requests), self.key()
            with self.subTest(seed=SEED, kill=i, options=options, n=n):
                code = self.kill_at(key, n, *options, source=source)
                if code == 0:
                    self.assert_equal_bytes(key, here)
                    continue
                self.assertEqual(code, -signal.SIGKILL)
                if "dataset.json" not in self.objects(key):
                    self.assert_nothing_to_see(key)
                if draw.random() < 0.5:  # once more
                    self.kill_at(key, draw.randrange(1, requests), *options, "--resume", source=source)
                done = self.there("presto-write", *self.command(self.url(key), *options, "--resume", source=source))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_equal_bytes(key, here)
                self.assertEqual(self.uploads(), [])

    def test_clean_removes_what_was_left(self):
        draw = random.Random(SEED)
        options, source = ["-s", "3"], self.large
        requests = self.requests_of(*options, source=source)
        for i in range(max(3, KILLS // 3)):
            key, n = self.key(), draw.randrange(3, requests - 3)
            with self.subTest(seed=SEED, kill=i, n=n):
                if self.kill_at(key, n, *options, source=source) == 0:
                    continue
                before = self.objects(key)
                listed = self.there("presto-inspect", "clean", "--json", self.url(key))
                self.assertEqual(listed.returncode, 0, listed.stderr)
                figures = json.loads(listed.stdout)
                self.assertEqual(self.objects(key), before)
                self.assertEqual(figures["removed"], 0)
                if "dataset.json" not in before:
                    self.assertEqual(sorted(pathlib.Path(one["path"]).name for one in figures["left"] if one["kind"] == "object"), sorted(before))
                done = self.there("presto-inspect", "clean", "--remove", "--json", self.url(key))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads(done.stdout)["young"], 0)
                if "dataset.json" not in before:
                    self.assertEqual(self.objects(key), {})
                self.assertEqual(self.uploads(), [])

    def test_a_run_that_is_alive_is_left_alone(self):
        key, held, go = self.key(), threading.Event(), threading.Event()

        def hold(begun):
            if begun >= 12:
                held.set()
                go.wait(TIMEOUT_S)

        with Watched(self.server.url) as proxy:
            proxy.gate = hold
            process = self.start(key, proxy, "-s", "12", source=self.small)
            self.assertTrue(held.wait(TIMEOUT_S))
            for options in ([], ["--resume"]):
                done = self.there("presto-write", *self.command(self.url(key), "-s", "12", *options))
                self.assert_fails(done, 1, self.url(key), f"is being written to by process {process.pid} on ")
            done = self.there("presto-inspect", "clean", "--remove", "--json", self.url(key))
            self.assertEqual(done.returncode, 0, done.stderr)
            figures = json.loads(done.stdout)
            self.assertEqual((figures["busy"], figures["removed"]), (1, 0))
            go.set()
            _, told = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0, told)
        self.assert_equal_bytes(key, self.here("-s", "12"))

    def test_a_run_of_another_machine_is_kept_until_it_is_old(self):
        """Another host, or a container with this one's name and process numbers of its own."""
        key = self.key()
        self.assertLess(self.kill_at(key, 14, "-s", "12", source=self.small), 0)
        progress = json.loads(self.objects(key)[".progress.json"])
        self.assertIn("pid:", progress["owner"]["machine"])
        progress["owner"]["machine"] = progress["owner"]["machine"].replace("pid:", "pid:1")
        self.server.send("PUT", f"/{self.bucket}/{key}/.progress.json", json.dumps(progress).encode())
        before = self.objects(key)
        done = self.there("presto-inspect", "clean", "--remove", "--json", self.url(key))
        self.assertEqual(json.loads(done.stdout)["removed"], 0, done.stdout)
        self.assertEqual(self.objects(key), before)
        done = self.there("presto-write", *self.command(self.url(key), "-s", "12", "--resume"))  # it is taken over
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_equal_bytes(key, self.here("-s", "12"))

    def begin_upload(self, name):
        signed = servers.signed("POST", url := f"{self.server.url}/{self.bucket}/{name}?uploads=", b"")
        with urllib.request.urlopen(urllib.request.Request(url, b"", signed, method="POST"), timeout=TIMEOUT_S) as answer:
            return re.search("<UploadId>(.*)</UploadId>", answer.read().decode())[1]

    def test_uploads_of_others_stay(self):
        key = self.key()
        self.assertLess(self.kill_at(key, 14, "-s", "12", source=self.small), 0)
        shard = "data-00000-of-00012.tfrecord"
        ours, below, other = [self.begin_upload(f"{key}/{name}") for name in (shard, f"below/{shard}", "video.mp4")]
        done = self.there("presto-inspect", "clean", "--json", self.url(key))
        told = [one["path"] for one in json.loads(done.stdout)["left"] if one["kind"] == "upload"]
        self.assertEqual(sorted(told), [f"{self.url(key)}/below/{shard}", f"{self.url(key)}/{shard}"])
        done = self.there("presto-write", *self.command(self.url(key), "-s", "12", "--resume"))
        self.assertEqual(done.returncode, 0, done.stderr)
        left = "\n".join(self.uploads())
        self.assertNotIn(ours, left)
        self.assertIn(below, left)
        for name, one in ((f"below/{shard}", below), ("video.mp4", other)):
            self.end_upload(f"{key}/{name}", one)

    def end_upload(self, name, upload):
        signed = servers.signed("DELETE", url := f"{self.server.url}/{self.bucket}/{name}?uploadId={upload}", b"")
        try:
            urllib.request.urlopen(urllib.request.Request(url, None, signed, method="DELETE"), timeout=TIMEOUT_S).close()
        except urllib.error.HTTPError as failed:
            self.assertEqual(failed.code, 404)

    def test_what_cannot_be_looked_at_is_not_made_again(self):
        key = self.key()
        self.assertLess(self.kill_at(key, 30, "-s", "12", source=self.small), 0)
        before = {name for name in self.objects(key) if name.startswith("data-")}
        self.assertTrue(before)
        with Watched(self.server.url) as proxy:
            serve = proxy.serve

            def refuse(handler):
                if handler.command in ("GET", "HEAD") and ".tfrecord" in handler.path:
                    return handler.answer(403, [])
                return serve(handler)

            proxy.serve = refuse
            done = self.there("presto-write", *self.command(self.url(key), "-s", "12", "--resume"), server=proxy.url)
        self.assert_fails(done, 1, self.url(key), "403")
        self.assertLessEqual(before, set(self.objects(key)))

    def test_clean_of_a_folder(self):
        out = self.new("folder")
        done = run("presto-write", *self.command(out, "-s", "4"))
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = sorted(file.name for file in out.iterdir())
        done = run("presto-inspect", "clean", "--remove", out)
        self.assertIn(b"nothing is left over", done.stdout)
        (out / ".progress.json").write_text("{}")
        (out / ".data-00007.tfrecord").write_bytes(b"x")
        (out / "notes.txt").write_text("mine")
        done = run("presto-inspect", "clean", "--remove", "--json", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["removed"], 2, done.stdout)
        self.assertEqual(sorted(file.name for file in out.iterdir()), sorted([*whole, "notes.txt"]))
        (out / "dataset.json").unlink()
        (out / ".progress.json").write_text("{}")
        done = run("presto-inspect", "clean", "--remove", "--json", out)
        self.assertEqual(sorted(file.name for file in out.iterdir()), ["notes.txt"])


if __name__ == "__main__":
    print(f"PRESTO_TEST_SEED={SEED}", flush=True)
    main()
