#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets written to gs://, before fake-gcs-server: the bytes of the folder, two writers told apart, and answers that are lost."""
import http.client
import json
import random
import re
import subprocess
import unittest
import urllib.request

import servers
from cli import TOOLS, Case, main, run
from cloud_servers import FakeGcs, fake_gcs_server
from test_gs_hf import environment

ANYTHING = "name: any\nsource: {type: files, match: ['*'], label: none}\nsteps:\n  - {step: read-file, yields: concatenated}\n"


class Twisted(servers.Faulty):
    """A proxy before fake-gcs-server, which tells its interfaces apart by the name of the host. `twist(handler, body)`: what is
    answered in its place, or None. `lose(handler)`: the answer gets lost."""

    def __init__(self, upstream, twist=None, lose=None, kinds=(), rate=0.0, **more):
        super().__init__(upstream, list(kinds), rate, **more)
        self.twist, self.lose, self.host, self.seen = twist, lose, upstream.partition("://")[2], []

    def forward(self, handler, body, headers=()):
        upstream = http.client.HTTPConnection(*self.upstream)
        given = {**{name.lower(): value for name, value in handler.headers.items()}, "host": self.host, **dict(headers)}
        given["content-length"] = str(len(body))
        upstream.request(handler.command, handler.path, body=body, headers=given)
        came = upstream.getresponse()
        content, found = came.read(), [(name, value.replace(self.host, self.url.partition("://")[2])) for name, value in came.getheaders()]
        upstream.close()
        return came.status, found, content

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self.lock:
            self.seen.append((handler.command, handler.path, handler.headers.get("Content-Range")))
        kind = self.fault_of(handler)
        if kind == "503":
            return handler.answer(503, [], b"")
        if kind == "silent":
            handler.close_connection = True
            return None
        twisted = self.twist(handler, body) if self.twist is not None else None
        status, headers, content = twisted if twisted is not None else self.forward(handler, body)
        if kind == "lost" or (self.lose is not None and self.lose(handler)):
            handler.close_connection = True
            return None
        handler.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding"):
                handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)
        return None


def is_upload(handler, kind=""):
    return handler.path.startswith("/upload/") and f"uploadType={kind}" in handler.path


class GooglePut(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program, why = fake_gcs_server()
        if why is not None:
            raise unittest.SkipTest(f"fake-gcs-server is not built: {why}")
        seeds = cls.folder / "buckets" / "bucket"
        seeds.mkdir(parents=True)
        (seeds / "other.txt").write_text("of somebody else")
        cls.server = FakeGcs(program, cls.folder / "buckets").__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        draw = random.Random(1)
        cls.small, cls.large = cls.folder / "small", cls.folder / "large"
        for folder, count, size in ((cls.small, 40, 3000), (cls.large, 12, 4 << 20)):
            folder.mkdir()
            for i in range(count):
                (folder / f"{i:03}").write_bytes(draw.randbytes(size // 8 + i) + bytes(size * 7 // 8))
        cls.any = cls.folder / "any.yaml"
        cls.any.write_text(ANYTHING)

    def there(self, program, *arguments, url=None, **options):
        variables = environment(HOME=str(self.folder / "nobody"), STORAGE_EMULATOR_HOST=url or self.server.url, PRESTO_GS_ANONYMOUS="1")
        return run(program, *arguments, env=variables, **options)

    def command(self, out, *options, source=None):
        return ["-q", "-p", self.any, "-o", out, "-j", "2", *options, source or self.small]

    def here(self, *options, source=None):
        out = self.new("here")
        done = run("presto-write", *self.command(out, *options, source=source))
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def url(self):
        return f"gs://bucket/{self.new('put').name}"

    def objects(self, url):
        """Of the folder, as Google's own list and downloads give them."""
        prefix = url.removeprefix("gs://bucket/") + "/"
        with urllib.request.urlopen(f"{self.server.url}/storage/v1/b/bucket/o?prefix={prefix}") as answer:
            names = [item["name"] for item in json.load(answer).get("items", [])]
        found = {}
        for name in names:
            with urllib.request.urlopen(f"{self.server.url}/bucket/{name}") as answer:
                found[name.removeprefix(prefix)] = answer.read()
        return found

    def assert_equal_bytes(self, url, here):
        wanted, found = {file.name: file.read_bytes() for file in here.iterdir()}, self.objects(url)
        self.assertEqual(sorted(found), sorted(wanted))
        for name, content in wanted.items():
            self.assertTrue(found[name] == content, f"{name} differs")

    def assert_written(self, url, *options, source=None, proxy=None):
        done = self.there("presto-write", *self.command(url, *options, source=source), url=proxy)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_equal_bytes(url, self.here(*options, source=source))

    # ---- what is written ----

    def test_the_bytes_are_those_of_the_folder(self):
        for options in (["-c", "none", "-s", "3"], ["-c", "zlib", "-s", "2"], ["--shard-bytes", "20000"], ["-s", "45"]):
            with self.subTest(options=options):
                url = self.url()
                self.assert_written(url, *options)
                done = self.there("presto-inspect", "verify", url)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("CRC-32C and size are as the server says them", done.stdout.decode())

    def test_large_shards_are_uploads_of_several_chunks(self):
        with Twisted(self.server.url) as proxy:
            url = self.url()
            self.assert_written(url, "-s", "1", source=self.large, proxy=proxy.url)
            chunks = [found for method, path, found in proxy.seen if method == "PUT"]
        size = len(self.objects(url)["data-00000-of-00001.tfrecord"])
        self.assertEqual(chunks, ["bytes 0-16777215/*", "bytes 16777216-33554431/*", "bytes 33554432-50331647/*",
                                  f"bytes 50331648-{size - 1}/{size}"])

    def test_what_stands_there_is_refused(self):
        url = self.url()
        self.assert_written(url, "-s", "2")
        before = self.objects(url)
        self.assert_fails(self.there("presto-write", *self.command(url, "-s", "2")), 2, url, "holds a whole dataset already")
        self.assertEqual(self.objects(url), before)
        self.assertEqual(self.there("presto-write", *self.command(url, "-s", "2", "--resume")).returncode, 0)

    def test_of_two_writers_one_wins(self):
        """The other one comes while the first is about to write its first shard."""
        url, seen = self.url(), []

        def begin_another(handler, body):
            if not seen and b'.tfrecord"' in body[:400]:
                seen.append(self.there("presto-write", *self.command(url, "-s", "2")))

        with Twisted(self.server.url, twist=begin_another) as proxy:
            self.assert_written(url, "-s", "2", proxy=proxy.url)
        self.assert_fails(seen[0], 1, url, "is being written to by process")

    def test_a_lock_that_is_taken_over_ends_the_run(self):
        url, seen = self.url(), []

        def replace(handler, body):
            if not seen and b'.tfrecord"' in body[:400]:
                seen.append(self.server.put("bucket", url.removeprefix("gs://bucket/") + "/.progress.json", b"{}"))

        with Twisted(self.server.url, twist=replace) as proxy:
            done = self.there("presto-write", *self.command(url, "-s", "4"), url=proxy.url)
        self.assert_fails(done, 1, "was removed, or taken over by another process")
        self.assertNotIn("dataset.json", self.objects(url))

    # ---- what fails on the way ----

    def test_a_fifth_of_all_requests_fails_and_the_bytes_are_the_same(self):
        for kind in ("503", "silent", "lost"):
            with self.subTest(kind=kind), Twisted(self.server.url, kinds=[kind], rate=0.2, seed=3) as proxy:
                self.assert_written(self.url(), "-s", "5", proxy=proxy.url)
                self.assertGreater(proxy.counts[kind], 0)

    def test_chunks_are_sent_again(self):
        with Twisted(self.server.url, kinds=["503", "silent"], rate=0.7, seed=1, only="upload_id=") as proxy:
            self.assert_written(self.url(), "-s", "1", source=self.large, proxy=proxy.url)
            self.assertGreater(sum(proxy.counts.values()), 0)

    def test_a_chunk_of_which_a_part_was_kept_goes_on_there(self):
        cut = []

        def keep_a_part(handler, body):
            if handler.command != "PUT" or cut or not handler.headers.get("Content-Range", "").endswith("/*"):
                return None
            cut.append(len(body))
            return self.proxy.forward(handler, body[: 5 << 20], {"content-range": f"bytes 0-{(5 << 20) - 1}/*"}.items())

        with Twisted(self.server.url, twist=keep_a_part) as self.proxy:
            self.assert_written(self.url(), "-s", "1", source=self.large, proxy=self.proxy.url)
            ranges = [found for method, _, found in self.proxy.seen if method == "PUT"]
        self.assertEqual(ranges[:3], ["bytes 0-16777215/*", f"bytes {5 << 20}-16777215/*", "bytes 16777216-33554431/*"])

    def test_an_end_whose_answer_is_lost_was_done(self):
        lost = []

        def lose(handler):
            found = re.search(r"/(\d+)$", handler.headers.get("Content-Range", ""))
            if handler.command == "PUT" and found and not lost:
                lost.append(found.group(1))
            return lost and handler.command == "PUT" and found and len(lost) == 1 and not lost.append("")

        with Twisted(self.server.url, lose=lose) as proxy:
            self.assert_written(self.url(), "-s", "1", source=self.large, proxy=proxy.url)
        self.assertTrue(lost)

    def test_bytes_that_came_as_others_do_not_stay(self):
        """fake-gcs-server forgets the CRC of a resumable upload, so its answer tells."""

        def flip(handler, body):
            if handler.command == "PUT" and handler.headers.get("Content-Range", "").startswith("bytes 0-"):
                return self.proxy.forward(handler, body[:1000] + bytes([body[1000] ^ 1]) + body[1001:])
            return None

        url = self.url()
        with Twisted(self.server.url, twist=flip) as self.proxy:
            done = self.there("presto-write", *self.command(url, "-s", "1", source=self.large), url=self.proxy.url)
        self.assert_fails(done, 1, "data-00000-of-00001.tfrecord", "CRC-32C")
        self.assertEqual([name for name in self.objects(url) if name.endswith((".tfrecord", "dataset.json"))], [])

    def test_an_upload_that_points_elsewhere_is_refused(self):
        def point(handler, body):
            if handler.command == "POST" and is_upload(handler, "resumable"):
                return 200, [("Location", "http://127.0.0.1:1/upload/x?upload_id=1"), ("Content-Length", "2")], b"{}"
            return None

        with Twisted(self.server.url, twist=point) as proxy:
            done = self.there("presto-write", *self.command(self.url(), "-s", "1", source=self.large), url=proxy.url)
        self.assert_fails(done, 1, "does not say where on its own host the bytes go")

    # ---- what is left ----

    def test_a_run_that_dies_is_resumed_or_cleaned(self):
        for resumes in (True, False):
            url, ended = self.url(), []

            def end(handler, body):
                if b"-of-00004.tfrecord" in body[:400] and len(ended) < 3:
                    ended.append(body)
                    if len(ended) == 3:
                        self.process.kill()
                return None


            with Twisted(self.server.url, twist=end) as proxy:
                variables = environment(HOME=str(self.folder / "nobody"), STORAGE_EMULATOR_HOST=proxy.url, PRESTO_GS_ANONYMOUS="1")
                command = [TOOLS / "presto-write", *map(str, self.command(url, "-s", "4", "-j", "1"))]
                self.process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL)
                self.process.wait(120)
            self.assertNotIn("dataset.json", self.objects(url))
            self.assertIn(".progress.json", self.objects(url))
            if resumes:
                done = self.there("presto-write", *self.command(url, "-s", "4", "--resume"))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_equal_bytes(url, self.here("-s", "4"))
                continue
            done = self.there("presto-inspect", "clean", "--remove", url)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.objects(url), {})
        with urllib.request.urlopen(f"{self.server.url}/bucket/other.txt") as answer:
            self.assertEqual(answer.read(), b"of somebody else")

    def test_the_reason_of_a_refusal_is_told(self):
        """As Google gives it."""
        words = "me@project.iam.gserviceaccount.com does not have storage.objects.create access to the Google Cloud Storage object."
        said = {"error": {"code": 403, "message": words, "errors": [{"message": words, "domain": "global", "reason": "forbidden"}] * 4}}
        body = json.dumps(said, indent=2).encode()
        refused = lambda handler, _: (403, [("Content-Length", str(len(body)))], body) if handler.command == "POST" else None  # noqa: E731
        with Twisted(self.server.url, twist=refused) as proxy:
            done = self.there("presto-write", *self.command(self.url()), url=proxy.url)
        self.assert_fails(done, 1, "403", words)

    def test_an_upload_that_the_service_has_lost_is_told(self):
        lost = lambda handler, _: (410, [("Content-Length", "0")], b"") if handler.command == "PUT" else None  # noqa: E731
        with Twisted(self.server.url, twist=lost) as proxy:
            done = self.there("presto-write", *self.command(self.url(), "-s", "1", source=self.large), url=proxy.url)
        self.assert_fails(done, 1, "data-00000-of-00001.tfrecord", "has lost the upload", "--resume")


if __name__ == "__main__":
    main()
