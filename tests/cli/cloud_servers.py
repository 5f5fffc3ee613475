# SPDX-License-Identifier: Apache-2.0
"""Servers for the tests of credentials, on the loopback: of AWS (STS, single sign-on, the agent of a container, the metadata of an
instance, the objects of a bucket), of Google, and of the Hugging Face Hub. They check each request, by the descriptions of these
services and with none of the library's code, and give objects only to keys that they have given and that have not expired."""
import base64
import collections
import datetime
import hashlib
import hmac
import itertools
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import servers

STATIC = ("AKIASTATIC", "static/secret+key", None)
WEB_TOKEN = "web-identity-token"
AGENT_TOKEN = "agent-token"


def text_of(until):
    return datetime.datetime.fromtimestamp(until, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Cloud(servers.Files):
    def __init__(self, folder, life_s=3600):
        super().__init__(folder)
        self.life_s = life_s  # of keys that are given next; a list: of one after the other, the last one for all others
        self.keys = {STATIC[0]: (*STATIC[1:], None)}  # access key: secret, token, until
        self.roles = {}  # ARN: external ID
        self.web_token = WEB_TOKEN
        self.sso_tokens = {}  # access token: refresh token
        self.role_name = "an-instance-role"
        self.imds_version, self.imds_silent, self.imds_tokens = 2, False, set()
        self.given, self.asked, self.refused = [], [], []
        self.count = itertools.count(1)

    # ---- keys ----

    def give(self):
        with self.lock:
            number = next(self.count)
            life = self.life_s if not isinstance(self.life_s, list) else self.life_s.pop(0) if len(self.life_s) > 1 else self.life_s[0]
            made = (f"ASIA{number:04}", f"secret/{number}+x=", f"token+/{number}==", int(time.time() + life))
            self.keys[made[0]] = made[1:]
            self.given.append(made[0])
            return made

    def why_not(self, handler, service, digest):
        """The code of an error; None: the request is signed with keys that hold."""
        header = handler.headers.get("Authorization", "")
        if not header.startswith("AWS4-HMAC-SHA256 "):
            return "AccessDenied"
        fields = dict(part.split("=", 1) for part in header.removeprefix("AWS4-HMAC-SHA256 ").split(", "))
        access, *scope = fields["Credential"].split("/")
        if access not in self.keys:
            return "InvalidAccessKeyId"
        secret, token, until = self.keys[access]
        names = fields["SignedHeaders"].split(";")
        needed = {"host", "x-amz-date"} | {name.lower() for name in handler.headers if name.lower().startswith("x-amz-")}
        if names != sorted(names) or not needed <= set(names) or scope[2:] != [service, "aws4_request"]:
            return "AuthorizationHeaderMalformed"
        path, _, query = handler.path.partition("?")
        canonical = "\n".join([handler.command, path, query,
                               *(f"{name}:{' '.join(handler.headers[name].split())}" for name in names), "", fields["SignedHeaders"], digest])
        at = handler.headers["x-amz-date"]
        if abs(datetime.datetime.strptime(at, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc).timestamp() - time.time()) > 300:
            return "RequestTimeTooSkewed"
        text = "\n".join(["AWS4-HMAC-SHA256", at, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + secret).encode()
        for part in scope:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        if not hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), fields["Signature"]):
            return "SignatureDoesNotMatch"
        if handler.headers.get("x-amz-security-token") != token:
            return "InvalidToken"
        if until is not None and time.time() > until:
            return "ExpiredToken"
        return None

    # ---- services ----

    def serve(self, handler):
        path, _, query = handler.path.partition("?")
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        for begin, service in (("/federation/", self.portal), ("/token", self.oidc), ("/agent", self.agent), ("/latest/", self.metadata)):
            if path.startswith(begin):
                with self.lock:
                    self.asked.append((service.__name__, handler.command, handler.path))
                return service(handler, dict(urllib.parse.parse_qsl(query)), body)
        if handler.command == "POST" and path == "/":
            return self.sts(handler, body)
        why = self.why_not(handler, "s3", handler.headers.get("x-amz-content-sha256", ""))
        if why is not None:
            with self.lock:
                self.refused.append(why)
            code = {"ExpiredToken": 400, "InvalidToken": 400, "AuthorizationHeaderMalformed": 400}.get(why, 403)
            return handler.answer(code, [("x-amz-request-id", "R1")], f"<Error><Code>{why}</Code><Message>No.</Message></Error>".encode())
        return super().serve(handler)

    def sts(self, handler, body):
        form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
        with self.lock:
            self.asked.append(("sts", form["Action"], form))
        why = None
        if form["Action"] == "AssumeRole":
            why = self.why_not(handler, "sts", hashlib.sha256(body).hexdigest())
            if why is None and (form["RoleArn"] not in self.roles or self.roles[form["RoleArn"]] != form.get("ExternalId")):
                why = "AccessDenied"
        elif "Authorization" in handler.headers or form["WebIdentityToken"] != self.web_token or form["RoleArn"] not in self.roles:
            why = "InvalidIdentityToken"
        if form.get("Version") != "2011-06-15" or not form.get("RoleSessionName"):
            why = "ValidationError"
        if why is not None:
            text = f"<ErrorResponse><Error><Type>Sender</Type><Code>{why}</Code><Message>Not for you.</Message></Error></ErrorResponse>"
            return handler.answer(403, [("Content-Type", "text/xml")], text.encode())
        access, secret, token, until = self.give()
        action = form["Action"]
        return handler.answer(200, [("Content-Type", "text/xml")], (
            f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><AssumedRoleUser><Arn>{form["RoleArn"]}'
            f"</Arn></AssumedRoleUser><Credentials><AccessKeyId>{access}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>"
            f"<SessionToken>{token}</SessionToken><Expiration>{text_of(until)}</Expiration></Credentials></{action}Result></{action}Response>"
        ).encode())

    def as_json(self, keys, token_name="Token"):
        access, secret, token, until = keys
        return json.dumps({"Code": "Success", "AccessKeyId": access, "SecretAccessKey": secret, token_name: token,
                           "Expiration": text_of(until)}).encode()

    def portal(self, handler, query, _):
        if handler.headers.get("x-amz-sso_bearer_token") not in self.sso_tokens:
            return handler.answer(401, [], b'{"message":"Session token not found or invalid"}')
        if (query.get("account_id"), query.get("role_name")) != ("123456789012", "Reader of all"):
            return handler.answer(403, [], b'{"message":"No access"}')
        access, secret, token, until = self.give()
        return handler.answer(200, [], json.dumps({"roleCredentials": {"accessKeyId": access, "secretAccessKey": secret, "sessionToken": token,
                                                                      "expiration": until * 1000}}).encode())

    def oidc(self, handler, _, body):
        asked = json.loads(body)
        if asked.get("grantType") != "refresh_token" or asked.get("clientId") != "id" or asked.get("clientSecret") != "client-secret":
            return handler.answer(400, [], b'{"error":"invalid_client"}')
        for access, refresh in list(self.sso_tokens.items()):
            if refresh == asked.get("refreshToken"):
                del self.sso_tokens[access]
                self.sso_tokens["sso-2"] = "refresh-2"
                return handler.answer(200, [], b'{"accessToken":"sso-2","expiresIn":28800,"refreshToken":"refresh-2","tokenType":"Bearer"}')
        return handler.answer(400, [], b'{"error":"invalid_grant"}')

    def agent(self, handler, *_):
        if handler.headers.get("Authorization") != AGENT_TOKEN:
            return handler.answer(401, [], b"{}")
        return handler.answer(200, [], self.as_json(self.give()))

    def metadata(self, handler, *_):
        if self.imds_silent:
            time.sleep(3)
            handler.close_connection = True
            return None
        roles = "/latest/meta-data/iam/security-credentials/"
        if handler.command == "PUT" and handler.path == "/latest/api/token":
            if self.imds_version == 1:
                return handler.answer(404)
            if handler.headers.get("Content-Length", "0") != "0" or handler.headers.get("x-aws-ec2-metadata-token-ttl-seconds") != "21600":
                return handler.answer(400)
            token = f"imds-{next(self.count)}"
            self.imds_tokens.add(token)
            return handler.answer(200, [], token.encode())
        if self.imds_version == 2 and handler.headers.get("x-aws-ec2-metadata-token") not in self.imds_tokens:
            return handler.answer(401)
        if handler.path == roles:
            return handler.answer(200, [], self.role_name.encode()) if self.role_name else handler.answer(404)
        if handler.path == roles + self.role_name:
            return handler.answer(200, [], self.as_json(self.give()))
        return handler.answer(404)


class Google(servers.Files):
    """The objects of Google's storage, and the services that give tokens for them: to a user, to a service account that signs for itself,
    to what another service vouches for, for another account, and to the machine itself."""

    def __init__(self, folder, public_key=None):
        super().__init__(folder)
        self.public_key, self.life_s = public_key, 3600
        self.tokens, self.asked, self.sent, self.count = {}, [], [], itertools.count(1)
        self.lock = threading.Lock()
        self.most, self.lists = 1000, []  # keys in a page; the queries of lists

    def give(self, scope="storage"):
        with self.lock:
            token = f"ya29.{next(self.count)}-{scope}"
            self.tokens[token] = time.time() + self.life_s
            return token

    def holds(self, handler, scope="storage"):
        token = handler.headers.get("Authorization", "").removeprefix("Bearer ")
        return token.endswith(scope) and self.tokens.get(token, 0) > time.time()

    def answer_token(self, handler, scope="storage"):
        return handler.answer(200, [], json.dumps({"access_token": self.give(scope), "expires_in": self.life_s, "token_type": "Bearer"}).encode())

    def is_signed(self, assertion):
        """RS256, as openssl checks it."""
        head, claims, signature = assertion.split(".")
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.urlsafe_b64decode(signature + "=="))
            file.flush()
            done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", self.public_key, "-signature", file.name],
                                  input=f"{head}.{claims}".encode(), capture_output=True, check=False)
        head, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, claims))
        return (done.returncode == 0 and head == {"alg": "RS256", "typ": "JWT", "kid": "key-1"} and claims["aud"] == f"{self.url}/token"
                and claims["iss"] == "me@project" and claims["exp"] - claims["iat"] == 3600 and abs(claims["iat"] - time.time()) < 300), claims

    def token(self, handler, body):
        form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
        grant = form.get("grant_type", "").rpartition(":")[2]
        self.asked.append(grant)
        scope = "all" if form.get("scope", "").endswith("/cloud-platform") else "storage"
        if grant == "refresh_token" and form == {"grant_type": "refresh_token", "client_id": "id", "client_secret": "client-secret",
                                                 "refresh_token": "refresh-1"}:
            return self.answer_token(handler)
        if grant == "jwt-bearer":
            is_signed, claims = self.is_signed(form["assertion"])
            if is_signed:
                return self.answer_token(handler, "all" if claims["scope"].endswith("/cloud-platform") else "storage")
        if grant == "token-exchange" and form["subject_token"] == WEB_TOKEN and form["audience"] == "//iam/pool" and form["subject_token_type"] == "jwt":
            return self.answer_token(handler, scope)
        return handler.answer(400, [], b'{"error":"invalid_grant","error_description":"Not for you."}')

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if handler.command == "POST" and handler.path == "/token":
            return self.token(handler, body)
        if handler.path.endswith(":generateAccessToken"):
            self.asked.append("impersonate")
            if not self.holds(handler, "all") or json.loads(body)["lifetime"] != "3600s":
                return handler.answer(403)
            return handler.answer(200, [], json.dumps({"accessToken": self.give(), "expireTime": text_of(time.time() + 3600)}).encode())
        if handler.path.startswith("/computeMetadata/"):
            self.asked.append("metadata")
            if handler.headers.get("Metadata-Flavor") != "Google" or not handler.path.endswith("/instance/service-accounts/default/token"):
                return handler.answer(403)
            return self.answer_token(handler)
        return self.object(handler)

    def object(self, handler):
        if not self.holds(handler):
            return handler.answer(401, [], b"<Error><Code>AuthenticationRequired</Code><Message>Authentication required.</Message></Error>")
        name, _, query = handler.path.partition("?")
        path = self.folder / urllib.parse.unquote(name).lstrip("/")
        if not (self.folder / name.split("/")[1]).is_dir():
            return handler.answer(404, [("x-guploader-uploadid", "upload-1")],
                                  b"<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message></Error>")
        if query:
            return self.list(handler, path, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        generation = str(path.stat().st_mtime_ns) if path.is_file() else ""
        wanted = handler.headers.get("x-goog-if-generation-match")
        self.sent.append(wanted)
        if wanted not in (None, generation):
            return handler.answer(412, [], b"<Error><Code>PreconditionFailed</Code></Error>")
        answer = handler.answer
        handler.answer = lambda code, headers=(), body=b"": answer(code, [*headers, ("x-goog-generation", generation)], body)
        try:
            return super().serve(handler)
        finally:
            del handler.answer  # it serves the next request of the connection, too


    def list(self, handler, bucket, query):
        """Objects of a bucket, by the description of version 2 of the list."""
        if query.pop("list-type") != "2" or not set(query) <= {"prefix", "delimiter", "max-keys", "encoding-type", "continuation-token"}:
            return handler.answer(400, [], b"<Error><Code>InvalidArgument</Code></Error>")
        with self.lock:
            self.lists.append(query)
        keys = {str(file.relative_to(bucket)): file.stat() for file in bucket.rglob("*") if file.is_file()}
        return handler.answer(200, [], servers.list_of(keys, query, self.most, lambda key: (
            f"<Generation>{keys[key].st_mtime_ns}</Generation><MetaGeneration>1</MetaGeneration>"
            f"<LastModified>{text_of(keys[key].st_mtime)[:-1]}.123Z</LastModified><ETag>\"other\"</ETag><Size>{keys[key].st_size}</Size>")).encode())


class Hub(servers.Files):
    """The Hugging Face Hub: shards are pointed to in a store, which takes an address for a while and no token; other files come from
    the Hub itself, by way of another address."""

    COMMITS = {"main": "a" * 40, "v1.0": "b" * 40, "refs%2Fpr%2F1": "c" * 40}

    def __init__(self, folder, token=None):
        super().__init__(folder)
        self.token, self.elsewhere, self.addresses = token, None, {}
        self.seen, self.count = [], itertools.count(1)
        self.store, self.given = None, collections.Counter()  # addresses, by files
        self.refused, self.refusal = collections.Counter(), None  # refusals that are held, by address; a condition: they are, for a while
        self.most, self.twist = 1000, None  # entries in a page; a function of the entries and the header Link that changes both

    def serve(self, handler):
        path, _, query = handler.path.partition("?")
        if path.startswith("/store/"):
            with self.lock:
                self.seen.append(("store", path, "Authorization" in handler.headers))
                left = self.addresses.get(query, 0)
                self.addresses[query] = left - 1
            if "Authorization" in handler.headers or left <= 0:
                self.hold_refusal(query)
                return handler.answer(403, [], b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
            handler.path = path.removeprefix("/store")
            return super().serve(handler)
        with self.lock:
            self.seen.append(("hub", path, handler.headers.get("Authorization")))
        if self.token is not None and handler.headers.get("Authorization") != f"Bearer {self.token}":
            return handler.answer(401, [("X-Error-Code", "GatedRepo")], b"Access to dataset me/mine is restricted.")
        if path.startswith("/api/resolve-cache/"):
            handler.path = path.removeprefix("/api/resolve-cache")
            return super().serve(handler)
        if path.startswith("/api/datasets/"):
            return self.api(handler, path, dict(urllib.parse.parse_qsl(query)))
        begin, _, rest = path.partition("/resolve/")
        revision, _, encoded = rest.partition("/")
        file, commit = urllib.parse.unquote(encoded), self.COMMITS.get(revision, revision if revision in self.COMMITS.values() else None)
        if begin != "/datasets/me/mine" or commit is None or not (self.folder / commit / file).is_file():
            return handler.answer(404, [("X-Error-Code", "EntryNotFound")], b"Entry not found")
        headers = [("X-Repo-Commit", commit), ("X-Linked-ETag", f'"{self.oid(self.folder / commit / file)}"')]
        if not file.endswith(".tfrecord"):
            return handler.answer(307, [*headers, ("Location", f"/api/resolve-cache/{commit}/{encoded}")])
        address = f"X-Amz-Signature={next(self.count)}" + "&x=y" * 300
        with self.lock:
            self.given[path] += 1
            self.addresses[address] = self.lasts if self.given[path] <= self.short_lived else 1 << 30
        # Another port of this machine, as another host elsewhere.
        return handler.answer(302, [*headers, ("X-Linked-Size", str((self.folder / commit / file).stat().st_size)),
                                    ("Location", self.elsewhere or f"{self.store_url}/store/{commit}/{encoded}?{address}")])

    def hold_refusal(self, address):
        """Until there are two of the address, so that both requests are answered together; or only one comes."""
        if self.refusal is None:
            return
        with self.refusal:
            self.refused[address] += 1
            self.refusal.notify_all()
            self.refusal.wait_for(lambda: self.refused[address] > 1, 0.3)

    @staticmethod
    def is_large(file):
        return file.name.endswith(".tfrecord")

    @classmethod
    def oid(cls, file):
        """What the content of a file is called: as LFS does it, or Git."""
        content = file.read_bytes()
        return hashlib.sha256(content).hexdigest() if cls.is_large(file) else hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def api(self, handler, path, query):
        """The commit of a revision, and trees: in pages, the folders first, and then not in order."""
        kind, _, rest = path.removeprefix("/api/datasets/me/mine/").partition("/")
        revision, _, name = rest.partition("/")
        commit = self.COMMITS.get(revision, revision if revision in self.COMMITS.values() else None)
        if kind == "revision" and commit is not None and query == {"expand": "sha"}:
            return handler.answer(200, [("Content-Type", "application/json")], json.dumps({"_id": "1", "id": "me/mine", "sha": commit}).encode())
        folder = self.folder / (commit or "none") / urllib.parse.unquote(name)
        if kind != "tree" or not folder.is_dir() or query.get("expand") != "false" or query.get("recursive") not in ("true", "false"):
            return handler.answer(404, [("X-Error-Code", "EntryNotFound"), ("x-request-id", "Root=1-0")], b'{"error":"not there"}')
        top, found = self.folder / commit, folder.rglob("*") if query["recursive"] == "true" else folder.iterdir()
        entries = []
        for file in sorted(found, key=lambda file: (file.is_file(), hashlib.md5(str(file).encode()).digest())):
            about = {"path": str(file.relative_to(top)), "oid": "0" * 40, "size": 0, "type": "directory"}
            if file.is_file():
                about |= {"type": "file", "size": file.stat().st_size, "oid": self.oid(file)}
                if self.is_large(file):
                    about |= {"oid": "1" * 40, "lfs": {"oid": self.oid(file), "size": file.stat().st_size, "pointerSize": 134}, "xetHash": "2" * 64}
            entries.append(about)
        at = int(base64.b64decode(query.get("cursor", ""))) if "cursor" in query else 0
        links = [f'<{self.url}/x>; rel="first"']
        if at + self.most < len(entries):
            cursor = urllib.parse.quote(base64.b64encode(b"%d" % (at + self.most)).decode(), safe="")
            links.append(f'<{self.url}{path}?recursive={query["recursive"]}&expand=false&cursor={cursor}>; rel="next"')
        entries, link = entries[at:at + self.most], ", ".join(links)
        if self.twist is not None:
            entries, link = self.twist(entries, link)
        return handler.answer(200, [("Link", link), *self.more_headers], entries if isinstance(entries, bytes) else json.dumps(entries).encode())

    lasts = 1 << 30  # requests that an address is good for
    short_lived = 1 << 30  # addresses of a file that are; all others are good for ever
    more_headers = ()  # of lists

    @property
    def store_url(self):
        return self.url.replace("127.0.0.1", "localhost")


FAKE_GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"


def fake_gcs_server():
    """The program, if somebody has built it (it takes minutes): a command that does so, or its path and None."""
    version = FAKE_GCS.rpartition("@")[2]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "presto" / "tests" / f"fake-gcs-server-{version}"
    program = cache / "fake-gcs-server"
    return program, None if program.exists() else f"GOBIN={cache} go install {FAKE_GCS}"


class FakeGcs:
    """fake-gcs-server over the files of a folder: Google's interface by somebody else, without checks of tokens."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [self.program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory", "-data", self.folder,
             "-public-host", f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise RuntimeError("fake-gcs-server does not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)

    def put(self, bucket, name, content):
        url = f"{self.url}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={urllib.parse.quote(name, safe='')}"
        with urllib.request.urlopen(urllib.request.Request(url, content, method="POST")) as answer:
            return json.load(answer)
