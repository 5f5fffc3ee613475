#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who asks S3: each provider of keys before a server that checks what it is asked, and keys that expire under a run."""
import hashlib
import json
import os
import socket
import stat
import sys
import time

from cli import Case, main, run
from cloud_servers import AGENT_TOKEN, STATIC, WEB_TOKEN, Cloud, text_of

ROLE, OUTER = "arn:aws:iam::123456789012:role/reader", "arn:aws:iam::123456789012:role/outer"
NO_METADATA = {"AWS_EC2_METADATA_DISABLED": "true"}


def environment(**more):
    """Without the caller's own keys, profiles and proxies; and no machine's metadata is asked."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("AWS_", "GOOGLE_", "GCE_", "CLOUDSDK_", "HF_")) and name.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
    return {**kept, **NO_METADATA, "no_proxy": "127.0.0.1", **more}


class Credentials(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dataset = cls.write("-u", "resized", "-c", "none", "-s", "3")
        cls.url = f"s3://{cls.folder.name}/{cls.dataset.name}"
        cls.whole = run("presto-load", "-q", cls.dataset).stdout

    def setUp(self):
        self.home = self.new("home")
        (self.home / ".aws").mkdir(parents=True)
        self.cloud = Cloud(self.folder.parent).__enter__()
        self.addCleanup(self.cloud.__exit__)
        self.cloud.roles = {ROLE: None}

    def variables(self, **more):
        url = self.cloud.url
        named = {"HOME": str(self.home), "AWS_ENDPOINT_URL_S3": url, "AWS_ENDPOINT_URL_STS": url, "AWS_ENDPOINT_URL_SSO": url,
                 "AWS_ENDPOINT_URL_SSO_OIDC": url}
        return environment(**{**named, **more})

    def config(self, text, credentials=""):
        (self.home / ".aws" / "config").write_text(text)
        (self.home / ".aws" / "credentials").write_text(credentials)

    def assert_reads(self, *options, **variables):
        done = run("presto-load", "-q", *options, self.url, env=self.variables(**variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout == self.whole, "another stream")
        return done

    def assert_refused(self, *parts, code=2, **variables):
        done = run("presto-load", "-q", self.url, env=self.variables(**variables))
        self.assert_fails(done, code, *parts)
        for secret in (STATIC[1], WEB_TOKEN, AGENT_TOKEN, "refresh-1", "client-secret", "sso-1", "imds-"):
            self.assertNotIn(secret, done.stderr)
        for access in self.cloud.given:
            self.assertNotIn(self.cloud.keys[access][0], done.stderr)
        return done.stderr

    def names_asked(self):
        return [entry[0] for entry in self.cloud.asked]


class Static(Credentials):
    def test_keys_of_the_environment_and_of_both_files(self):
        self.assert_reads(AWS_ACCESS_KEY_ID=STATIC[0], AWS_SECRET_ACCESS_KEY=STATIC[1])
        lines = f"aws_access_key_id = {STATIC[0]}\naws_secret_access_key = {STATIC[1]}\n"
        self.config("", f"[default]\n{lines}")
        self.assert_reads()
        self.config(f"[profile 'of mine']\n{lines}")
        self.assert_reads(AWS_PROFILE="of mine")
        self.config("[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n", f"[default]\n{lines}")
        self.assert_reads()
        self.assertEqual(self.cloud.asked, [])

    def test_files_that_cannot_be_there_are_passed_over(self):
        keys = {"AWS_ACCESS_KEY_ID": STATIC[0], "AWS_SECRET_ACCESS_KEY": STATIC[1]}
        self.assert_reads(**keys, AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null")
        self.assert_reads(**keys, HOME="/dev/null")
        self.assert_refused("not a regular file", code=1, AWS_CONFIG_FILE="/dev/zero", **keys)

    def test_keys_that_are_wrong_are_said_and_not_shown(self):
        self.assert_refused("403 SignatureDoesNotMatch", code=1, AWS_ACCESS_KEY_ID=STATIC[0], AWS_SECRET_ACCESS_KEY="wrong-secret")
        self.assert_refused("403 InvalidAccessKeyId", code=1, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="wrong-secret")
        self.assert_refused("AWS_CREDENTIAL_EXPIRATION is 'soon'", AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y", AWS_CREDENTIAL_EXPIRATION="soon")
        self.assert_refused("environment gives have expired", code=1, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y",
                            AWS_CREDENTIAL_EXPIRATION="2020-01-01T00:00:00Z")

    def test_keys_that_somebody_else_replaces_in_the_file_under_a_run(self):
        access, secret, token, _ = self.cloud.give()

        def replace(handler):
            if handler.path.endswith("dataset.json"):  # open now; from here on, other keys stand in the file
                self.cloud.keys[access] = (secret, token, time.time() - 1)
                new = self.cloud.give()
                self.config("", f"[default]\naws_access_key_id={new[0]}\naws_secret_access_key={new[1]}\naws_session_token={new[2]}\n")

        self.config("", f"[default]\naws_access_key_id={access}\naws_secret_access_key={secret}\naws_session_token={token}\n")
        self.cloud.before = replace
        self.assert_reads()
        self.assertIn("ExpiredToken", self.cloud.refused)


class Roles(Credentials):
    KEYS = f"[base]\naws_access_key_id = {STATIC[0]}\naws_secret_access_key = {STATIC[1]}\n"

    def test_a_role_for_the_keys_of_another_profile(self):
        self.cloud.roles = {ROLE: "outside"}
        self.config(f"[profile role]\nrole_arn = {ROLE}\nsource_profile = base\nexternal_id = outside\nrole_session_name = run/1 \n"
                    "duration_seconds = 1800\nregion = eu-central-1\n", self.KEYS)
        self.assert_reads(AWS_PROFILE="role")
        (_, action, form), = self.cloud.asked
        self.assertEqual(action, "AssumeRole")
        self.assertEqual((form["ExternalId"], form["RoleSessionName"], form["DurationSeconds"]), ("outside", "run/1", "1800"))

    def test_a_chain_of_roles(self):
        self.cloud.roles = {ROLE: None, OUTER: None}
        self.config(f"[profile inner]\nrole_arn = {ROLE}\nsource_profile = outer\n[profile outer]\nrole_arn = {OUTER}\nsource_profile = base\n",
                    self.KEYS)
        self.assert_reads(AWS_PROFILE="inner")
        self.assertEqual([form["RoleArn"] for _, _, form in self.cloud.asked], [OUTER, ROLE])
        self.assertRegex(self.cloud.asked[0][2]["RoleSessionName"], r"^presto-session-\d+$")

    def test_a_profile_may_name_itself_if_it_has_keys(self):
        self.config(f"[default]\nrole_arn = {ROLE}\nsource_profile = default\n{self.KEYS.split(chr(10), 1)[1]}")
        self.assert_reads()
        self.assertEqual(self.names_asked(), ["sts"])

    def test_credential_sources(self):
        url = self.cloud.url
        keys = {"AWS_ACCESS_KEY_ID": STATIC[0], "AWS_SECRET_ACCESS_KEY": STATIC[1]}
        agent = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN": AGENT_TOKEN}
        instance = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": url}
        for source, variables, asked in (("EcsContainer", agent, ["agent", "sts"]),
                                         ("Ec2InstanceMetadata", instance, ["metadata"] * 3 + ["sts"])):
            self.cloud.asked.clear()
            self.config(f"[profile role]\nrole_arn = {ROLE}\ncredential_source = {source}\n")
            self.assert_reads(AWS_PROFILE="role", **variables)
            self.assertEqual(self.names_asked(), asked)
        self.config(f"[profile role]\nrole_arn = {ROLE}\ncredential_source = Environment\n")
        self.assert_refused("AWS_ACCESS_KEY_ID is not", AWS_PROFILE="role", AWS_SECRET_ACCESS_KEY="x")
        self.assert_refused("'Environment' of the profile 'role' has no keys", AWS_PROFILE="role")
        self.cloud.asked.clear()
        self.assert_reads(AWS_PROFILE="role", **keys)  # keys of the environment go before any profile
        self.assertEqual(self.cloud.asked, [])

    def test_what_is_wrong_with_a_role_is_said(self):
        self.config(f"[profile a]\nrole_arn = {ROLE}\nsource_profile = b\n[profile b]\nrole_arn = {ROLE}\nsource_profile = a\n"
                    f"[profile none]\nrole_arn = {ROLE}\n[profile both]\nrole_arn = x\nsource_profile = a\ncredential_source = Environment\n"
                    f"[profile gone]\nrole_arn = x\nsource_profile = nobody\n[profile empty]\nrole_arn = x\nsource_profile = plain\n"
                    f"[profile plain]\nregion = us-east-1\n[profile mfa]\nrole_arn = x\nsource_profile = base\nmfa_serial = y\n"
                    f"[profile odd]\nrole_arn = x\nsource_profile = base\nduration_seconds = 1h\n"
                    f"[profile other]\nrole_arn = {OUTER}\nsource_profile = base\n", self.KEYS)
        for profile, part in (("a", "name each other"), ("none", "neither source_profile"), ("both", "both source_profile"),
                              ("gone", "'nobody', which is not there"), ("empty", "'plain' of the profile 'empty' has no keys"),
                              ("odd", "'1h', which is no number")):
            self.assert_refused(part, AWS_PROFILE=profile)
        self.assert_refused("mfa_serial", code=1, AWS_PROFILE="mfa")
        self.assert_refused("STS (127.0.0.1) answered 403", "AccessDenied", code=1, AWS_PROFILE="other")

    def test_an_answer_that_repeats_the_token_is_shown_without_it(self):
        token, secret = self.new("token"), "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"
        token.write_text(secret)
        self.cloud.sts = lambda handler, body: handler.answer(400, [], b"<Message>(" + body[-40:] + b") of "
                                                              + secret.encode() + b" for " + ROLE.encode() + b".</Message>")
        said = self.assert_refused("STS (127.0.0.1) answered 400", f"... for {ROLE}.", code=1, AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ROLE_ARN=ROLE)
        for part in secret.split("."):
            self.assertNotIn(part, said)

    def test_keys_that_would_be_lines_of_their_own_are_refused(self):
        token = self.new("token")
        token.write_text(WEB_TOKEN)
        given = self.cloud.give
        for end in ("&#13;&#10;X-Evil: 1", "&#10;", " x", "&#127;"):
            self.cloud.give = lambda: (lambda made: (*made[:2], made[2] + end, made[3]))(given())
            self.assert_refused("STS gives keys with spaces or control characters", code=1,
                                AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ROLE_ARN=ROLE)
        self.assert_refused("x-amz-security-token would have a line's end", AWS_ACCESS_KEY_ID=STATIC[0], AWS_SECRET_ACCESS_KEY=STATIC[1],
                            AWS_SESSION_TOKEN="x\r\nX-Evil: 1")

    def test_web_identity(self):
        token = self.new("token")
        token.write_text(WEB_TOKEN + "\n")
        self.assert_reads(AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ROLE_ARN=ROLE, AWS_ROLE_SESSION_NAME="pod")
        self.assertEqual((self.cloud.asked[0][1], self.cloud.asked[0][2]["RoleSessionName"]), ("AssumeRoleWithWebIdentity", "pod"))
        self.config(f"[profile web]\nrole_arn = {ROLE}\nweb_identity_token_file = {token}\n[profile chained]\nrole_arn = {ROLE}\nsource_profile = web\n")
        self.assert_reads(AWS_PROFILE="web")
        self.cloud.asked.clear()
        self.assert_reads(AWS_PROFILE="chained")
        self.assertEqual([action for _, action, _ in self.cloud.asked], ["AssumeRoleWithWebIdentity", "AssumeRole"])
        self.assert_refused("AWS_ROLE_ARN", AWS_WEB_IDENTITY_TOKEN_FILE=str(token))
        self.assert_refused("is not there", AWS_WEB_IDENTITY_TOKEN_FILE=str(self.new()), AWS_ROLE_ARN=ROLE)
        token.write_text("another")
        self.assert_refused("InvalidIdentityToken", code=1, AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ROLE_ARN=ROLE)


class Programs(Credentials):
    def program(self, script):
        file = self.new("give keys")  # with a space in its name
        file.write_text(f"#!{sys.executable}\nimport json, sys\n{script}\n")
        file.chmod(0o700)
        return file

    def test_a_program_gives_keys(self):
        file = self.program(f"assert sys.argv[1:] == ['a b', 'c\"d', ''], sys.argv\n"
                            f"print(json.dumps(dict(Version=1, AccessKeyId={STATIC[0]!r}, SecretAccessKey={STATIC[1]!r})))")
        self.config(f"[default]\ncredential_process = \"{file}\" 'a b' c\\\"d \"\"\n")
        self.assert_reads()

    def test_what_is_wrong_with_it_is_said_and_keys_are_not_shown(self):
        for script, part, code in (("sys.exit('nobody is logged in')", "nobody is logged in", 1),
                                   ("print('hidden')", "gives no object in JSON", 1),
                                   ("print(json.dumps(dict(Version=2)))", "another version than 1", 1),
                                   ("print(json.dumps(dict(Version=1, AccessKeyId='hidden')))", "gives no SecretAccessKey", 1),
                                   ("print(json.dumps(dict(Version=1, AccessKeyId='hi\\nx', SecretAccessKey='hidden')))", "control characters", 1),
                                   ("print('[' * 300000)", "credential_process", 1)):
            self.config(f"[default]\ncredential_process = '{self.program(script)}'\n")
            self.assertNotIn("hidden", self.assert_refused(part, code=code))
        self.config("[default]\ncredential_process = /no/such/program\n")
        self.assert_refused("there is no program '/no/such/program'")
        self.config("[default]\ncredential_process = 'open\n")
        self.assert_refused("a quote is open")


class SingleSignOn(Credentials):
    PROFILE = "sso_account_id = 123456789012\nsso_role_name = Reader of all\n"

    def setUp(self):
        super().setUp()
        self.cache = self.home / ".aws" / "sso" / "cache"
        self.cache.mkdir(parents=True)
        self.cloud.sso_tokens = {"sso-1": "refresh-1"}

    def put_token(self, name, left_s=7200, **more):
        file = self.cache / f"{hashlib.sha1(name.encode()).hexdigest()}.json"
        made = {"startUrl": "https://x/start", "region": "eu-west-1", "accessToken": "sso-1", "clientId": "id", "clientSecret": "client-secret",
                "expiresAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + left_s)), "refreshToken": "refresh-1",
                "registrationExpiresAt": "2099-01-01T00:00:00Z", **more}
        file.write_text(json.dumps(made))
        return file

    def test_without_a_session(self):
        self.config(f"[profile old]\nsso_start_url = https://x/start\nsso_region = eu-west-1\n{self.PROFILE}")
        self.assert_refused("aws sso login --profile old", AWS_PROFILE="old")
        self.put_token("https://x/start", expiresAt="2099-01-01T00:00:00UTC")
        self.assert_reads(AWS_PROFILE="old")
        self.put_token("https://x/start", -5)
        self.assert_refused("has expired: run 'aws sso login --profile old'", AWS_PROFILE="old")
        self.put_token("https://x/start", accessToken="gone")
        self.assert_refused("is not taken any more", AWS_PROFILE="old")
        self.assertNotIn("oidc", self.names_asked())

    def test_with_a_session_the_token_is_got_anew_and_kept_for_its_owner(self):
        self.config(f"[profile new]\nsso_session = mine\n{self.PROFILE}[sso-session mine]\nsso_start_url = https://x/start\nsso_region = eu-west-1\n")
        self.put_token("mine")
        self.assert_reads(AWS_PROFILE="new")
        self.assertEqual(self.names_asked(), ["portal"])
        file = self.put_token("mine", 100)
        self.assert_reads(AWS_PROFILE="new")
        kept = json.loads(file.read_text())
        self.assertEqual((kept["accessToken"], kept["refreshToken"], kept["clientId"]), ("sso-2", "refresh-2", "id"))
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertEqual(sorted(path.name for path in self.cache.iterdir()), [file.name])
        # What was kept is good, for the next one, and for a role.
        self.cloud.asked.clear()
        with (self.home / ".aws" / "config").open("a") as config:
            config.write(f"[profile role]\nrole_arn = {ROLE}\nsource_profile = new\n")
        self.assert_reads(AWS_PROFILE="role")
        self.assertEqual(self.names_asked(), ["portal", "sts"])

    def test_what_is_missing_is_said(self):
        self.config(f"[profile a]\nsso_session = none\n{self.PROFILE}[profile b]\nsso_account_id = 1\nsso_start_url = x\nsso_region = r\n"
                    f"[profile c]\nsso_start_url = x\nsso_region = evil/\n{self.PROFILE}")
        self.assert_refused("[sso-session none] has no sso_start_url", AWS_PROFILE="a")
        self.assert_refused("has no sso_role_name", AWS_PROFILE="b")
        self.assert_refused("'evil/' is no region", AWS_PROFILE="c")


class Machines(Credentials):
    def test_a_container(self):
        url, token = self.cloud.url, self.new("token")
        token.write_text(AGENT_TOKEN)
        self.assert_reads(AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{url}/agent", AWS_CONTAINER_AUTHORIZATION_TOKEN=AGENT_TOKEN)
        self.assert_reads(AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{url}/agent?x=1", AWS_CONTAINER_AUTHORIZATION_TOKEN="wrong",
                          AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token))
        self.assert_refused("the container's agent (127.0.0.1) answered 401", code=1, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{url}/agent")
        token.write_text(AGENT_TOKEN + "\r\nX-Evil: 1")
        self.assert_refused("line's end", AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{url}/agent", AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token))

    def test_no_token_is_sent_to_another_host(self):
        for host in ("example.org", "169.254.169.254", "127.0.0.1.example.org", "evil@127.0.0.1", "[fd00:ec2::254]", "localhost.example.org"):
            self.assert_refused("are asked for keys", AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://{host}/agent",
                                AWS_CONTAINER_AUTHORIZATION_TOKEN=AGENT_TOKEN)

    def instance(self, **more):
        return {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.cloud.url + "/", **more}

    def test_an_instance(self):
        self.assert_reads(**self.instance())
        self.assertEqual([(method, path) for _, method, path in self.cloud.asked],
                         [("PUT", "/latest/api/token"), ("GET", "/latest/meta-data/iam/security-credentials/"),
                          ("GET", "/latest/meta-data/iam/security-credentials/an-instance-role")])
        self.cloud.imds_version = 1
        self.assert_reads(**self.instance())
        self.assert_refused("no keys for S3", "answered 404", **self.instance(AWS_EC2_METADATA_V1_DISABLED="true"))

    def test_an_instance_without_a_role_and_none_at_all(self):
        self.cloud.role_name = ""
        self.assert_refused("no keys for S3", "the instance has no role", **self.instance())
        self.cloud.imds_silent = True
        started = time.monotonic()
        self.assert_refused("no keys for S3", "hop limit must be 2", **self.instance())
        self.assertLess(time.monotonic() - started, 20)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            self.assert_refused("no keys for S3", AWS_EC2_METADATA_DISABLED="false",
                                AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://127.0.0.1:{closed.getsockname()[1]}")
        self.assert_refused("is no http:// URL", AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT="file:///etc")
        self.cloud.asked.clear()
        self.assert_refused("no keys for S3")  # AWS_EC2_METADATA_DISABLED
        self.assertEqual(self.cloud.asked, [])


class Expiry(Credentials):
    def test_keys_are_got_before_they_expire_by_one_of_all_threads(self):
        self.cloud.life_s = [3, 3600]
        begun = time.monotonic()

        def wait(handler):  # until the first keys have expired
            if handler.path.endswith(".tfrecord"):
                time.sleep(max(0, begun + 4 - time.monotonic()))

        self.cloud.before = wait
        variables = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.cloud.url}
        done = run("presto-load", "-q", "--format", "null", "--shuffle", "full", "-e", "9", "-j", "64", self.url, env=self.variables(**variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.cloud.given), 2)

    def test_a_server_that_calls_them_expired_gets_newer_ones_once(self):
        variables = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.cloud.url}

        def revoke(handler):
            if handler.path.endswith("dataset.json"):
                for access in self.cloud.given[:1]:
                    self.cloud.keys[access] = (*self.cloud.keys[access][:2], time.time() - 1)

        self.cloud.before = revoke
        self.assert_reads(**variables)
        self.assertEqual(len(self.cloud.given), 2)
        self.assertGreater(self.cloud.refused.count("ExpiredToken"), 0)
        # Keys that cannot be other ones: the first refusal is the error.
        self.cloud.keys[STATIC[0]] = (STATIC[1], None, time.time() - 1)
        self.cloud.refused.clear()
        self.assert_refused("400 ExpiredToken", code=1, AWS_ACCESS_KEY_ID=STATIC[0], AWS_SECRET_ACCESS_KEY=STATIC[1])
        self.assertEqual(set(self.cloud.refused), {"ExpiredToken"})
        self.assertLess(len(self.cloud.refused), 4)  # of the names that are looked for at once, each once


class Place(Credentials):
    def test_who_asks_until_when_and_how_far_it_is(self):
        variables = self.variables(AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=self.cloud.url, AWS_REGION="eu-central-1")
        done = run("presto-inspect", "place", "--json", self.url, env=variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        access = self.cloud.given[0]
        shard = sorted(self.dataset.glob("*.tfrecord"))[0]
        self.assertEqual((found["object"], found["bytes"]), (f"{self.url}/{shard.name}", shard.stat().st_size))
        self.assertEqual((found["kind"], found["provider"], found["region"], found["endpoint"]), ("s3", "instance metadata", "eu-central-1", self.cloud.url))
        self.assertEqual(found["key"], "..." if len(access) < 12 else f"{access[:4]}...{access[-4:]}")
        self.assertEqual(found["key_until"], text_of(self.cloud.keys[access][2]))
        self.assertGreater(found["round_trip_s"], 0)
        done = run("presto-inspect", "place", self.url, env=variables)
        text = done.stdout.decode()
        for part in ("of instance metadata, until 20", "  region      eu-central-1\n", f"  endpoint    {self.cloud.url}\n", "  round trip  "):
            self.assertIn(part, text)
        for access in self.cloud.given:
            self.assertNotIn(access, text)
            for secret in self.cloud.keys[access][:2]:
                self.assertNotIn(secret, text)

    def test_what_was_found_before_a_failure_is_printed_too(self):
        done = run("presto-inspect", "place", self.url, env=self.variables())
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("no keys for S3", done.stderr)
        self.assertIn(self.cloud.url, done.stdout.decode())
        done = run("presto-inspect", "place", self.url + "-none", env=self.variables(AWS_ACCESS_KEY_ID=STATIC[0], AWS_SECRET_ACCESS_KEY=STATIC[1]))
        self.assert_partly(done, "no such object", "environment")
        done = run("presto-inspect", "place", next(self.dataset.glob("*.tfrecord")))
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_partly(self, done, said, printed):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(said, done.stderr)
        self.assertIn(printed, done.stdout.decode())

    def test_a_large_object_has_a_rate(self):
        (self.folder / "large").write_bytes(os.urandom(3 << 20))
        done = run("presto-inspect", "place", "--json", f"s3://{self.folder.name}/large",
                   env=self.variables(AWS_ACCESS_KEY_ID=STATIC[0], AWS_SECRET_ACCESS_KEY=STATIC[1]))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertGreater(found["bytes_per_s"], 0)
        self.assertEqual((found["key"], found["key_until"]), ("...", None))


if __name__ == "__main__":
    main()
