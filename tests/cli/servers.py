# SPDX-License-Identifier: Apache-2.0
"""Servers for the tests of storage on other machines, all on the loopback: files over HTTP, a proxy that fails, and an S3 server.

Each is a context manager with a `url` without a slash at its end, and counts what it was asked.
"""
import collections
import datetime
import email.utils
import hashlib
import hmac
import http.client
import http.server
import os
import pathlib
import random
import shutil
import socket
import socketserver
import struct
import subprocess
import threading
import time
import urllib.parse


def range_of(handler):
    """The first and the last byte that are asked for; of all, without a range."""
    first, _, last = handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
    return int(first), int(last) if last else 1 << 62


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Clients that hang up are part of the tests."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body is not to wait until its headers are acknowledged

    def log_message(self, *_):
        pass

    def answer(self, code, headers=(), body=b""):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        self.server.owner.serve(self)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET


class Served:
    """A server in threads of this process."""

    def __enter__(self):
        self.counts, self.requests = collections.Counter(), []
        self.lock = threading.Lock()
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.owner = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def note(self, handler):
        with self.lock:
            self.counts[handler.command] += 1
            self.requests.append((handler.command, handler.path, handler.headers.get("Range")))


class Files(Served):
    """The files of a folder, with ranges, ETags and If-Match, as any web server sends them. `knows_ranges` False: all of a file,
    whatever was asked for."""

    def __init__(self, folder, knows_ranges=True, refuses_signatures=False):
        self.folder, self.knows_ranges, self.refuses_signatures = pathlib.Path(folder), knows_ranges, refuses_signatures
        self.before = None  # called with the handler, before it is answered
        self.headers_of = lambda content: []  # more headers of an answer, by all bytes of the file

    def serve(self, handler):
        self.note(handler)
        if self.before is not None:
            self.before(handler)
        if self.refuses_signatures and "Authorization" in handler.headers:
            return handler.answer(400, body=b"<Error><Code>Signed</Code><Message>nobody asked</Message></Error>")
        path = self.folder / urllib.parse.unquote(handler.path.split("?")[0]).lstrip("/")
        if not path.is_file():
            return handler.answer(404, body=b"<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>")
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            etag = f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'
            headers = [("ETag", etag), ("Last-Modified", email.utils.formatdate(status.st_mtime, usegmt=True)), *self.headers_of(path.read_bytes())]
            if handler.headers.get("If-Match", etag) not in (etag, "*"):
                return handler.answer(412, headers)
            wanted = handler.headers.get("Range", "")
            if not self.knows_ranges or not wanted.startswith("bytes="):
                return handler.answer(200, headers, file.read())
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            first, last = int(first), min(int(last), status.st_size - 1)
            if first >= status.st_size:
                return handler.answer(416, [*headers, ("Content-Range", f"bytes */{status.st_size}")])
            file.seek(first)
            headers.append(("Content-Range", f"bytes {first}-{last}/{status.st_size}"))
            return handler.answer(206, headers, file.read(last - first + 1))


def list_of(keys, query, most, about):
    """A page of ListObjectsV2 in XML, of at most `most` keys; `about(key)`: what is said of one."""
    prefix, delimiter, after = query["prefix"], query.get("delimiter"), bytes.fromhex(query.get("continuation-token", ""))
    most, entries, last, is_cut = min(int(query["max-keys"]), most), [], None, False
    for key in sorted(keys, key=lambda key: key.encode()):
        if not key.startswith(prefix):
            continue
        folder = prefix + key[len(prefix):].partition(delimiter)[0] + delimiter if delimiter and delimiter in key[len(prefix):] else None
        name = folder or key
        if (after and name.encode() <= after) or name == last:
            continue
        if len(entries) == most:
            is_cut = True
            break
        last = name
        shown = urllib.parse.quote_plus(name, safe="/*") if query.get("encoding-type") == "url" else name
        entries.append(f"<CommonPrefixes><Prefix>{shown}</Prefix></CommonPrefixes>" if folder else f"<Contents><Key>{shown}</Key>{about(key)}</Contents>")
    token = f"<NextContinuationToken>{last.encode().hex()}</NextContinuationToken>" if is_cut else ""
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>'
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{''.join(entries)}{token}<EncodingType>url</EncodingType></ListBucketResult>")


class Keys(Served):
    """Objects by their keys in the bucket `bucket`, whatever is in the keys, with lists in pages (ListObjectsV2 as its reference describes
    it); signatures are not looked at. `most` keys are in a page. `twist` may change a list's answer: a function of the XML and the page's
    number that returns XML."""

    def __init__(self, objects, most=1000, twist=None):
        self.objects, self.most, self.twist, self.at_once, self.most_at_once = dict(objects), most, twist, 0, 0
        self.before = None

    def serve(self, handler):
        self.note(handler)
        if self.before is not None:
            self.before(handler)
        path, _, query = handler.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path)[1:].partition("/")
        if bucket != "bucket":
            return handler.answer(404, body=b"<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>")
        if query:
            return self.list(handler, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        if key not in self.objects:
            return handler.answer(404, body=b"<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>")
        body = self.objects[key]
        headers = [("ETag", self.etag(body)), ("Last-Modified", "Sat, 31 Jan 2026 23:59:58 GMT")]
        first, _, last = handler.headers["Range"].removeprefix("bytes=").partition("-")
        first, last = int(first), min(int(last), len(body) - 1)
        if first >= len(body):
            return handler.answer(416, [*headers, ("Content-Range", f"bytes */{len(body)}")])
        return handler.answer(206, [*headers, ("Content-Range", f"bytes {first}-{last}/{len(body)}")], body[first:last + 1])

    @staticmethod
    def etag(body):
        return f'"{hashlib.md5(body).hexdigest()}"'

    def list(self, handler, query):
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.counts["list"] += 1
            page = self.counts["list"]
        time.sleep(0.002)
        xml = list_of(self.objects, query, self.most, lambda key: (
            f"<LastModified>2026-01-31T23:59:58.123Z</LastModified>"
            f"<ETag>{self.etag(self.objects[key]).replace(chr(34), '&quot;')}</ETag><Size>{len(self.objects[key])}</Size>"))
        with self.lock:
            self.at_once -= 1
        xml = self.twist(xml, page) if self.twist is not None else xml
        return handler.answer(200, body=xml.encode())


class Faulty(Served):
    """A proxy before another server. Of `rate` of the requests, each fails in one of the ways of `kinds`:

    503, 500, 429: an answer with that code; reset: the connection is reset within the body; cut: it is closed there; silent: it is
    closed without an answer; lost: so is it, but the server has done what it was asked; torn: half of the request is read; late: an
    upload's end is answered with 200 and an error (else 500); flip: one bit of the body is another one, and the next answer with any of its
    bytes is right (`flips_again`: perhaps not).
    """

    def __init__(self, upstream, kinds, rate=0.2, seed=1, flips_again=False, only=""):
        parts = urllib.parse.urlsplit(upstream)
        self.upstream, self.kinds, self.rate = (parts.hostname, parts.port), kinds, rate
        self.random, self.flips_again, self.flipped, self.only = random.Random(seed), flips_again, set(), only

    def fault_of(self, handler):
        path, (first, last) = handler.path, range_of(handler)
        with self.lock:
            again = {one for one in self.flipped if one[0] == path and first <= one[2] and one[1] <= last}
            self.flipped -= again
            if again or self.only not in path or self.random.random() >= self.rate:
                return None
            kind = self.random.choice(self.kinds)
            if kind == "flip" and not self.flips_again:
                self.flipped.add((path, first, last))
            self.counts[kind] += 1
            return kind

    def serve(self, handler):
        self.note(handler)
        kind = self.fault_of(handler)
        if kind in ("503", "500", "429"):
            code = {"503": "SlowDown", "500": "InternalError", "429": "TooManyRequests"}[kind]
            handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
            body = f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>Please wait.</Message></Error>".encode()
            return handler.answer(int(kind), [("x-amz-request-id", "FAULTY1")], body)
        if kind == "late":
            handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
            body = b"<?xml version=\"1.0\"?>\n  <Error><Code>InternalError</Code><Message>Once more.</Message></Error>"
            return handler.answer(200 if handler.command == "POST" and "uploadId=" in handler.path else 500, [], body)
        if kind in ("silent", "torn"):
            if kind == "torn":
                handler.rfile.read(int(handler.headers.get("Content-Length", 0)) // 2)
            handler.close_connection = True
            return None
        bytes_there = int(handler.headers.get("Content-Length", 0))
        sent = handler.rfile.read(bytes_there)
        if len(sent) < bytes_there:  # the client has died: the server would wait for the rest
            handler.close_connection = True
            return None
        upstream = http.client.HTTPConnection(*self.upstream)
        upstream.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in handler.headers.items():
            upstream.putheader(name, value)
        upstream.endheaders(sent or None)
        came = upstream.getresponse()
        body = came.read()
        upstream.close()
        if kind == "lost":
            handler.close_connection = True
            return None
        if kind == "flip" and body and came.status == 206:
            at = self.random.randrange(len(body))
            body = body[:at] + bytes([body[at] ^ 1 << self.random.randrange(8)]) + body[at + 1:]
        handler.send_response_only(came.status)
        for name, value in came.getheaders():
            if name.lower() not in ("connection", "transfer-encoding"):
                handler.send_header(name, value)
        handler.end_headers()
        if kind in ("cut", "reset") and len(body) > 1:
            handler.wfile.write(body[: len(body) // 2])
            handler.close_connection = True
            if kind == "reset":
                handler.wfile.flush()
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                handler.connection.close()
            return None
        if handler.command != "HEAD":
            handler.wfile.write(body)
        return None


# ---- S3 ----

ACCESS, SECRET, REGION = "PRESTOTESTKEY", "presto/test+secret", "us-east-1"


def signed(method, url, body=b"", access=ACCESS, secret=SECRET, region=REGION, **more):
    """Headers of a signed request, by the description of the signature and none of the library's code."""
    parts = urllib.parse.urlsplit(url)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": now, **more}
    names = ";".join(sorted(headers))
    canonical = "\n".join([method, parts.path, parts.query, *(f"{n}:{headers[n]}" for n in sorted(headers)), "", names, digest])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={names}, Signature={signature}"
    return headers


class S3:
    """versitygw over a folder: a server that takes no signature that is not exact."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder.mkdir(exist_ok=True)
        self.url = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
        self.process = subprocess.Popen([self.program, "--port", f"127.0.0.1:{port}", "--region", REGION, "posix", self.folder],
                                        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise RuntimeError("the S3 server does not start")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:  # it waits for connections that nobody closes
            self.process.kill()
            self.process.wait()

    def send(self, method, path, body=b"", **headers):
        """The status and the body of the answer. `path` is not encoded. `headers` are of x-amz-, in small letters."""
        url = self.url + urllib.parse.quote(path, safe="/-_.~")
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
        connection.request(method, urllib.parse.urlsplit(url).path, body, signed(method, url, body, **headers))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def put_folder(self, bucket, prefix, folder):
        status, content = self.send("PUT", f"/{bucket}")
        if status not in (200, 409):
            raise RuntimeError(f"bucket: {status} {content}")
        for file in sorted(pathlib.Path(folder).iterdir()):
            status, content = self.send("PUT", f"/{bucket}/{prefix}/{file.name}", file.read_bytes())
            if status != 200:
                raise RuntimeError(f"{file.name}: {status} {content}")


VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


def versitygw():
    """The program, built once and kept beside the compiler's cache; None and why not."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "presto" / "tests" / VERSITYGW.rpartition("@")[2]
    program = cache / "versitygw"
    if program.exists():
        return program, ""
    if shutil.which("go") is None:
        return None, "Go, which builds versitygw, is not installed"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(["go", "install", VERSITYGW], env={**os.environ, "GOBIN": str(cache), "GOFLAGS": "-p=2"},
                              capture_output=True, text=True, timeout=900, check=False)
    except subprocess.TimeoutExpired:
        return None, "versitygw was not built within 15 minutes"
    return (program, "") if program.exists() else (None, f"versitygw cannot be built: {done.stderr[-300:]}")
