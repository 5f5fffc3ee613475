#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--help, --version, and what is said about options that are wrong."""
import contextlib
import json
import os
import re
import socket
import subprocess
import time

from cli import PROGRAMS, ROOT, TIMEOUT_S, TOOLS, Case, main, run


def options_of(program):
    """(letter, name, argument) of each option that --help lists; '' for none."""
    text = run(program, "--help").stdout.decode()
    return re.findall(r"^  (?:-(\w),|   ) --([a-z0-9-]+)(?: ([^\s]+))?", text, re.MULTILINE)


class Help(Case):
    def test_help_goes_to_stdout_and_fits_80_columns(self):
        for program in PROGRAMS:
            for option in ("--help", "-h"):
                with self.subTest(program=program, option=option):
                    done = run(program, option)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    lines = done.stdout.decode().splitlines()
                    self.assertTrue(lines[0].startswith(f"Usage: {program} "))
                    self.assertEqual([line for line in lines if len(line) > 80 or line != line.rstrip()], [])
                    self.assertIn("Example:", done.stdout.decode())

    def test_help_lists_each_option_once_and_says_if_it_takes_an_argument(self):
        for program in PROGRAMS:
            listed = options_of(program)
            self.assertGreater(len(listed), 5)
            for names in ([name for _, name, _ in listed], [letter for letter, _, _ in listed if letter]):
                self.assertEqual(sorted(names), sorted(set(names)), program)
            for letter, name, argument in listed:
                with self.subTest(program=program, option=name):
                    if argument:
                        self.assert_usage(run(program, "x", f"--{name}"), f"option '--{name}' needs an argument")
                    else:
                        self.assert_usage(run(program, f"--{name}=1", "x"), f"option '--{name}' takes no argument")
                    if letter and argument:
                        self.assert_usage(run(program, "x", f"-{letter}"), f"option '-{letter}' needs an argument")

    def test_help_says_defaults_whatever_stands_before_it(self):
        for program, options, default in [("presto-load", ("-e", "7", "--verify", "none"), "passes over the data [default: 1]"),
                                          ("presto-load", ("--prefetch-bytes", "1MiB"), "e.g. 64MiB [default: 256MiB]"),
                                          ("presto-sweep", ("--run-time", "2"), "cached ones [default: 0.25]"),
                                          ("presto-make-photos", ("--format", "jpeg"), "16 bits) [default: jpeg]")]:
            with self.subTest(program=program, options=options):
                text = run(program, *options, "--help").stdout
                self.assertIn(default, " ".join(text.decode().split()))
                self.assertEqual(text, run(program, "--help").stdout)

    def test_a_choice_that_is_nearly_right_is_told(self):
        for program, option, text, meant in [("presto-load", "--verify", "hedaer", "header"), ("presto-load", "--format", "arow", "arrow"),
                                             ("presto-load", "--order", "Strict", "strict"), ("presto-inspect", "--file-compression", "gzp", "gzip"),
                                             ("presto-make-photos", "--format", "jpg", "jpeg"), ("presto-load", "--verify", "9", None)]:
            with self.subTest(program=program, option=option):
                done = run(program, option, text, "x")
                self.assert_usage(done, f"{option}: '{text}' is not one of ")
                self.assertEqual(re.findall(r"; did you mean '(.*)'\?", done.stderr), [meant] if meant else [])

    def test_which_codecs_tensorflow_reads_is_said_where_one_is_chosen(self):
        done = run("presto-write", "--tensorflow-readable", "-c", "zstd", "-p", "cv", "-o", self.new(), self.make_photos())
        codecs = re.search(r"that every TensorFlow reads: ([a-z]+(?:, [a-z]+)*)", done.stderr)[1].split(", ")
        self.assertEqual(codecs, ["none", "zlib", "gzip"])
        for program, option, words in (("presto-write", "codec", "TensorFlow reads none, zlib and gzip"),
                                       ("presto-write", "tensorflow-readable", "all but none, zlib and gzip"),
                                       ("presto-inspect", "codec", "TensorFlow reads none, zlib and gzip"),
                                       ("presto-sweep", "tensorflow-readable", "every TensorFlow reads: none, zlib, gzip")):
            with self.subTest(program=program, option=option):
                text = run(program, "--help").stdout.decode()
                (said,) = re.findall(rf"--{option}\b(.*?)(?=\n +-|\n\n)", text, re.DOTALL)
                self.assertIn(words, " ".join(said.split()))
        readme = " ".join((ROOT / "README.md").read_text().split())
        self.assertIn("TensorFlow reads shards of the codecs `none`, `zlib` and `gzip`", readme)

    def test_unknown_options_are_refused(self):
        for program in PROGRAMS:
            for word, named in [("--no-such-option", "--no-such-option"), ("--no-such=1", "--no-such"), ("-Z", "-Z")]:
                with self.subTest(program=program, word=word):
                    done = run(program, word, "x")
                    self.assert_usage(done, f"unknown option '{named}'")
                    self.assertNotIn("did you mean", done.stderr)

    def test_an_unknown_option_names_the_one_that_was_meant(self):
        for program, word, meant in [("presto-load", "--thread-count", None), ("presto-load", "--treads=4", "--threads"),
                                     ("presto-load", "--feature-s", "--features"), ("presto-write", "--shard-byte-s", "--shard-bytes"),
                                     ("presto-sweep", "--codec-s=lz4", "--codecs"), ("presto-inspect", "--jsno", "--json"),
                                     ("presto-make-photos", "--fromat", "--format"), ("presto-sweep", "--cahce=1", None)]:
            with self.subTest(program=program, word=word):
                named = word.split("=")[0]
                self.assert_usage(run(program, word, "x"), f"unknown option '{named}'" + (f", did you mean '{meant}'?" if meant else ""))

    def test_a_very_long_unknown_option_is_told(self):
        for program in PROGRAMS:
            self.assert_usage(run(program, "--" + "threads" * 100, "x"), "unknown option '--threadsthreads")

    def test_version_names_program_and_version(self):
        for program in PROGRAMS:
            done = run(program, "--version")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout.decode(), rf"^{program} \(Presto\) \d+\.\d+\.\d+\n$")

    def test_help_into_a_full_device_fails(self):
        for program in PROGRAMS:
            with open("/dev/full", "wb") as full:
                self.assert_fails(run(program, "--help", stdout=full), 1, "stdout", "No space left")

    def test_operands_are_required(self):
        self.assert_usage(run("presto-load"), "missing")
        self.assert_usage(run("presto-write"), "missing")
        self.assert_usage(run("presto-write", "-p", "cv", "x"), "--output is missing")
        self.assert_usage(run("presto-write", "-o", "x", "x"), "--pipeline is missing")
        self.assert_usage(run("presto-sweep", "-p", "cv", "x"), "--output is missing")
        self.assert_usage(run("presto-sweep", "-o", "x", "x"), "--pipeline is missing")
        self.assert_usage(run("presto-inspect"), "missing")

    def test_numbers_are_strict(self):
        for option, text in [("-j", "2x"), ("-j", "-1"), ("-j", ""), ("-j", " 2"), ("-j", "1e3"), ("-b", "0"),
                             ("-e", "0"), ("--limit", "0"), ("--seed", "18446744073709551616"),
                             ("--prefetch-bytes", "lots"), ("--prefetch-bytes", "1.5GiB"), ("--world", "0"),
                             ("--shuffle", "buffer:"), ("--shuffle", "buffer:0"), ("--shuffle", "some"),
                             ("--format", "csv"), ("--verify", "maybe"), ("--on-error", "skip:x"),
                             ("--on-error", "skip:101%"), ("--on-error", "skip:"), ("--order", "random")]:
            with self.subTest(option=option, text=text):
                self.assert_usage(run("presto-load", option, text, "x"), f"'{text.split(':')[-1].rstrip('%')}")

    def test_a_number_that_is_too_large_is_told_the_most(self):
        most, more = 2**64 - 1, 2**64
        for option, text, part in [("--seed", more, f"'{more}' is too large: the most is {most}"),
                                   ("--split-seed", more, f"the most is {most}"),
                                   ("--on-error", f"skip:{more}", f"the most is {most - 1}"), ("-j", more, "the most is 4096"),
                                   ("--prefetch-bytes", more, f"'{more}' is too large: the most is {most}"),
                                   ("--prefetch-bytes", "16777216TiB", "is too large: the most is 16777215TiB")]:
            with self.subTest(option=option, text=text):
                self.assert_usage(run("presto-load", option, text, "x"), part)

    def test_empty_names_are_refused(self):
        for program in ("presto-write", "presto-sweep"):
            self.assert_usage(run(program, "-p", "cv", "-o", "", "x"), "--output: the name is empty")
            self.assert_usage(run(program, "-p", "cv", "-o", "x", "x", ""), "SOURCE is empty")
        self.assert_usage(run("presto-load", ""), "is empty")
        self.assert_usage(run("presto-inspect", ""), "PATH is empty")

    def test_a_message_is_one_line_whatever_a_name_holds(self):
        name = "two\nlines \x1b[31m\ttab\x7f"
        for program in ("presto-load", "presto-inspect"):
            done = run(program, name)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.splitlines()[0], rf"^{program}: two\\nlines \\x1b\[31m\\x09tab\\x7f: ")
        self.assert_usage(run("presto-load", "--format", name, "x"), r"two\nlines \x1b")

    def test_a_message_is_one_write_so_that_others_on_the_same_stderr_do_not_split_it(self):
        for arguments, code in [((self.write(), "--format", "null"), 0), ((self.new("missing"),), 1), (("--no-such",), 2)]:
            # A socket that keeps the writes apart.
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            with ours, theirs:
                done = subprocess.run([TOOLS / "presto-load", *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=theirs,
                                      timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, code)
                ours.setblocking(False)
                writes = []
                with contextlib.suppress(BlockingIOError):
                    while True:
                        writes.append(ours.recv(65536))
            self.assertNotEqual(writes, [])
            for text in writes:
                self.assertRegex(text, rb"\A(presto-load: |Try ')[^\n]+\n\Z")

    def test_names_that_are_not_utf8_do_not_spoil_the_json(self):
        odd = os.fsencode(self.new("odd")) + b"\xff"
        done = run("presto-write", "-p", self.pipeline, "--json", "-o", os.fsdecode(odd), self.make_photos())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["dataset"], os.fsdecode(odd[:-1]) + "\\xff")
        for command in ("info", "verify"):
            done = run("presto-inspect", command, "--json", os.fsdecode(odd))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["records"], self.photo_count)

    def test_no_file_takes_the_number_of_a_closed_standard_stream(self):
        photos = self.new("photos")
        photos.mkdir()
        for i in range(20):
            (photos / f"{i}.jpg").write_text("a text, and a message on stderr")
        (photos / "whole.jpg").write_bytes(next(self.make_photos().rglob("*.jpg")).read_bytes())
        for closed in [(2,), (1, 2), (0, 1, 2)]:
            out = self.new("dataset")

            def close():
                for file in closed:
                    os.close(file)

            done = run("presto-write", "-p", self.pipeline, "-j", "2", "-s", "1", "--on-error", "skip", "-o", out, photos,
                       preexec_fn=close)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            done = run("presto-inspect", "verify", out)
            self.assertEqual(done.returncode, 0, done.stdout)
        done = run("presto-load", out, preexec_fn=lambda: os.close(1))
        self.assert_fails(done, 1, "stdout: cannot write")
        process = subprocess.Popen([TOOLS / "presto-load", "--format", "null", "-e", "1000000000", out],
                                   preexec_fn=lambda: os.closerange(0, 3))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)  # first
        deadline = time.monotonic() + 60
        streams = []
        while streams != ["/dev/null"] * 3 and process.poll() is None and time.monotonic() < deadline:
            folder = f"/proc/{process.pid}/fd"
            try:
                streams = [os.readlink(f"{folder}/{n}") for n in "012"]
            except FileNotFoundError:
                pass  # not yet open
        self.assertEqual(streams, ["/dev/null"] * 3)

    def test_a_failure_of_stdout_is_told_once(self):
        out = self.write("-u", "concatenated")
        with open("/dev/full", "wb") as full:
            done = run("presto-load", "-q", "--format", "null", "--json", out, stdout=full)
        self.assert_fails(done, 1, "No space left")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_size_without_its_unit_gets_a_hint(self):
        self.assert_usage(run("presto-load", "--prefetch-bytes", "64M", "x"), "'64M' is ambiguous; write 64MiB")
        self.assert_usage(run("presto-load", "--prefetch-bytes", "2gb", "x"), "write 2GiB")

    def test_options_that_contradict_each_other_are_refused(self):
        for arguments, part in [(["--rank", "1"], "go together"), (["--rank", "2", "--world", "2"], "not below"),
                                (["--features", "image"], "--format npy, arrow, shm or raw"), (["--ring-bytes", "1MiB"], "--format shm"), (["--arrow-type", "x=list"], "--format arrow"),
                                (["--json"], "--stats FILE"),
                                (["--drop-last"], "--drop-last needs"),
                                (["--cache", "memory:1MiB"], "--cache: records"), (["--cache", "disk:1MiB"], "disk:DIR:SIZE"),
                                (["--cache", "disk:x:"], "--cache"), (["--cache", "disk:x:1MiB"], "--cache: records"),
                                (["--state", "x", "--order", "completion"], "--order strict"),
                                (["--raw-records", "--format", "raw"], "--raw-records needs"),
                                (["--raw-records", "-p", "cv"], "--raw-records goes without")]:
            with self.subTest(arguments=arguments):
                self.assert_usage(run("presto-load", *arguments, "x"), part)

    def test_help_steps_lists_steps_with_their_options(self):
        for program in ("presto-load", "presto-write"):
            done = run(program, "--help-steps")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for word in ("decode-image", "resize-image", "min-side", "random-crop", "read-file"):
                self.assertIn(word, done.stdout.decode())


if __name__ == "__main__":
    main()
