#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who asks S3, beside botocore: random environments and files of the AWS tools, with roles and single sign-on answered by one server.

Exits with 77 if botocore is not installed. Usage: keys.py RESOLVE_KEYS
"""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import cloud_servers

try:
    import botocore
    import botocore.session
    from botocore.exceptions import BotoCoreError, ClientError, InvalidConfigError, NoRegionError
except ImportError as reason:
    print(f"skipped: {reason} (scripts/setup --tests installs it)")
    sys.exit(77)

COUNT = int(os.environ.get("PRESTO_TEST_COUNT", 200))
PROFILES = ["default", "a", "b c", "d"]
ANY = "any"
ROLE = "arn:aws:iam::123456789012:role/reader"


class Cloud(cloud_servers.Cloud):
    """The keys that it gives are named by what they were asked with, so that two who ask alike get the same."""

    def give(self):
        with self.lock:
            about = self.about
        digest = hashlib.sha256(repr(about).encode()).hexdigest()
        made = (f"ASIA{digest[:16].upper()}", f"secret{digest[16:40]}", f"token{digest[40:]}", int(time.time()) + 7200)
        self.keys[made[0]] = made[1:]
        return made

    def sts(self, handler, body):
        form = dict(urllib.parse.parse_qsl(body.decode()))
        signer = handler.headers.get("Authorization", "").split("Credential=")[-1].split("/")
        # The key and the region that it was signed with.
        self.about = (sorted((k, v) for k, v in form.items() if k != "RoleSessionName" or "session" not in v), signer[0], signer[2:3])
        return super().sts(handler, body)

    def portal(self, handler, query, body):
        self.about = ("portal", handler.headers.get("x-amz-sso_bearer_token"), sorted(query.items()))
        return super().portal(handler, query, body)

    def agent(self, handler, *rest):
        self.about = ("agent", handler.path)
        return super().agent(handler, *rest)

    def metadata(self, handler, *rest):
        self.about = ("metadata",)
        return super().metadata(handler, *rest)


def section(rng, kind, profile, values):
    name = f'"{profile}"' if " " in profile and kind else profile
    head = f"[{kind + ' ' if kind else ''}{name}]"
    equals = rng.choice([" = ", "=", " =", ": "])
    lines = [head]
    for key, value in values.items():
        if rng.random() < 0.1:
            lines.append(rng.choice(["", "# a comment = 1", "; another"]))
        if isinstance(value, dict):
            lines += [f"{key} =", *(f"    {inner} = {text}" for inner, text in value.items())]
        else:
            lines.append(f"{key}{equals}{value}")
    return "\n".join(lines) + "\n"


def some(rng, share):
    return rng.random() < share


def static(rng, name):
    values = {"aws_access_key_id": f"AK{name}{rng.randrange(3)}", "aws_secret_access_key": "s/+" + name.replace(" ", "")}
    if some(rng, 0.4):
        values[rng.choice(["aws_session_token", "aws_security_token"])] = f"t+{rng.randrange(9)}="
    return values


def profile_values(rng, name, is_config):
    """Of one profile in one file."""
    values = {}
    if some(rng, 0.35):
        values.update(static(rng, name.replace(" ", "") + ("c" if is_config else "f")))
    if some(rng, 0.3):
        values["region"] = rng.choice(["eu-west-1", "us-west-2", "cn-north-1"])
    if is_config and some(rng, 0.25):
        values["role_arn"] = ROLE
        values[rng.choice(["source_profile"] * 4 + ["credential_source"])] = rng.choice(PROFILES)
        if "credential_source" in values:
            values["credential_source"] = rng.choice(["Environment", "EcsContainer", "Ec2InstanceMetadata"])
        if some(rng, 0.3):
            values["duration_seconds"] = "3600"
        if some(rng, 0.3):
            values["role_session_name"] = "mine"
    if is_config and some(rng, 0.1):
        values["web_identity_token_file"] = "TOKEN"
        values.setdefault("role_arn", ROLE)
    if is_config and some(rng, 0.15):
        values.update({"sso_account_id": "123456789012", "sso_role_name": "Reader of all"})
        values.update({"sso_session": "mine"} if some(rng, 0.5) else {"sso_start_url": "https://x/start", "sso_region": "eu-west-1"})
    if some(rng, 0.1):
        values["credential_process"] = "PROGRAM '" + name + "'"
    if is_config and some(rng, 0.15):
        values["s3"] = {"addressing_style": "path", "region": "no"}
    if is_config and some(rng, 0.1):
        values["endpoint_url"] = "http://127.0.0.1:9/of-profile"
    return values


def some_case(rng, folder, url):
    """Writes the files; returns the variables."""
    files = {}
    for is_config, name in ((True, "config"), (False, "credentials")):
        text = ""
        for profile in rng.sample(PROFILES, rng.randint(0, len(PROFILES))):
            values = profile_values(rng, profile, is_config)
            text += section(rng, "profile" if is_config and (profile != "default" or some(rng, 0.3)) else "", profile, values)
        if is_config and some(rng, 0.8):
            text += "[sso-session mine]\nsso_start_url = https://x/start\nsso_region = eu-west-1\n[services x]\ns3 =\n  endpoint_url = http://no\n"
        files[name] = text.replace("TOKEN", str(folder / "token")).replace("PROGRAM", f"'{folder}/give'")
        (folder / name).write_text(files[name])
    variables = {
        "HOME": str(folder), "PATH": os.environ["PATH"], "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"), "AWS_ENDPOINT_URL_STS": url, "AWS_ENDPOINT_URL_SSO": url,
        "AWS_ENDPOINT_URL_SSO_OIDC": url, "AWS_EC2_METADATA_SERVICE_ENDPOINT": url,
        "AWS_EC2_METADATA_DISABLED": rng.choice(["true", "true", "false"]),
    }
    if some(rng, 0.2):
        variables.update({"AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "env/secret"})
        if some(rng, 0.5):
            variables["AWS_SESSION_TOKEN"] = "env-token"
    if some(rng, 0.6):
        variables[rng.choice(["AWS_PROFILE", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"])] = rng.choice(PROFILES)
    if some(rng, 0.3):
        variables["AWS_DEFAULT_REGION"] = rng.choice(["eu-central-1", "us-east-1"])
    if some(rng, 0.15):
        variables.update({"AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / "token"), "AWS_ROLE_ARN": ROLE})
    if some(rng, 0.3):
        variables.update({"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN": cloud_servers.AGENT_TOKEN})
    if some(rng, 0.15):
        variables["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:9/of-variable"
    return variables


def ours(program, variables):
    done = subprocess.run([program], env=variables, capture_output=True, text=True, timeout=60, check=True)
    if done.stdout.startswith("error: "):
        return None, done.stdout
    return [bytes.fromhex(line).decode() for line in done.stdout.splitlines()], ""


def theirs(variables):
    """The keys, the token, region and endpoint; None and why not."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        # Where the tokens of single sign-on are kept was found when it was imported.
        cache = os.path.join(variables["HOME"], ".aws", "sso", "cache")
        botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR = cache
        botocore.tokens.SSOTokenProvider._SSO_TOKEN_CACHE_DIR = cache
        session = botocore.session.Session()
        keys = session.get_credentials()
        region = session.get_config_variable("region") or "us-east-1"
        if keys is None:
            return None, "none"
        keys = keys.get_frozen_credentials()
        try:
            endpoint = session.create_client("s3", region_name=region).meta.endpoint_url
        except InvalidConfigError:  # a client also looks for a token of single sign-on, whose session is not there
            return [keys.access_key, keys.secret_key, keys.token or "", region, None], ""
        return [keys.access_key, keys.secret_key, keys.token or "", region, "" if "amazonaws.com" in endpoint else endpoint], ""
    except NoRegionError:
        return None, ANY  # without a region, it knows no STS; we ask the one that is for all
    except (BotoCoreError, ClientError, ValueError, KeyError) as error:
        return None, f"{type(error).__name__}: {error}"
    finally:
        os.environ.clear()
        os.environ.update(before)


def main():
    seed = int(os.environ.get("PRESTO_TEST_SEED", time.time_ns() % 2**32))
    print(f"PRESTO_TEST_SEED={seed} botocore {botocore.__version__}")
    rng = random.Random(seed)
    wrong = resolved = failed = 0
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cloud = stack.enter_context(Cloud(folder))
        cloud.roles = {ROLE: None}
        cloud.sso_tokens = {"sso-1": "refresh-1"}
        (folder / "token").write_text(cloud_servers.WEB_TOKEN)
        cache = folder / ".aws" / "sso" / "cache"
        cache.mkdir(parents=True)
        for name in ("mine", "https://x/start"):
            (cache / f"{hashlib.sha1(name.encode()).hexdigest()}.json").write_text(json.dumps(
                {"startUrl": "https://x/start", "region": "eu-west-1", "accessToken": "sso-1", "expiresAt": "2099-01-01T00:00:00Z"}))
        give = folder / "give"
        give.write_text("#!/bin/sh\nprintf '{\"Version\": 1, \"AccessKeyId\": \"AKP\", \"SecretAccessKey\": \"%s\"}' \"$(echo \"$1\" | tr -d ' ')\"\n")
        give.chmod(0o700)
        cloud.why_not = lambda handler, service, digest: None  # whoever signs: the keys that come back say who did
        for number in range(COUNT):
            variables = some_case(rng, folder, cloud.url)
            mine, why_mine = ours(sys.argv[1], variables)
            other, why_other = theirs(variables)
            if why_other == ANY:
                continue
            resolved += other is not None
            failed += other is None
            if mine is not None and other is not None and other[4] is None:
                mine[4] = None
            if mine != other:
                wrong += 1
                if wrong <= 3:
                    print(f"case {number}: ours {mine} {why_mine}\n  botocore {other} {why_other}")
                    print({name: value for name, value in variables.items() if name not in ("HOME", "PATH")})
                    print((folder / "config").read_text(), "---", (folder / "credentials").read_text(), sep="\n")
    if wrong:
        sys.exit(f"{wrong} of {COUNT} differ")
    if resolved < COUNT / 4 or failed < COUNT / 50:
        sys.exit(f"{resolved} have keys, {failed} have none: what is compared?")
    print(f"{resolved + failed} environments give what botocore finds: {resolved} keys, {failed} failures")


if __name__ == "__main__":
    main()
