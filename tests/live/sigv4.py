#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signatures of requests to S3 beside those of botocore: random keys, queries and headers.

Exits with 77 if botocore is not installed. Usage: sigv4.py SIGN_REQUESTS
"""
import os
import random
import subprocess
import sys
import time
import urllib.parse

try:
    import botocore
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
except ImportError as reason:
    print(f"skipped: {reason} (scripts/setup --tests installs it)")
    sys.exit(77)

COUNT = 10_000
# What keys are made of: plain letters, and all that signers stumble over.
LETTERS = "abcXYZ019-_.~"
AWKWARD = " +=&?#%@:;,!$'()*\"<>[]{}|\\^`/\t\x7f"
FAR = "äéß€中文🎈\u0301"
NAMES = ["range", "If-Match", "if-none-match", "X-Amz-Checksum-Mode", "x-amz-request-payer", "Content-Type",
         "x-amz-server-side-encryption-customer-algorithm", "X-AMZ-Meta-Note", "x-amz-acl", "cache-control"]


def some_text(rng, most, alphabets=(LETTERS, LETTERS + AWKWARD, LETTERS + AWKWARD + FAR)):
    return "".join(rng.choices(rng.choice(alphabets), k=rng.randint(0, most)))


def some_value(rng):
    """Of a header: visible ASCII, with spaces of all kinds around and between."""
    words = ["".join(rng.choices(LETTERS + "\"/=,;:()", k=rng.randint(1, 9))) for _ in range(rng.randint(1, 4))]
    between = lambda: rng.choice(["", " ", "  ", "\t", " \t "])
    return between() + (rng.choice([" ", "   ", "\t"])).join(words) + between()


def some_request(rng):
    key = some_text(rng, 40)
    if rng.random() < 0.2:
        key = "/".join(rng.choice(["", ".", "..", "a", "dt=2024"]) for _ in range(rng.randint(1, 6)))
    request = {
        "method": rng.choice(["GET", "PUT", "HEAD", "POST", "DELETE"]),
        "path": "/" + key,
        "query": [(some_text(rng, 12) or "q", some_text(rng, 12)) for _ in range(rng.randint(0, 5))],
        "headers": {name: some_value(rng) for name in rng.sample(NAMES, rng.randint(0, 6))},
        "hash": rng.choice(["UNSIGNED-PAYLOAD", "%064x" % rng.getrandbits(256)]),
        "time": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(rng.randrange(2**32))),
        "access": "".join(rng.choices("ABCDEFGHIJ0123456789", k=20)),
        "secret": "".join(rng.choices("abcXYZ+/0123456789", k=rng.choice([1, 40, 61, 100]))),
        "region": rng.choice(["us-east-1", "eu-central-1", "auto", "garage"]),
        "host": rng.choice(["bucket.s3.amazonaws.com", "127.0.0.1:7070", "[::1]:9000", "minio.local"]),
    }
    if rng.random() < 0.3:
        request["token"] = "".join(rng.choices("abcXYZ+/=0123456789", k=rng.randint(1, 300)))
    return request


def signed_headers(request):
    """All headers, as they are sent."""
    headers = dict(request["headers"])
    headers["host"] = request["host"]
    headers["x-amz-content-sha256"] = request["hash"]
    headers["x-amz-date"] = request["time"]
    if "token" in request:
        headers["x-amz-security-token"] = request["token"]
    return headers


def line_of(request):
    word = lambda letter, text: letter + text.encode().hex()
    words = [word(letter, request[name]) for letter, name in
             (("m", "method"), ("p", "path"), ("c", "hash"), ("t", "time"), ("a", "access"), ("s", "secret"), ("r", "region"))]
    for name, value in request["query"]:
        words += [word("Q", name), word("q", value)]
    for name, value in signed_headers(request).items():
        words += [word("H", name), word("h", value)]
    return " ".join(words)


def botocore_signs(request):
    quote = lambda text, safe: urllib.parse.quote(text, safe=safe)
    # With its own host, and no '//' that would be read as one.
    url = f"https://{request['host']}" + quote(request["path"], "/-_.~")
    if request["query"]:
        url += "?" + "&".join(f"{quote(n, '-_.~')}={quote(v, '-_.~')}" for n, v in request["query"])
    made = AWSRequest(method=request["method"], url=url, headers=signed_headers(request))
    made.context["timestamp"] = request["time"]
    signer = S3SigV4Auth(Credentials(request["access"], request["secret"]), "s3", request["region"])
    text = signer.string_to_sign(made, signer.canonical_request(made))
    signer._inject_signature_to_request(made, signer.signature(text, made))
    return made.headers["Authorization"]


def main():
    seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 2**32))
    print(f"PRESTO_TEST_SEED={seed} botocore {botocore.__version__}")
    rng = random.Random(seed)
    requests = [some_request(rng) for _ in range(COUNT)]
    done = subprocess.run([sys.argv[1]], input="".join(line_of(r) + "\n" for r in requests), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    ours = done.stdout.splitlines()
    if len(ours) != COUNT:
        sys.exit(f"{len(ours)} signatures for {COUNT} requests")
    wrong = 0
    for request, got in zip(requests, ours):
        wanted = botocore_signs(request)
        if got != wanted:
            wrong += 1
            if wrong <= 3:
                print(f"{request}\n  ours     {got}\n  botocore {wanted}")
    # The test can fail: another secret has another signature.
    other = dict(requests[0], secret=requests[0]["secret"] + "x")
    if botocore_signs(other) == ours[0]:
        sys.exit("a signature does not depend on the secret")
    if wrong:
        sys.exit(f"{wrong} of {COUNT} signatures differ")
    print(f"{COUNT} signatures are those of botocore")


if __name__ == "__main__":
    main()
