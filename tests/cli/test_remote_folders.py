#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of raw files, archives and TFRecords in buckets: what is read is what the folder has, in its order, whatever is in the keys."""
import base64
import io
import json
import re
import shutil
import struct
import tarfile
import unittest

import servers
from cli import Case, crc32c, example, frames, main, run
from test_remote import environment

ANYTHING = "name: any\nsource: {type: files, match: ['*'], label: %s}\nsteps:\n  - {step: read-file, yields: concatenated}\n"
KEYS = {"AWS_ACCESS_KEY_ID": servers.ACCESS, "AWS_SECRET_ACCESS_KEY": servers.SECRET}


def objects_of(folder):
    return {str(file.relative_to(folder.parent)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class Folders(Case):
    def there(self, server, program, *arguments, **variables):
        return run(program, *arguments, env=environment(**KEYS, HOME=str(self.folder / "nobody"), AWS_ENDPOINT_URL=server.url, **variables))

    def records(self, server, *arguments, **variables):
        done = self.there(server, "presto-load", "-q", *arguments, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def pipeline_of(self, label="none"):
        file = self.new("any.yaml")
        file.write_text(ANYTHING % label)
        return file

    def bodies(self, server, path, label="none"):
        """What the files hold, in order."""
        return [example(record)["image"][0] for record in frames(self.records(server, "-p", self.pipeline_of(label), path))]


class Keys(Folders):
    """Before a server of our own, in which keys may be anything."""

    def test_a_folder_of_photos_is_that_of_the_disk(self):
        photos = self.make_photos()
        (photos / ".hidden").mkdir()
        shutil.copy(next(photos.rglob("*.jpg")), photos / ".hidden" / "x.jpg")
        (photos / "notes.txt").write_text("no photo")
        try:
            with servers.Keys(objects_of(photos)) as server:
                for arguments in (["--shuffle", "none"], ["--shuffle", "full", "--seed", "7", "-e", "2"], ["--world", "3", "--rank", "1"]):
                    here = self.load("-q", "-p", self.pipeline, *arguments, photos)
                    for url in ("s3://bucket/photos", "s3://bucket/photos/"):
                        self.assertTrue(self.records(server, "-p", self.pipeline, *arguments, url) == here, (arguments, url))
        finally:
            shutil.rmtree(photos / ".hidden")
            (photos / "notes.txt").unlink()

    def test_what_is_written_of_a_bucket_is_what_is_written_of_the_folder(self):
        photos = self.make_photos()
        here = self.write("-c", "none", "-s", "2")
        there = self.new("dataset")
        with servers.Keys(objects_of(photos)) as server:
            done = self.there(server, "presto-write", "-p", self.pipeline, "-u", "pixel-centered", "-c", "none", "-s", "2", "-o", there, "s3://bucket/photos")
        self.assertEqual(done.returncode, 0, done.stderr)
        for file in here.glob("*.tfrecord*"):
            self.assertTrue((there / file.name).read_bytes() == file.read_bytes(), file.name)

    def test_archives_and_patterns(self):
        folder = self.new("archives")
        folder.mkdir()
        for name in ("b", "a", "c-skipped"):
            with tarfile.open(folder / f"{name}.tar", "w") as archive:
                for i in range(40):
                    for ending, body in (("cls", b"%d" % (i % 3)), ("txt", f"{name} {i} ".encode() * 200)):
                        member = tarfile.TarInfo(f"{i:04}.{ending}")
                        member.size = len(body)
                        archive.addfile(member, io.BytesIO(body))
        pipeline = self.new("tar.yaml")
        pipeline.write_text("name: t\nsource: {type: tar, match: ['*.txt']}\nsteps:\n  - {step: read-file, yields: concatenated}\n")
        with servers.Keys(objects_of(folder)) as server:
            for there, here in (("", [folder]), ("/?.tar", [folder / "a.tar", folder / "b.tar"]), ("/[a-b]*", [folder / "a.tar", folder / "b.tar"])):
                self.assertTrue(self.records(server, "-p", pipeline, f"s3://bucket/{folder.name}{there}") == self.load("-q", "-p", pipeline, *here), there)
            done = self.there(server, "presto-load", "-q", "-p", pipeline, f"s3://bucket/{folder.name}/z*.tar")
            self.assert_fails(done, 1, f"s3://bucket/{folder.name}/z*.tar")

    def test_odd_keys(self):
        names = ["plain", "a b", "a+b", "a%41b", "ü/é", "日本", "x//y", "/lead", "tab\there", "new\nline", "&<>\"'", "~*", "a?b", "dots/../up", "./here",
                 "-dash", "a!/x", "a/x", "a0/x", "\x7f", "\x01", "sub/marker/"]
        objects = {f"odd/{name}": (b"" if name.endswith("/") else name.encode()) for name in names}
        objects["oddity"] = b"not below it"
        with servers.Keys(objects) as server:
            expected = sorted((name for name in names if not name.endswith("/") and not any(part.startswith(".") for part in name.split("/"))), key=str.encode)
            self.assertEqual(self.bodies(server, "s3://bucket/odd"), [name.encode() for name in expected])
            for name in expected:  # each by its name
                if not any(letter in name for letter in "*?["):
                    self.assertEqual(self.bodies(server, f"s3://bucket/odd/{name}"), [name.encode()])

    def test_more_keys_than_a_page_has(self):
        flat = {f"flat/{i:05}.txt": b"%05d" % i for i in range(3456)}
        deep = {f"deep/train/{c:02}/{i:04}.txt": b"%02d%04d" % (c, i) for c in range(12) for i in range(150)} | {"deep/read.me": b"deep"}
        many = {f"many/{i:04}/x.txt": b"%04d" % i for i in range(1500)}
        with servers.Keys(flat | deep | many) as server:
            for name, objects, most in (("flat", flat, 12), ("deep", deep, 30), ("many", many, 10)):
                server.counts.clear()
                self.assertTrue(self.bodies(server, f"s3://bucket/{name}") == [objects[key] for key in sorted(objects)], name)
                self.assertLess(server.counts["list"], most)
            self.assertGreater(server.most_at_once, 1)

    def test_classes_are_those_of_the_folder(self):
        photos = self.make_photos()
        (photos / "empty").mkdir()
        try:
            with servers.Keys(objects_of(photos) | {"photos/empty/": b""}) as server:
                for command in (("presto-load", "-q", "-p", self.pipeline, "--explain"), ):
                    here, there = run(*command, photos), self.there(server, *command, "s3://bucket/photos")
                    self.assertEqual(here.returncode, there.returncode, there.stderr)
                    self.assertEqual(there.stdout.decode().replace("s3://bucket/photos", "X"), here.stdout.decode().replace(str(photos), "X"))
                    self.assertEqual(there.stderr.replace("s3://bucket/photos", "X"), here.stderr.replace(str(photos), "X"))
        finally:
            (photos / "empty").rmdir()

    def test_a_table_names_files(self):
        photos = self.make_photos()
        files = sorted(photos.rglob("*.jpg"))
        rows = "".join(f"{file.relative_to(photos)},{i % 3}\n" for i, file in enumerate(files[:-2]))
        (photos / "table.csv").write_text("path,label\n" + rows + "none/at-all.jpg,1\n")
        pipeline = self.new("manifest.yaml")
        pipeline.write_text("name: m\nsource: {type: manifest, label: label}\nsteps:\n  - {step: read-file, yields: concatenated}\n")
        try:
            with servers.Keys(objects_of(photos)) as server:
                here = run("presto-load", "-p", pipeline, photos / "table.csv")
                there = self.there(server, "presto-load", "-p", pipeline, "s3://bucket/photos/table.csv")
                self.assertEqual(there.returncode, 0, there.stderr)
                self.assertTrue(here.stdout == there.stdout)
                self.assertLess(server.counts["list"], 30)
                for told in ("1 of 23 rows left out: no such file", "left out: no row"):
                    self.assertIn(told, here.stderr)
                    self.assertIn(told, there.stderr)
        finally:
            (photos / "table.csv").unlink()

    def test_tfrecords_of_others_are_found(self):
        dataset = self.write("-u", "resized", "-c", "none", "-s", "3")
        folder = self.new("foreign")
        folder.mkdir()
        for i, file in enumerate(sorted(dataset.glob("*.tfrecord"))):
            shutil.copy(file, folder / f"part-{i:05}.tfrecord")
        (folder / "_SUCCESS").touch()
        with servers.Keys(objects_of(folder)) as server:
            for pattern in ("", "/", "/part-*", "/part-0000[02].tfrecord"):
                here = [folder] if pattern in ("", "/") else sorted(folder.glob(pattern[1:]))
                self.assertTrue(self.records(server, "--raw-records", f"s3://bucket/{folder.name}{pattern}") == self.load("-q", "--raw-records", *here))
            here, there = run("presto-inspect", "verify", folder), self.there(server, "presto-inspect", "verify", f"s3://bucket/{folder.name}")
            self.assertEqual((here.returncode, there.returncode), (0, 0), there.stderr)

    def test_lists_that_are_not_whole_are_errors(self):
        objects = {f"x/{i:04}.txt": b"x" for i in range(30)}
        cases = (
            (lambda xml, _: re.sub("<NextContinuationToken>.*?</NextContinuationToken>", "", xml), "does not say how it goes on"),
            (lambda xml, _: re.sub("<NextContinuationToken>.*?<", f"<NextContinuationToken>{b'x/0005'.hex()}<", xml), "says that it goes on where it has been"),
            (lambda xml, page: re.sub("<NextContinuationToken>.*?<", f"<NextContinuationToken>{(b'x/0005', b'x/0008', b'x/0009')[page % 3].hex()}<", xml),
             "says that it goes on where it has been"),
            (lambda xml, _: xml[: len(xml) // 2], "the list of its keys cannot be read"),
            (lambda xml, _: xml.replace("<Key>x/", "<Key>y/"), "which it was not asked for"),
            (lambda xml, _: xml.replace("<Size>1<", "<Size>-1<"), "a size is no number"),
            (lambda xml, _: xml.replace("<Key>x/0003.txt<", "<Key>x/%0<"), "is not encoded as the answer says"),
            (lambda xml, _: xml.replace("<Key>x/0003.txt<", "<Key>x/%00<"), "a NUL"),
            (lambda xml, _: xml.replace("ListBucketResult", "Other"), "it is no ListBucketResult"),
            (lambda xml, _: xml.replace("?>\n", '?>\n<!DOCTYPE a [<!ENTITY b "c">]>'), "document type"),
        )
        for twist, words in cases:
            with servers.Keys(objects, most=10, twist=twist) as server:
                done = self.there(server, "presto-load", "-q", "-p", self.pipeline_of(), "s3://bucket/x/")
                self.assert_fails(done, 1, "s3://bucket/x/", words)
        # A list that was cut once is asked for again.
        with servers.Keys(objects, most=10, twist=lambda xml, page: xml[:-30] if page % 2 else xml) as server:
            self.assertEqual(len(self.bodies(server, "s3://bucket/x")), 30)

    def test_servers_that_fail_while_listing(self):
        objects = {f"x/{c}/{i:04}.txt": b"%d%04d" % (c, i) for c in range(5) for i in range(300)}
        with servers.Keys(objects) as upstream:
            for seed in range(3):
                with servers.Faulty(upstream.url, ["503", "500", "reset", "cut", "silent"], rate=0.3, seed=seed, only="list-type") as server:
                    self.assertTrue(self.bodies(server, "s3://bucket/x") == [objects[key] for key in sorted(objects)])
                    self.assertGreater(sum(server.counts[kind] for kind in server.kinds), 0)

    def test_what_is_not_there(self):
        with servers.Keys({"x/y.txt": b"y"}) as server:
            for url, words in (("s3://bucket/none", "no such object: NoSuchKey"), ("s3://other/x", "NoSuchBucket"), ("s3://bucket/x/none*", "s3://bucket/x/none*")):
                self.assert_fails(self.there(server, "presto-load", "-q", "-p", self.pipeline_of(), url), 1, url, words)
            self.assertEqual(self.bodies(server, "s3://bucket"), [b"y"])

    def test_an_object_that_was_replaced_since_it_was_listed_is_an_error(self):
        with servers.Keys({f"x/{i}.txt": b"%d" % i for i in range(4)}) as server:
            def replace(handler):
                if handler.path == "/bucket/x/0.txt":
                    server.objects["x/2.txt"] = b"other"
            server.before = replace
            done = self.there(server, "presto-load", "-q", "-j", "0", "-p", self.pipeline_of(), "s3://bucket/x")
            self.assert_fails(done, 1, "s3://bucket/x/2.txt", "has changed since it was listed")

    def test_a_customers_key_is_sent_for_objects_alone(self):
        seen = set()
        with servers.Keys({"x/y.txt": b"y"}) as server:
            server.before = lambda handler: seen.add(("list-type" in handler.path, any("customer-key" in name.lower() for name in handler.headers)))
            self.records(server, "-p", self.pipeline_of(), "s3://bucket/x", PRESTO_S3_SSE_CUSTOMER_KEY=base64.b64encode(bytes(32)).decode())
        self.assertEqual(seen, {(True, False), (False, True)})

    def test_a_page_without_keys_is_not_the_last_one(self):
        objects = {f"x/{i:04}.txt": b"%04d" % i for i in range(30)}
        with servers.Keys(objects, most=10, twist=lambda xml, page: re.sub("<Contents>.*</Contents>", "", xml) if page == 1 else xml) as server:
            self.assertEqual(len(self.bodies(server, "s3://bucket/x")), 30)

    def test_a_web_server_is_not_listed(self):
        photos = self.make_photos()
        with servers.Files(self.folder) as server:
            done = run("presto-load", "-q", "-p", self.pipeline, f"{server.url}/{photos.name}", env=environment())
            self.assert_fails(done, 1, f"{server.url}/{photos.name}", "a web server does not list what is in a folder: name each file")
            names = sorted(photos.rglob("*.jpg"))[:5]
            done = run("presto-load", "-q", "-p", self.pipeline, *(f"{server.url}/{name.relative_to(self.folder)}" for name in names), env=environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout == self.load("-q", "-p", self.pipeline, *names))


def crc_text(content):
    return base64.b64encode(struct.pack(">I", crc32c(content))).decode()


class Checksums(Folders):
    """A dataset is verified by what the server says of its shards, if it says the right thing."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "resized", "-c", "none", "-s", "3")

    def verify(self, server, *arguments):
        server.requests.clear()
        done = run("presto-inspect", "verify", *arguments, f"{server.url}/{self.dataset.name}", env=environment())
        ranges = [path for command, path, wanted in server.requests if command == "GET" and ".tfrecord" in path and not path.endswith(".index")]
        return done, ranges

    def test_shards_whose_crc_is_right_are_not_read(self):
        here = run("presto-inspect", "verify", self.dataset).stdout.decode().splitlines()[-1]
        for headers_of in (lambda content: [("x-amz-checksum-crc32c", crc_text(content)), ("x-amz-checksum-type", "FULL_OBJECT")],
                           lambda content: [("x-goog-hash", "crc32c=" + crc_text(content)), ("x-goog-hash", "md5=AAAA")],
                           lambda content: [("x-goog-hash", f"crc32c={crc_text(content)},md5=AAAA")]):
            with servers.Files(self.folder) as server:
                server.headers_of = headers_of
                done, ranges = self.verify(server)
                self.assertEqual((done.returncode, done.stderr, ranges), (0, "", []))
                self.assertEqual(server.counts["HEAD"], 3)
                self.assertEqual(done.stdout.decode().splitlines(), [here, "3 files not read: CRC-32C and size are as the server says them (--records reads all)"])
                found = json.loads(self.verify(server, "--json")[0].stdout)
                self.assertEqual((found["files"], found["said_files"], found["faults"]), (3, 3, 0))
                done, ranges = self.verify(server, "--records")
                self.assertEqual((done.returncode, done.stdout.decode().splitlines()), (0, [here]))
                self.assertEqual(len(set(ranges)), 3)

    def test_shards_without_a_crc_of_all_bytes_are_read_and_it_is_said(self):
        here = run("presto-inspect", "verify", self.dataset).stdout
        for headers in ([], [("x-amz-checksum-crc32c", "AAAAAA==-3")], [("x-amz-checksum-crc32c", "AAAAAA=="), ("x-amz-checksum-type", "COMPOSITE")],
                        [("x-amz-checksum-crc32c", "AAAAAA")], [("x-goog-hash", "md5=AAAA")], [("x-amz-checksum-crc32c", "AAA!AA==")]):
            with servers.Files(self.folder) as server:
                server.headers_of = lambda content, headers=headers: headers
                done, ranges = self.verify(server)
                self.assertEqual((done.returncode, done.stdout), (0, here), headers)
                self.assertIn("3 files read whole: the server does not say a CRC-32C of all of their bytes", done.stderr)
                self.assertEqual(len(set(ranges)), 3)

    def test_what_is_damaged_there_is_read_and_reported(self):
        copy = self.new("damaged")
        shutil.copytree(self.dataset, copy)
        shard = sorted(copy.glob("*.tfrecord"))[1]
        content = bytearray(shard.read_bytes())
        content[20000] ^= 4
        shard.write_bytes(content)
        with servers.Files(self.folder) as server:
            server.headers_of = lambda content: [("x-amz-checksum-crc32c", crc_text(content)), ("x-amz-checksum-type", "FULL_OBJECT")]
            there = run("presto-inspect", "verify", f"{server.url}/{copy.name}", env=environment())
            self.assertEqual(there.returncode, 3, there.stderr)
            self.assertIn(f"{server.url}/{copy.name}/{shard.name}: ", there.stdout.decode())
            self.assertIn("2 files not read", there.stdout.decode())
            shard.unlink()
            there = run("presto-inspect", "verify", f"{server.url}/{copy.name}", env=environment())
            self.assertIn(shard.name, there.stdout.decode() + there.stderr)
            self.assertNotEqual(there.returncode, 0)


class Strict(Folders):
    """Before a server that checks each signature, also those of lists."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program, why = servers.versitygw()
        if program is None:
            raise unittest.SkipTest(why)
        cls.server = servers.S3(program, cls.folder / "store").__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        assert cls.server.send("PUT", "/bucket")[0] == 200

    def put(self, key, body):
        status, content = self.server.send("PUT", f"/bucket/{key}", body)
        self.assertEqual(status, 200, (key, content))

    def test_a_folder_of_photos_is_that_of_the_disk(self):
        photos = self.make_photos()
        for key, body in objects_of(photos).items():
            self.put(key, body)
        for url in ("s3://bucket/photos", "s3://bucket/photos/"):
            self.assertTrue(self.records(self.server, "-p", self.pipeline, "--shuffle", "full", url) == self.load("-q", "-p", self.pipeline, "--shuffle", "full", photos))

    def test_odd_keys(self):
        names = ["plain", "a b", "a+b", "a%41b", "ü/é", "日本", "&<>\"'", "~*", "a?b=c", "a:b@c", "-dash", "a!/x", "a/x", "a0/x"]
        for name in names:
            self.put(f"dt=2026/{name}", name.encode())
        self.assertEqual(self.bodies(self.server, "s3://bucket/dt=2026"), sorted(name.encode() for name in names))

    def test_more_keys_than_a_page_has(self):
        folder = self.folder / "store" / "bucket" / "many"
        for c in range(4):
            (folder / str(c)).mkdir(parents=True)
            for i in range(600):
                (folder / str(c) / f"{i:04}.txt").write_text(f"{c}{i:04}")
        self.assertTrue(self.bodies(self.server, "s3://bucket/many") == [f"{c}{i:04}".encode() for c in range(4) for i in range(600)])

    def test_verify_without_reading(self):
        dataset = self.write("-u", "resized", "-c", "none", "-s", "3")
        for with_crc in (False, True):
            for file in dataset.iterdir():
                content = file.read_bytes()
                more = {"x-amz-checksum-crc32c": crc_text(content)} if with_crc else {}
                status, answer = self.server.send("PUT", f"/bucket/set-{with_crc}/{file.name}", content, **more)
                self.assertEqual(status, 200, answer)
            done = self.there(self.server, "presto-inspect", "verify", f"s3://bucket/set-{with_crc}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("3 files not read" in done.stdout.decode(), with_crc, done.stdout)
            self.assertEqual("3 files read whole" in done.stderr, not with_crc, done.stderr)


if __name__ == "__main__":
    main()
