#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gs:// and hf:// before servers of our own that check what they are asked: who asks, what is followed, and objects that change."""
import base64
import json
import os
import shutil
import struct
import subprocess
import threading
import unittest

import servers
from cli import Case, crc32c, example, frames, main, run
from cloud_servers import WEB_TOKEN, FakeGcs, Google, Hub, fake_gcs_server



def environment(**more):
    """Without the caller's own credentials and proxies; and no machine's metadata is asked."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("AWS_", "GOOGLE_", "GCE_", "CLOUDSDK_", "HF_", "HUGGING_FACE_", "STORAGE_EMULATOR"))
            and name.lower() not in ("http_proxy", "https_proxy", "all_proxy", "xdg_cache_home")}
    return {**kept, "no_proxy": "127.0.0.1,localhost", "NO_GCE_CHECK": "true", **more}


class Cloud(Case):
    ORDERS = ([], ["--shuffle", "full", "--seed", "7", "-e", "2", "-j", "4"], ["--shuffle", "blocks:8", "--seed", "3", "-j", "3"])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "resized", "-c", "none", "-s", "3")

    def setUp(self):
        self.home = self.new("home")
        self.home.mkdir()

    def assert_reads(self, url, orders=ORDERS[:1], **variables):
        for order in orders:
            done = run("presto-load", "-q", *order, url, env=environment(HOME=str(self.home), **variables))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout == self.load("-q", *order, self.dataset), "another stream")

    def stream(self, *arguments, **variables):
        done = run("presto-load", "-q", *arguments, env=environment(HOME=str(self.home), **variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def bodies(self, path, **variables):
        """What the files there hold, in order."""
        pipeline = self.new("any.yaml")
        pipeline.write_text("name: any\nsource: {type: files, match: ['*'], label: none}\nsteps:\n  - {step: read-file, yields: concatenated}\n")
        return [example(record)["image"][0] for record in frames(self.stream("-p", pipeline, path, **variables))]

    def assert_lists_the_folder(self, url, folder, **variables):
        """Photos in their folders, by classes, orders, ranks and patterns."""
        for arguments in ([], ["--shuffle", "full", "--seed", "7", "-e", "2"], ["--world", "3", "--rank", "1"]):
            here = self.load("-q", "-p", self.pipeline, *arguments, folder)
            for there in (url, url + "/"):
                self.assertTrue(self.stream("-p", self.pipeline, *arguments, there, **variables) == here, (arguments, there))
        for pattern in ("*/*.jpg", "*[0-9]", "*/*[02468].jpg"):
            names = sorted(folder.glob(pattern))
            self.assertTrue(self.stream("-p", self.pipeline, f"{url}/{pattern}", **variables) == self.load("-q", "-p", self.pipeline, *names), pattern)

    def assert_refused(self, url, *parts, code=1, **variables):
        done = run("presto-load", "-q", url, env=environment(HOME=str(self.home), **variables))
        self.assert_fails(done, code, *parts)
        for secret in ("refresh-1", "client-secret", "PRIVATE KEY", WEB_TOKEN, "ya29.", "hf_secret"):
            self.assertNotIn(secret, done.stderr)
        return done


class GoogleStorage(Cloud):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bucket = cls.folder.parent / cls.folder.name.lower()
        if cls.bucket != cls.folder:  # buckets have small letters
            cls.bucket.symlink_to(cls.folder)
            cls.addClassCleanup(cls.bucket.unlink)
        cls.url = f"gs://{cls.bucket.name}/{cls.dataset.name}"

    def setUp(self):
        super().setUp()
        self.server = Google(self.folder.parent).__enter__()
        self.addCleanup(self.server.__exit__)
        self.token_url = f"{self.server.url}/token"
        self.here = {"STORAGE_EMULATOR_HOST": self.server.url}

    def file(self, **members):
        file = self.new("credentials.json")
        file.write_text(json.dumps(members))
        return str(file)

    def user(self, **more):
        return {"type": "authorized_user", "client_id": "id", "client_secret": "client-secret", "refresh_token": "refresh-1",
                "token_uri": self.token_url, **more}

    def test_the_stream_is_that_of_the_folder(self):
        self.assert_reads(self.url, self.ORDERS, **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user()))
        self.assertEqual(self.server.asked, ["refresh_token"] * len(self.ORDERS))  # one token a process
        self.assertTrue(any(self.server.sent))

    def test_folders_are_listed(self):
        photos = self.make_photos()
        url, variables = f"gs://{self.bucket.name}/{photos.name}", {**self.here, "GOOGLE_APPLICATION_CREDENTIALS": self.file(**self.user())}
        self.assert_lists_the_folder(url, photos, **variables)
        self.server.most = 5
        self.server.lists.clear()
        self.assertTrue(self.stream("-p", self.pipeline, url, **variables) == self.load("-q", "-p", self.pipeline, photos))
        self.assertGreater(len(self.server.lists), 4)
        self.assertTrue(any("continuation-token" in query for query in self.server.lists))

    def test_a_bucket_that_is_not_there_and_a_folder_without_keys(self):
        variables = {**self.here, "GOOGLE_APPLICATION_CREDENTIALS": self.file(**self.user())}
        self.assert_refused("gs://nobodys-bucket/x/", "gs://nobodys-bucket/x/", "NoSuchBucket", "request id upload-1", **variables)
        self.assert_refused(f"gs://{self.bucket.name}/nothing-here", "no such object", **variables)

    def test_what_was_replaced_since_it_was_listed_is_an_error(self):
        folder = self.new("changing-files")
        folder.mkdir()
        for i in range(4):
            (folder / f"{i}.jpg").write_bytes(next(self.make_photos().rglob("*.jpg")).read_bytes())

        def replace(handler):
            if handler.path.endswith("/0.jpg"):
                os.utime(folder / "2.jpg", (1, 1))

        self.server.before = replace
        done = run("presto-load", "-q", "-j", "0", "-p", self.pipeline, f"gs://{self.bucket.name}/{folder.name}",
                   env=environment(HOME=str(self.home), **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user())))
        self.assert_fails(done, 1, f"{folder.name}/2.jpg", "has changed since it was listed")

    def test_shards_are_verified_by_their_checksums(self):
        self.server.headers_of = lambda content: [("x-goog-hash", "crc32c=" + base64.b64encode(struct.pack(">I", crc32c(content))).decode())]
        done = run("presto-inspect", "verify", self.url,
                   env=environment(HOME=str(self.home), **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user())))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 files not read", done.stdout.decode())

    def test_the_place_names_the_provider_and_shows_no_token(self):
        done = run("presto-inspect", "place", "--json", self.url,
                   env=environment(HOME=str(self.home), **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user())))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["kind"], found["provider"], found["endpoint"], found["region"]),
                         ("gs", "application default credentials", self.server.url, None))
        self.assertEqual(found["key"][:7], "ya29...")
        self.assertNotIn(next(iter(self.server.tokens)), done.stdout.decode())

    def test_the_place_says_as_json_what_was_found_before_a_failure(self):
        done = run("presto-inspect", "place", "--json", f"gs://{self.bucket.name}/none",
                   env=environment(HOME=str(self.home), **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user())))
        self.assertEqual(done.returncode, 1)
        found = json.loads(done.stdout)
        self.assertEqual((found["provider"], found["round_trip_s"]), ("application default credentials", None))
        self.assertIn("no such object", found["failure"])
        self.assertIn("no such object", done.stderr)

    def test_the_login_of_gcloud(self):
        folder = self.home / ".config" / "gcloud"
        folder.mkdir(parents=True)
        (folder / "application_default_credentials.json").write_text(json.dumps(self.user()))
        self.assert_reads(self.url, **self.here)
        self.assert_refused(self.url, "no credentials for Google Cloud", "PRESTO_GS_ANONYMOUS=1", code=2, **self.here, CLOUDSDK_CONFIG=str(self.home))
        self.assert_refused(self.url, "401 AuthenticationRequired", **self.here, PRESTO_GS_ANONYMOUS="1")

    @unittest.skipIf(shutil.which("openssl") is None, "it needs the program openssl, which checks signatures")
    def test_a_service_account_signs_for_itself(self):
        private, public = self.new("private"), self.new("public")
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", private], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
        self.server.public_key = public
        account = {"type": "service_account", "client_email": "me@project", "private_key_id": "key-1", "private_key": private.read_text(),
                   "token_uri": self.token_url}
        self.assert_reads(self.url, **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**account))
        other = {"type": "impersonated_service_account", "source_credentials": account,
                 "service_account_impersonation_url": f"{self.server.url}/v1/projects/-/serviceAccounts/x:generateAccessToken"}
        self.assert_reads(self.url, **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**other))
        self.assertEqual(self.server.asked, ["jwt-bearer", "jwt-bearer", "impersonate"])
        self.assert_refused(self.url, "private key is none", code=2, **self.here,
                            GOOGLE_APPLICATION_CREDENTIALS=self.file(**{**account, "private_key": "-----BEGIN PRIVATE KEY-----\nx"}))
        self.assert_refused(self.url, "have no client_email", code=2, **self.here,
                            GOOGLE_APPLICATION_CREDENTIALS=self.file(**{**account, "client_email": ""}))

    def test_an_external_account(self):
        text, table = self.new("token"), self.new("token.json")
        text.write_text(WEB_TOKEN + "\n")
        table.write_text(json.dumps({"id_token": WEB_TOKEN}))
        account = {"type": "external_account", "audience": "//iam/pool", "subject_token_type": "jwt", "token_url": self.token_url}
        other = {"service_account_impersonation_url": f"{self.server.url}/v1/x:generateAccessToken"}
        for source in ({"file": str(text)}, {"file": str(table), "format": {"type": "json", "subject_token_field_name": "id_token"}}):
            for more in ({}, other):
                self.assert_reads(self.url, **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**account, credential_source=source, **more))
        self.assertEqual(self.server.asked, ["token-exchange", "token-exchange", "impersonate"] * 2)
        self.assert_refused(self.url, "not in a file", **self.here,
                            GOOGLE_APPLICATION_CREDENTIALS=self.file(**account, credential_source={"url": "http://169.254.169.254/"}))

    def test_the_metadata_server(self):
        variables = {**self.here, "NO_GCE_CHECK": "", "GCE_METADATA_HOST": self.server.url.partition("://")[2]}
        self.assert_reads(self.url, **variables)
        self.assertEqual(self.server.asked, ["metadata"])
        self.assert_refused(self.url, "no HOST", code=2, **{**variables, "GCE_METADATA_HOST": "evil/x"})

    def test_what_is_wrong_is_said_and_no_secret_is_sent_in_clear_text(self):
        for members, part, code in (({"type": "x"}, "'x' are not supported", 1), (self.user(refresh_token=""), "have no refresh_token", 2),
                                    (self.user(client_id="other"), "answered 400", 1), (self.user(token_uri="http://example.org/token"), "no https:// URL", 2),
                                    (self.user(token_uri="https://me@example.org/token"), "no https:// URL", 2)):
            self.assert_refused(self.url, part, code=code, **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**members))
        for host in ("http://emulator.invalid", "emulator.invalid:4443", "http://127.0.0.1.invalid"):
            self.assert_refused(self.url, "no https:// URL", "PRESTO_GS_ANONYMOUS=1", STORAGE_EMULATOR_HOST=host, code=2,
                                GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user()))
        self.assert_refused(self.url, "is not there", code=2, **self.here, GOOGLE_APPLICATION_CREDENTIALS=str(self.new()))
        self.assert_refused("gs://b", "gs://BUCKET/KEY", code=2)
        self.assert_refused("gs://bucket/x", "STORAGE_EMULATOR_HOST is no", code=2, STORAGE_EMULATOR_HOST="http://me@host")

    def test_a_token_that_is_not_taken_any_more_is_got_anew_once(self):
        def revoke(handler):
            if handler.path.endswith("dataset.json"):
                for token in list(self.server.tokens)[:1]:
                    self.server.tokens[token] = 0

        self.server.before = revoke
        self.assert_reads(self.url, **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user()))
        self.assertEqual(self.server.asked, ["refresh_token"] * 2)

    def test_an_object_that_is_replaced_meanwhile_is_an_error_with_its_name(self):
        copy = self.new("changing")
        shutil.copytree(self.dataset, copy)
        shard = sorted(copy.glob("*.tfrecord"))[1]
        asked = []

        def replace(handler):
            if handler.path.endswith(shard.name):
                asked.append(handler.headers.get("x-goog-if-generation-match"))
                if len(asked) == 1:  # with the bytes of its beginning, it is open
                    os.utime(shard, (1, 1))

        self.server.before = replace
        done = run("presto-load", "-q", f"gs://{self.bucket.name}/{copy.name}",
                   env=environment(HOME=str(self.home), **self.here, GOOGLE_APPLICATION_CREDENTIALS=self.file(**self.user())))
        self.assert_fails_midway(done, shard.name)

    def assert_fails_midway(self, done, name):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(name, done.stderr)
        self.assertIn("has been replaced or changed while in use", done.stderr)
        self.assertTrue(self.load("-q", self.dataset).startswith(done.stdout))


class FakeGoogle(Cloud):
    """Before a server that others have written."""

    PREFIX = "dt=2026-01-31/a+b c/(ü)&x=~'1'"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program, why = fake_gcs_server()
        if why is not None:
            raise unittest.SkipTest(f"fake-gcs-server is not built: {why}")
        files = cls.folder / "buckets" / "bucket" / cls.PREFIX
        shutil.copytree(cls.dataset, files)
        shutil.copytree(cls.make_photos(), cls.folder / "buckets" / "bucket" / "photos")
        cls.server = FakeGcs(program, cls.folder / "buckets").__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.here = {"STORAGE_EMULATOR_HOST": cls.server.url, "PRESTO_GS_ANONYMOUS": "1"}

    def test_the_stream_is_that_of_the_folder(self):
        self.assert_reads(f"gs://bucket/{self.PREFIX}", self.ORDERS, **self.here)

    def test_folders_are_listed(self):
        self.assert_lists_the_folder("gs://bucket/photos", self.make_photos(), **self.here)

    def test_what_is_not_there(self):
        self.assert_refused("gs://bucket/none", "no such object", **self.here)

    def test_an_object_that_was_replaced_has_another_generation(self):
        shard = sorted(self.dataset.glob("*.tfrecord"))[0]
        name = f"changing/{shard.name}"
        self.server.put("bucket", name, shard.read_bytes())
        with servers.Faulty(self.server.url, [], rate=0) as proxy:
            serve, asked = proxy.serve, []

            def replace(handler):
                if handler.path.endswith(shard.name) and handler.headers.get("Range") != "bytes=0-0":
                    asked.append(handler.headers.get("x-goog-if-generation-match"))
                    if len(asked) == 2:  # it is open, and its records are read now
                        self.server.put("bucket", name, shard.read_bytes())
                handler.headers.replace_header("Host", self.server.url.partition("://")[2])  # by which it tells its interfaces apart
                serve(handler)

            proxy.serve = replace
            done = run("presto-load", "-q", "--format", "null", f"gs://bucket/{name}",
                       env=environment(HOME=str(self.home), **{**self.here, "STORAGE_EMULATOR_HOST": proxy.url}))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"gs://bucket/{name}", done.stderr)
        self.assertIn("has been replaced or changed while in use", done.stderr)
        self.assertRegex(asked[1] or "", r"^\d+$")


class HuggingFace(Cloud):
    URL = "hf://datasets/me/mine/data"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tree = cls.folder / "hub"
        for commit in Hub.COMMITS.values():
            shutil.copytree(cls.dataset, cls.tree / commit / "data")
            shutil.copytree(cls.make_photos(), cls.tree / commit / "photos")
            for name in ("a b+c%41/ü.txt", "a b+c%41/x&y=z#.txt", "top.txt", ".gitattributes", ".hidden/x.txt", "a b+c%41/large.tfrecord"):
                file = cls.tree / commit / "odd" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"{name} at {commit}")

    def setUp(self):
        super().setUp()
        self.hub = Hub(self.tree).__enter__()
        self.addCleanup(self.hub.__exit__)
        self.here = {"HF_ENDPOINT": self.hub.url}

    def test_the_stream_is_that_of_the_folder(self):
        self.assert_reads(self.URL, self.ORDERS, **self.here)
        for revision in ("v1.0", "refs%2Fpr%2F1", "c" * 40):
            self.assert_reads(f"hf://datasets/me/mine@{revision}/data", **self.here)

    def test_folders_are_listed(self):
        self.hub.token = "hf_secret"
        for self.hub.most in (1000, 3):
            self.assert_lists_the_folder("hf://datasets/me/mine/photos", self.make_photos(), **self.here, HF_TOKEN="hf_secret")
        self.assertFalse(any(kind == "store" and has_token for kind, _, has_token in self.hub.seen))

    def test_odd_names_and_a_repository_as_a_whole(self):
        names = ["a b+c%41/large.tfrecord", "a b+c%41/x&y=z#.txt", "a b+c%41/ü.txt", "top.txt"]
        for revision, commit in (("", "a" * 40), ("@v1.0", "b" * 40), ("@refs%2Fpr%2F1", "c" * 40), (f"@{'c' * 40}", "c" * 40)):
            self.assertEqual(self.bodies(f"hf://datasets/me/mine{revision}/odd", **self.here), [f"{name} at {commit}".encode() for name in names])
        here = self.load("-q", "-p", self.pipeline, self.tree / ("a" * 40))
        for url in ("hf://datasets/me/mine", "hf://datasets/me/mine/"):
            self.assertTrue(self.stream("-p", self.pipeline, url, **self.here) == here)

    def test_a_branch_is_asked_for_once_and_lists_are_of_its_commit(self):
        moved = dict(Hub.COMMITS)

        def move(handler):
            if "/revision/" in handler.path or "/resolve/" in handler.path:
                moved.update(main="d" * 40, before="a" * 40)

        self.hub.COMMITS, self.hub.before = moved, move
        self.hub.most = 2
        url = "hf://datasets/me/mine/odd/"
        self.assertEqual(len(self.bodies(url, **self.here)), 4)
        asked = [path for kind, path, _ in self.hub.seen if kind == "hub"]
        self.assertEqual(len([path for path in asked if path.startswith("/api/datasets/me/mine/revision/main")]), 1, asked)
        self.assertEqual({path.split("/")[6] for path in asked if path.startswith("/api/datasets/me/mine/tree/")}, {"a" * 40})

    def test_lists_that_are_not_whole_are_errors(self):
        def link_to(words):
            return lambda entries, link: (entries, f"<{self.hub.url}/api/datasets/me/mine/tree/x?{words}>; rel=\"next\"")

        def change(**members):
            return lambda entries, link: ([{**entry, **members} for entry in entries], link)

        for twist, words in (
                (link_to("recursive=true"), "the next page has no cursor"), (link_to("cursor=MA%3D%3D"), "goes on where it has been"),
                (link_to("cursor=a\"b"), "the next page has no cursor"), (link_to("cursor=" + "x" * 4096), "has more than 4096 bytes"),
                (lambda entries, link: (b"[{", link), "it is no JSON"), (lambda entries, link: (b"{}", link), "it is no list"),
                (change(path="odd/../../x"), "is no path"), (change(path="/odd/x"), "is no path"), (change(path="other/x"), "which was not asked for"),
                (change(path="odd"), "which was not asked for"), (change(type="file", size=-1), "has no size"), (change(type="file", size="1"), "has no size"),
                (change(path=3), "no path"), (change(path="odd/" + "x" * 5000), "a path has 5004 bytes"),
                (lambda entries, link: (b"[" + b"0," * (1 << 22) + b"0]", link), "more than")):
            self.hub.twist = twist
            self.assert_refused("hf://datasets/me/mine/odd/", "hf://datasets/me/mine/odd/", words, **self.here)

    def test_servers_that_fail_while_listing(self):
        names = 4
        for seed in range(2):
            with servers.Faulty(self.hub.url, ["503", "500", "reset", "cut", "silent"], rate=0.4, seed=seed, only="/api/") as proxy:
                self.hub.most = 1
                self.hub.twist = lambda entries, link: (entries, link)
                self.assertEqual(len(self.bodies("hf://datasets/me/mine/odd", HF_ENDPOINT=proxy.url)), names)
                self.assertGreater(sum(proxy.counts[kind] for kind in proxy.kinds), 0)

    def test_the_token_goes_to_the_hub_and_never_to_the_store(self):
        self.hub.token = "hf_secret"
        self.assert_refused(self.URL, "401", **self.here)
        self.assert_reads(self.URL, **self.here, HF_TOKEN="hf_secret")
        folder = self.home / ".cache" / "huggingface"
        folder.mkdir(parents=True)
        (folder / "token").write_text("hf_secret\n")
        self.assert_reads(self.URL, **self.here)
        self.assert_reads(self.URL, **self.here, HF_HUB_DISABLE_IMPLICIT_TOKEN="0")
        for yes in ("1", "True"):
            self.assert_refused(self.URL, "401", **self.here, HF_HUB_DISABLE_IMPLICIT_TOKEN=yes)
            self.assert_refused(self.URL, "401", **self.here, HF_HUB_DISABLE_IMPLICIT_TOKEN=yes, HF_TOKEN="hf_secret")
        self.assert_refused(self.URL, "control character", code=2, **self.here, HF_TOKEN="hf_secret\r\nX: 1")
        self.assertTrue(any(kind == "store" for kind, *_ in self.hub.seen))
        self.assertFalse(any(kind == "store" and has_token for kind, _, has_token in self.hub.seen))

    def test_a_branch_that_moves_does_not_mix_revisions(self):
        moved = dict(Hub.COMMITS)

        def move(handler):
            moved.update(main="d" * 40, before="a" * 40)  # it is not there: whoever asks for the branch again fails

        self.hub.COMMITS = moved
        self.hub.before = move
        self.assert_reads(self.URL, **self.here)
        asked = [path for kind, path, _ in self.hub.seen if kind == "hub" and "/resolve/" in path]
        self.assertEqual({path.rpartition("/")[2] for path in asked if "/resolve/main/" in path}, {"dataset.json"})
        self.assertGreater(len([path for path in asked if f"/resolve/{'a' * 40}/" in path]), 3)

    # A request may be refused as often as there are short-lived addresses, however requests beside it use them up: not more often than
    # it asks again.
    def test_an_address_of_the_store_that_has_expired_is_got_anew(self):
        self.hub.lasts, self.hub.short_lived = 1, 4
        for order in self.ORDERS:
            self.hub.given.clear()
            self.assert_reads(self.URL, [order], **self.here)
        self.assertGreater(len(self.hub.addresses), 9)

    def test_requests_that_are_refused_together_get_one_address_anew(self):
        self.hub.lasts, self.hub.short_lived, self.hub.refusal = 1, 4, threading.Condition()
        for order in (["--shuffle", "full", "--seed", "1", "-j", "8", "-e", "8"], ["--shuffle", "blocks:2", "--seed", "1", "-j", "8", "-e", "4"]):
            self.hub.given.clear()
            self.assert_reads(self.URL, [order], **self.here)

    def test_a_list_goes_on_whatever_other_links_there_are(self):
        self.hub.most, self.hub.more_headers = 2, (("Link", "</style.css>; rel=preload"), ("link", "<x>; rel=\"canonical\""))
        self.assertEqual(len(self.bodies("hf://datasets/me/mine/odd", **self.here)), 4)

    def test_only_stores_of_the_hub_are_followed(self):
        for place in ("https://example.org/x", "http://169.254.169.254/latest", "file:///etc/passwd", "//example.org/x", "https://hf.co.example.org/x",
                      "http://cdn.hf.co/x", "https://me@cdn.hf.co/x"):
            self.hub.elsewhere = place
            self.assert_refused(self.URL, "answered 302 and points to", f"'{place}':", **self.here, HF_TOKEN="hf_secret")
        self.hub.elsewhere = "https://example.org/x?signature=0123456789"
        done = self.assert_refused(self.URL, "points to 'https://example.org/x' (and a query):", **self.here)
        self.assertNotIn("0123456789", done.stderr)  # who has it may read

    def test_the_place_names_hub_and_token_and_shows_none(self):
        self.hub.token = "hf_secret_token"
        done = run("presto-inspect", "place", self.URL, env=environment(HOME=str(self.home), **self.here, HF_TOKEN="hf_secret_token"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("hf_s...oken of token\n", done.stdout.decode())
        self.assertNotIn("hf_secret", done.stdout.decode())
        self.assertIn(f"  endpoint    {self.hub.url}\n", done.stdout.decode())

    def test_names_and_what_is_not_there(self):
        for path in ("hf://datasets/mine", "hf://models/me/mine/x", "hf://datasets/me/../x", "hf://datasets/me/mine@/x", "hf://datasets/me/mi ne/x"):
            self.assert_refused(path, "hf://datasets/OWNER/NAME/FILE", code=2, **self.here)
        self.assert_refused("hf://datasets/me/mine/none", "no such object", **self.here)
        self.assert_refused("hf://datasets/me/mine@gone/data", "no such object", **self.here)
        self.assert_refused("hf://datasets/me/other", "hf://datasets/me/other", "no such object", **self.here)
        self.assert_refused("hf://datasets/me/mine/none*", "hf://datasets/me/mine/none*", **self.here)
        self.assert_refused(self.URL, "no https:// URL", code=2, HF_ENDPOINT="http://example.org")


if __name__ == "__main__":
    main()
