#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets on other machines, over HTTP and S3: the stream is that of the folder, whatever fails on the way; nothing is silently wrong."""
import collections
import gzip
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest

import servers
from cli import SANITIZED, TIMEOUT_S, TOOLS, Case, crc32c, frames, main, run

ORDERS = [
    ["--shuffle", "none"],
    ["--shuffle", "full", "--seed", "7", "-e", "2"],
    ["--shuffle", "blocks:8", "--seed", "3", "-j", "3"],
    ["--shuffle", "buffer:9", "-e", "3", "--skip", "31", "-j", "2"],
    ["--shuffle", "full", "--world", "3", "--rank", "1", "-j", "2"],
]


def environment(**more):
    """Without the caller's own keys, profiles and proxies."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("AWS_") and name.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
    return {**kept, "no_proxy": "127.0.0.1", "AWS_EC2_METADATA_DISABLED": "true", **more}


def framed(payload):
    def masked(data):
        crc = crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


class Remote(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Records of 7 KB; 144 in 3 shards, so that a shard is larger than what opening it reads.
        cls.dataset = cls.write("-u", "resized", "-c", "none", "-s", "3")
        cls.name = cls.dataset.name

    def stream(self, url, *options, **variables):
        done = run("presto-load", "-q", *options, url, env=environment(**variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_streams_are_equal(self, url, orders=ORDERS, **variables):
        for order in orders:
            with self.subTest(url=url, order=order):
                self.assertTrue(self.stream(url, *order, **variables) == self.load("-q", *order, self.dataset), "another stream")


class Http(Remote):
    def test_the_stream_is_that_of_the_folder(self):
        with servers.Files(self.folder) as server:
            self.assert_streams_are_equal(f"{server.url}/{self.name}")
            self.assert_streams_are_equal(f"{server.url}/{self.name}/", ORDERS[:1])
            self.assertEqual(set(server.counts), {"GET"})
            for _, path, wanted in server.requests:
                self.assertRegex(wanted or "", r"^bytes=\d+-\d+$", path)

    def test_single_shards_and_what_is_known_of_them(self):
        with servers.Files(self.folder) as server:
            shards = sorted(file.name for file in self.dataset.glob("*.tfrecord"))
            urls = [f"{server.url}/{self.name}/{name}" for name in shards[:2]]
            files = [self.dataset / name for name in shards[:2]]
            self.assertEqual(self.stream(urls[0]), self.load("-q", files[0]))
            done = run("presto-load", "-q", *urls, env=environment())
            self.assertEqual(done.stdout, self.load("-q", *files), done.stderr)
            for command in ([], ["verify"]):
                there = run("presto-inspect", *command, f"{server.url}/{self.name}", env=environment())
                here = run("presto-inspect", *command, self.dataset)
                self.assertEqual(there.returncode, 0, there.stderr)
                self.assertEqual(there.stdout.decode().replace(f"{server.url}/{self.name}", "X"),
                                 here.stdout.decode().replace(str(self.dataset), "X"))

    def test_a_fifth_of_all_requests_fails_and_the_stream_is_the_same(self):
        with servers.Files(self.folder) as server:
            for kind in ("503", "500", "429", "reset", "cut", "silent"):
                with servers.Faulty(server.url, [kind]) as proxy:
                    self.assert_streams_are_equal(f"{proxy.url}/{self.name}", ORDERS[1:3])
                    self.assertGreater(proxy.counts[kind], 2)

    def test_a_record_whose_bits_were_turned_is_fetched_again(self):
        with servers.Files(self.folder) as server, servers.Faulty(server.url, ["flip"], only=".tfrecord") as proxy:
            self.assert_streams_are_equal(f"{proxy.url}/{self.name}", ORDERS[:4])
            self.assertGreater(proxy.counts["flip"], 2)

    def test_bits_that_are_always_turned_are_damage(self):
        with servers.Files(self.folder) as server:
            with servers.Faulty(server.url, ["flip"], rate=1, flips_again=True, only=".tfrecord") as proxy:
                done = run("presto-load", "-q", f"{proxy.url}/{self.name}", env=environment())
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(f"{proxy.url}/{self.name}/", done.stderr)

    def test_an_object_that_is_replaced_meanwhile_is_an_error_with_its_name(self):
        copy = self.new("changing")
        shutil.copytree(self.dataset, copy)
        shard = sorted(copy.glob("*.tfrecord"))[1]
        ranges, times = [], iter(range(1, 9))

        def replace(handler):
            if shard.name in handler.path and handler.path.endswith(".tfrecord") and handler.headers.get("Range"):
                ranges.append(handler.headers["Range"])
                if len(ranges) == 2:  # it is open, and its records are read now
                    content = shard.read_bytes()
                    shard.unlink()
                    shard.write_bytes(content)
                    time = next(times)
                    os.utime(shard, (time, time))

        with servers.Files(self.folder) as server:
            server.before = replace
            done = run("presto-load", "-q", f"{server.url}/{copy.name}", env=environment())
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"{server.url}/{copy.name}/{shard.name}", done.stderr)
            self.assertIn("has been replaced or changed while in use", done.stderr)
            self.assertTrue(self.load("-q", copy).startswith(done.stdout))
            # Leaving damaged samples out does not pass over it either: it is no damage.
            ranges.clear()
            done = run("presto-load", "-q", "--on-error", "skip", f"{server.url}/{copy.name}", env=environment())
            self.assertEqual(done.returncode, 1, done.stderr)

    def test_without_ranges_it_is_said(self):
        with servers.Files(self.folder, knows_ranges=False) as server:
            done = run("presto-load", "-q", f"{server.url}/{self.name}", env=environment())
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("does not send ranges", done.stderr)

    def test_what_is_not_there_and_who_does_not_answer(self):
        with servers.Files(self.folder) as server:
            done = run("presto-load", "-q", f"{server.url}/nothing", env=environment())
            self.assert_fails(done, 1, f"{server.url}/nothing", "no such object")
            with servers.Faulty(server.url, ["503"], rate=1) as proxy:
                done = run("presto-load", "-q", "--format", "null", f"{proxy.url}/{self.name}", env=environment())
                self.assert_fails(done, 1, "503 SlowDown: Please wait. after 10 tries", "request id FAULTY1", proxy.url)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
        done = run("presto-load", "-q", f"http://127.0.0.1:{port}/x", env=environment())
        self.assert_fails(done, 1, f"http://127.0.0.1:{port}/x", "after 10 tries")

    def test_a_redirection_is_not_followed_and_said(self):
        def redirect(handler):
            if handler.path.startswith("/from"):
                handler.answer(302, [("Location", "http://169.254.169.254/latest/meta-data")])
                raise ConnectionAbortedError

        with servers.Files(self.folder) as server:
            server.before = redirect
            done = run("presto-load", "-q", f"{server.url}/from", env=environment())
            self.assert_fails(done, 1, "302", "http://169.254.169.254/latest/meta-data")


    def after_open(self, server, answer, begins=2):
        """From the `begins`-th request for a shard on, `answer` is given instead of its bytes."""
        asked = collections.Counter()

        def instead(handler):
            if handler.path.endswith(".tfrecord"):
                asked[handler.path] += 1
                if asked[handler.path] >= begins:
                    answer(handler)
                    raise ConnectionAbortedError

        server.before = instead
        return asked

    def test_what_was_open_and_is_refused_is_no_damage_of_one_record(self):
        for code, body in ((403, b"<Error><Code>ExpiredToken</Code></Error>"), (404, b"<Error><Code>NoSuchKey</Code></Error>"), (200, b"x" * 4)):
            with self.subTest(code=code), servers.Files(self.folder) as server:
                self.after_open(server, lambda handler: handler.answer(code, [], body))
                done = run("presto-load", "-q", "--format", "null", "--on-error", "skip", f"{server.url}/{self.name}", env=environment())
                self.assert_fails(done, 1, f"{server.url}/{self.name}/", {403: "403 ExpiredToken", 404: "NoSuchKey", 200: "does not send ranges"}[code])

    def test_a_server_that_failed_for_a_block_is_not_asked_for_its_records(self):
        body = b"<Error><Code>SlowDown</Code></Error>"
        with servers.Files(self.folder) as server:
            asked = self.after_open(server, lambda handler: handler.answer(503, [], body))
            done = run("presto-load", "-q", "--format", "null", "-j", "0", f"{server.url}/{self.name}", env=environment())
            self.assert_fails(done, 1, "503 SlowDown", "after 10 tries")
            self.assertLess(sum(asked.values()), 40)

    def test_a_look_that_fails_is_the_error(self):
        with servers.Files(self.folder) as server:
            server.before = lambda handler: (handler.answer(403), handler.connection.close())
            for command in ([], ["verify"], ["cat"]):
                done = run("presto-inspect", *command, f"{server.url}/{self.name}", env=environment())
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"{server.url}/{self.name}/dataset.json: ", done.stderr)
                self.assertIn("403", done.stderr)

    def test_a_host_without_a_name_is_said(self):
        done = run("presto-load", "-q", "http://no-such-host.invalid/x", env=environment())
        self.assert_fails(done, 1, "http://no-such-host.invalid/x", "after 10 tries", "resolve host")

    def test_a_name_and_password_in_a_url_are_refused_and_not_shown(self):
        done = run("presto-load", "-q", "https://me:secret@example.org/x", env=environment())
        self.assert_fails(done, 2, "https://...@example.org/x", "password")
        self.assertNotIn("secret", done.stderr)

    def test_verify_reads_the_index_there(self):
        copy = self.new("indexed")
        shutil.copytree(self.dataset, copy)
        index = sorted(copy.glob("*.index"))[0]
        content = bytearray(index.read_bytes())
        content[-9] ^= 1
        index.write_bytes(content)
        with servers.Files(self.folder) as server:
            there = run("presto-inspect", "verify", f"{server.url}/{copy.name}", env=environment())
        here = run("presto-inspect", "verify", copy)
        self.assertEqual((there.returncode, here.returncode), (3, 3), there.stderr)
        self.assertEqual(there.stdout.decode().replace(f"{server.url}/{copy.name}", "X"), here.stdout.decode().replace(str(copy), "X"))

    def test_an_answer_of_unknown_length_is_not_taken_as_whole(self):
        def cut(handler):
            if handler.path.endswith("dataset.json"):
                handler.send_response(200)
                handler.end_headers()
                handler.wfile.write((self.dataset / "dataset.json").read_bytes()[:-20])
                handler.close_connection = True
                raise ConnectionAbortedError

        with servers.Files(self.folder) as server:
            server.before = cut
            done = run("presto-load", "-q", f"{server.url}/{self.name}", env=environment())
            self.assert_fails(done, 1, "does not send ranges")

    def test_a_small_object_may_come_as_a_whole(self):
        with servers.Files(self.folder) as server:
            server.before = lambda handler: setattr(server, "knows_ranges", not handler.path.endswith("dataset.json"))
            self.assert_streams_are_equal(f"{server.url}/{self.name}", ORDERS[:1])

    def test_headers_whose_bits_were_turned_are_fetched_again(self):
        payloads = [struct.pack("<I", i) for i in range(9000)]  # 12 of 20 bytes are headers
        plain, small = self.new("headers"), self.new("small")
        plain.write_bytes(b"".join(map(framed, payloads)))
        small.write_bytes(b"".join(map(framed, payloads[:100])))
        for file in (plain, small):  # the small one is kept when it is opened
            for seed in range(12):
                with servers.Files(self.folder) as server, servers.Faulty(server.url, [], seed=seed) as proxy:
                    ranges = []

                    def fault_of(handler):
                        if handler.path != f"/{file.name}" or handler.headers["Range"] == "bytes=0-0":
                            return None
                        ranges.append(handler.headers["Range"])
                        return "flip" if len(ranges) == 1 + seed % 6 else None

                    proxy.fault_of = fault_of
                    done = run("presto-load", "-q", "--raw-records", "-j", "0", f"{proxy.url}/{file.name}", env=environment())
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(done.stdout == file.read_bytes())

    def test_files_that_are_compressed_as_a_whole(self):
        payloads = [os.urandom(700) for _ in range(900)]
        stored = [framed(payload) for payload in payloads]
        whole, damaged = self.new("whole"), self.new("damaged")
        whole.write_bytes(gzip.compress(b"".join(stored), 1))
        self.assertEqual(run("presto-inspect", "index", whole).returncode, 0)
        stored[7] = stored[7][:100] + bytes([stored[7][100] ^ 0x40]) + stored[7][101:]
        damaged.write_bytes(gzip.compress(b"".join(stored), 1))
        with servers.Files(self.folder) as server:
            url = f"{server.url}/{damaged.name}"
            done = run("presto-load", "-q", "--raw-records", "--on-error", "skip", url, env=environment())
            self.assertTrue(frames(done.stdout) == payloads[:7] + payloads[8:], done.stderr)
            for seed in range(3):
                with servers.Faulty(server.url, ["flip"], seed=seed, rate=0.3) as proxy:
                    done = run("presto-load", "-q", "--raw-records", "--shuffle", "buffer:9", "-e", "2", f"{proxy.url}/{whole.name}", env=environment())
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(sorted(frames(done.stdout)) == sorted(payloads * 2))

    def test_an_interrupt_ends_the_waits_at_once(self):
        with servers.Files(self.folder) as server, servers.Faulty(server.url, ["503"], rate=1, only=".tfrecord") as proxy:
            process = subprocess.Popen([TOOLS / "presto-load", "-q", "--format", "null", f"{proxy.url}/{self.name}"], env=environment(),
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while proxy.counts["503"] < 4:  # it waits between its tries
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            started = time.monotonic()
            process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, -signal.SIGINT)
            self.assertLess(time.monotonic() - started, 5)

    @unittest.skipIf(SANITIZED or shutil.which("cc") is None, "it needs a compiler, and a program without a sanitizer")
    def test_without_libcurl_it_is_said(self):
        source, library = self.folder / "without.c", self.folder / "without.so"
        source.write_text("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\n#include <string.h>\n"
                          "void *dlopen(const char *name, int flags) {\n"
                          "    void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, \"dlopen\");\n"
                          "    return next(name != NULL && strstr(name, \"curl\") ? \"/no/libcurl.so\" : name, flags);\n}\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        done = run("presto-load", "-q", "http://127.0.0.1:1/x", env=environment(LD_PRELOAD=str(library)))
        self.assert_fails(done, 1, "URLs need libcurl.so.4 (Debian: libcurl4)", "/no/libcurl.so")
        done = run("presto-load", "-q", self.dataset, env=environment(LD_PRELOAD=str(library)))
        self.assertEqual(done.returncode, 0, done.stderr)


class Ahead(Remote):
    """Requests that are under way before what they bring is read."""

    def timed(self, server, delay_s):
        """The times of all requests, each of which takes so long. They have ended with the program."""
        times, answer = [], server.serve

        def serve(handler):
            started = time.monotonic()
            time.sleep(delay_s)
            answer(handler)
            with server.lock:
                times.append((started, time.monotonic()))

        server.serve = serve
        return times

    @staticmethod
    def at_once(times):
        events = sorted([(start, 1) for start, _ in times] + [(end, -1) for _, end in times])
        most = now = 0
        for _, change in events:
            now += change
            most = max(most, now)
        return most

    @staticmethod
    def in_turn(times):
        """The most requests of which each began when the one before had ended: round trips."""
        count, free = 0, 0
        for start, end in sorted(times, key=lambda one: one[1]):
            if start >= free:
                count, free = count + 1, end
        return count

    def test_records_that_stand_near_each_other_are_one_request(self):
        with servers.Files(self.folder) as server:
            for order in ORDERS[:4]:
                server.requests.clear()
                self.assert_streams_are_equal(f"{server.url}/{self.name}", [order])
                shards = [path for _, path, _ in server.requests if path.endswith(".tfrecord")]
                self.assertLess(len(shards), 40, order)

    def test_a_first_batch_out_of_many_shards_takes_four_round_trips(self):
        dataset = self.write("-u", "resized", "-c", "none", "-s", "144")
        with servers.Files(self.folder) as server:
            for order in ("none", "full"):
                times = self.timed(server, 0.5)
                options = ("--shuffle", order, "-b", "32", "--limit", "32", "-j", "1")
                self.assertTrue(self.stream(f"{server.url}/{dataset.name}", *options) == self.load("-q", *options, dataset))
                if not SANITIZED:  # it takes longer to begin many than a request takes
                    self.assertLessEqual(self.in_turn(times), 4)

    def test_one_thread_has_many_requests_under_way(self):
        plain = self.new("far")  # records that stand too far from each other to be read together
        plain.write_bytes(b"".join(framed(bytes([i]) * (60000 if i % 2 else 100)) for i in range(200)))
        with servers.Files(self.folder) as server:
            times = self.timed(server, 0.2)
            options = ("--raw-records", "--shuffle", "full", "-j", "1", "--seed", "3")
            self.assertTrue(self.stream(f"{server.url}/{plain.name}", *options) == self.load("-q", *options, plain))
            self.assertGreater(self.at_once(times), 10)

    def test_a_server_that_fails_often_is_the_limit(self):
        with servers.Files(self.folder) as server, servers.Faulty(server.url, ["503"], rate=0.4, only=".tfrecord") as proxy:
            done = run("presto-load", "--raw-records", "--shuffle", "full", "--format", "null", "--stats", self.folder / "stats",
                       "-e", "8", "--prefetch-bytes", "1MiB", f"{proxy.url}/{self.name}", env=environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            stats = json.loads((self.folder / "stats").read_text())
            self.assertGreater(stats["request_retries"], 2)
            self.assertLessEqual(stats["request_seconds"] * 100, stats["requests"] * 3)
            self.assertRegex(done.stderr, r"limited by storage .*: \d+ of \d+ requests were sent again")

    def test_a_small_memory_is_enough(self):
        with servers.Files(self.folder) as server:
            for order in ORDERS:
                self.assert_streams_are_equal(f"{server.url}/{self.name}", [[*order, "--prefetch-bytes", "64KiB"]])


class Keys(Remote):
    """Who asks: before a server of our own, which takes requests without a signature."""

    def load_fails(self, url, *parts, **variables):
        variables.setdefault("HOME", str(self.folder / "nobody"))
        done = run("presto-load", "-q", url, env=environment(**variables))
        self.assert_fails(done, 2, *parts)

    def test_only_datasets_are_written_to_a_url_and_nothing_beside_it(self):
        folder = self.new("empty")
        folder.mkdir()
        commands = (("presto-sweep", "-p", "cv", "-o", "s3://bucket/report", self.dataset),
                    ("presto-inspect", "repair", next(self.dataset.glob("*.tfrecord")), "-o", "s3://bucket/x"))
        for program, *arguments in commands:
            done = run(program, *arguments, cwd=folder)
            self.assert_fails(done, 1, "s3://bucket", "only datasets are written there")
            self.assertEqual(list(folder.iterdir()), [])

    def test_a_public_bucket_needs_no_keys(self):
        with servers.Files(self.folder.parent, refuses_signatures=True) as server:
            self.assert_streams_are_equal(f"s3://{self.folder.name}/{self.name}", ORDERS[:1], PRESTO_S3_ANONYMOUS="1",
                                          AWS_ENDPOINT_URL=server.url)

    def test_what_is_missing_is_named(self):
        self.load_fails("s3://bucket/data", "AWS_ACCESS_KEY_ID", "PRESTO_S3_ANONYMOUS=1")
        self.load_fails("s3://bucket/data", "AWS_SECRET_ACCESS_KEY is not: set both", AWS_ACCESS_KEY_ID="x")
        self.load_fails("s3://bucket/data", "AWS_PROFILE is 'other'", AWS_PROFILE="other")
        self.load_fails("s3://bucket/data", "is no URL", AWS_ENDPOINT_URL="localhost:9000", PRESTO_S3_ANONYMOUS="1")
        self.load_fails("s3://bucket/data", "'x/y' is no region", AWS_REGION="x/y", PRESTO_S3_ANONYMOUS="1")
        for endpoint in ("http://", "https:///x", "http://host?x", "http://host#x", "http://a b", "http://:9000"):
            self.load_fails("s3://bucket/data", "is no https://HOST", AWS_ENDPOINT_URL=endpoint, PRESTO_S3_ANONYMOUS="1")
        done = run("presto-load", "-q", "s3://bucket/data", env=environment(AWS_ENDPOINT_URL="http://me:secret@host", PRESTO_S3_ANONYMOUS="1"))
        self.assert_fails(done, 2, "the endpoint has a user's name")
        self.assertNotIn("secret", done.stderr)
        profile = self.new("credentials")
        profile.write_text("[default]\naws_access_key_id = x\naws_secret_access_key =\n")
        self.load_fails("s3://bucket/data", "no aws_secret_access_key", AWS_SHARED_CREDENTIALS_FILE=str(profile))
        profile.write_text("[default]\naws_access_key_id =\naws_secret_access_key = x\n")
        self.load_fails("s3://bucket/data", "no keys for S3", AWS_SHARED_CREDENTIALS_FILE=str(profile))
        self.load_fails("s3://b", "s3://BUCKET/KEY", PRESTO_S3_ANONYMOUS="1")


class S3(Remote):
    """A server that checks each signature."""

    # A key with all that a signer stumbles over.
    prefix = "dt=2026-01-31/a+b c/(ü)&x=~'1'"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program, why = servers.versitygw()
        if program is None:
            raise unittest.SkipTest(why)
        cls.server = servers.S3(program, cls.folder / "store").__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.put_folder("bucket", cls.prefix, cls.dataset)
        cls.url = f"s3://bucket/{cls.prefix}"
        cls.keys = {"AWS_ACCESS_KEY_ID": servers.ACCESS, "AWS_SECRET_ACCESS_KEY": servers.SECRET, "HOME": str(cls.folder / "nobody")}

    def test_the_stream_is_that_of_the_folder(self):
        self.assert_streams_are_equal(self.url, **self.keys, AWS_ENDPOINT_URL_S3=self.server.url)

    def test_a_fifth_of_all_requests_fails_and_the_stream_is_the_same(self):
        with servers.Faulty(self.server.url, ["503", "500", "reset", "cut", "silent", "flip"], only=".tfrecord") as proxy:
            self.assert_streams_are_equal(self.url, ORDERS[:4], **self.keys, AWS_ENDPOINT_URL=proxy.url)
            self.assertGreater(sum(proxy.counts[kind] for kind in proxy.kinds), 4)

    def test_profiles_of_the_shared_files(self):
        credentials, config = self.new("credentials"), self.new("config")
        credentials.write_text(f"# mine\n[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n\n"
                               f"[ training ]\naws_access_key_id={servers.ACCESS}\n  aws_secret_access_key = nested\n"
                               f"aws_secret_access_key = {servers.SECRET}\n")
        config.write_text(f"[default]\nregion = nowhere-1\n[profile training]\nregion = {servers.REGION}\n"
                          f"s3 =\n  endpoint_url = http://127.0.0.1:1\nendpoint_url = {self.server.url}/\n")
        variables = {"AWS_SHARED_CREDENTIALS_FILE": str(credentials), "AWS_CONFIG_FILE": str(config)}
        self.assert_streams_are_equal(self.url, ORDERS[:1], AWS_PROFILE="training", **variables)
        # Keys of the environment go before those of a profile that it names; the endpoint is the profile's still.
        done = run("presto-load", "-q", self.url, env=environment(AWS_PROFILE="training", AWS_ACCESS_KEY_ID="x",
                                                                  AWS_SECRET_ACCESS_KEY="y", **variables))
        self.assert_fails(done, 1, "XAdminUserNotFound")  # versitygw has no user x

    def test_who_may_not_and_what_is_not_there(self):
        there = {**self.keys, "AWS_ENDPOINT_URL": self.server.url}
        for variables, url, parts in (({**there, "AWS_SECRET_ACCESS_KEY": "wrong"}, self.url, ("403 SignatureDoesNotMatch: ", "request id")),
                                      (there, "s3://bucket/none", ("no such object: NoSuchKey",)),
                                      (there, "s3://nobucket/none", ("no such object: NoSuchBucket",))):
            done = run("presto-load", "-q", url, env=environment(**variables))
            self.assert_fails(done, 1, url, *parts)
            self.assertNotIn(servers.SECRET, done.stderr)

    def test_a_region_that_is_wrong_is_told(self):
        variables = {**self.keys, "AWS_ENDPOINT_URL": self.server.url, "AWS_REGION": "eu-central-1"}
        done = run("presto-load", "-q", self.url, env=environment(**variables))
        self.assert_fails(done, 1, "400 AuthorizationHeaderMalformed", servers.REGION, "request id")

    def test_a_region_that_the_answer_names_is_taken(self):
        def answer(handler):
            if "/eu-central-1/" in handler.headers.get("Authorization", ""):
                handler.answer(301, [("x-amz-bucket-region", servers.REGION)])
                raise ConnectionAbortedError

        variables = {**self.keys, "AWS_REGION": "eu-central-1"}
        with servers.Faulty(self.server.url, [], rate=0) as proxy:
            serve = proxy.serve
            proxy.serve = lambda handler: (answer(handler), serve(handler))
            self.assert_streams_are_equal(self.url, ORDERS[:1], **variables, AWS_ENDPOINT_URL=proxy.url)

    def test_an_object_that_is_replaced_meanwhile_is_an_error_with_its_name(self):
        self.server.put_folder("bucket", "changing", self.dataset)
        shard = sorted(self.dataset.glob("*.tfrecord"))[1]
        seen = []

        with servers.Faulty(self.server.url, [], rate=0) as proxy:
            serve = proxy.serve

            def replacing(handler):
                if handler.path.endswith(shard.name) and handler.headers.get("Range"):
                    seen.append(1)
                    if len(seen) == 2:
                        self.assertEqual(self.server.send("PUT", f"/bucket/changing/{shard.name}", b"x" + shard.read_bytes()[1:])[0], 200)
                serve(handler)

            proxy.serve = replacing
            done = run("presto-load", "-q", "s3://bucket/changing", env=environment(**self.keys, AWS_ENDPOINT_URL=proxy.url))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"s3://bucket/changing/{shard.name}", done.stderr)
            self.assertIn("has been replaced or changed while in use", done.stderr)


if __name__ == "__main__":
    main()
