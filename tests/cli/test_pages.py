#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions: all that --help lists is in them, bash and fish complete it, mandoc finds no fault."""
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import unittest

from cli import PROGRAMS, ROOT, TIMEOUT_S, TOOLS, Case, main, run

MAN = ROOT / "docs" / "man"
SHELLS = ("bash", "zsh", "fish")
# What readline breaks words at, of what occurs here.
BREAKS = ":="
WRONG = "@@"  # no option takes it


def page(program, *words):
    done = run(program, "--print-page", *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.decode()


def manual(name):
    """A page of docs/man, as its program prints it."""
    program = name[:-2] if name.endswith(".1") else "presto-load"
    return page(program, "man", MAN / name)


def listed(program):
    """(letter, name, argument) of each option that --help lists; '' for none."""
    text = run(program, "--help").stdout.decode()
    return re.findall(r"^  (?:-(\w),|   ) --([a-z0-9-]+)(?: ([^\s]+))?", text, re.MULTILINE)


def as_text(roff):
    """Roff without its escapes."""
    return roff.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")


class Bash:
    """The completion function of a program, called as readline calls it."""

    def __init__(self, program):
        self.program, self.script = program, page(program, "bash")

    def complete(self, line):
        """The replies, and what readline was asked for besides."""
        words = []
        for word in re.findall(r"\S+|\s+$", line):
            words += [""] if word.isspace() else re.findall(f"[{BREAKS}]+|[^{BREAKS}]+", word)
        done = subprocess.run(
            ["bash", "--norc", "-c", f'''
set -u
{self.script}
compopt() {{ printf 'OPTION %s\\n' "$2"; }}
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
COMP_WORDS=({" ".join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}
COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
complete -p {self.program} >/dev/null
_{self.program.replace("-", "_")} {self.program} {shlex.quote(words[-1])} ""
((${{#COMPREPLY[@]}} == 0)) || printf 'REPLY %s\\n' "${{COMPREPLY[@]}}"'''],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert (done.returncode, done.stderr) == (0, ""), (line, done)
        replies = re.findall(r"^REPLY (.*)$", done.stdout, re.MULTILINE)
        return replies, re.findall(r"^OPTION (.*)$", done.stdout, re.MULTILINE)

    def words(self, line):
        return self.complete(f"{self.program} {line}")[0]


class Pages(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bash = {program: Bash(program) for program in PROGRAMS}

    def test_a_manual_page_has_each_option_with_its_argument_and_its_text(self):
        for program in PROGRAMS:
            text = as_text(manual(f"{program}.1"))
            found = re.findall(r'^\.It Fl (?:(\w) , Fl )?--?-?([a-z0-9-]+)(?: Ar "([^"]*)")?$', text, re.MULTILINE)
            self.assertEqual([(letter, name, argument) for letter, name, argument in found], listed(program))
            told = re.sub(r"\s+", " ", run(program, "--help").stdout.decode())
            for letter, name, _ in listed(program):
                own = re.search(rf"^\.It Fl (?:\w , Fl )?-{name}\b.*\n((?:[^.].*\n)+)", text, re.MULTILINE)
                with self.subTest(program=program, option=name):
                    self.assertIsNotNone(own)
                    words = re.sub(r"\s+", " ", own[1]).split(" Default: ")[0].strip().rstrip(".")
                    self.assertIn(words[1:], told)  # its first letter may be a capital one

    def test_a_manual_page_has_the_groups_the_usage_and_the_exit_codes_of_help(self):
        for program in PROGRAMS:
            text, told = as_text(manual(f"{program}.1")), run(program, "--help").stdout.decode()
            groups = re.findall(r"^(\S.*):$", told.split("\n\n", 1)[1], re.MULTILINE)
            self.assertEqual(re.findall(r"^\.Ss (.*)$", text, re.MULTILINE), groups)
            codes = re.findall(r"\b(\d) [a-z]", re.search(r"^Exit: ((?:.+\n)+)", told, re.MULTILINE)[1])
            self.assertEqual(re.findall(r"^\.It (\d)$", text, re.MULTILINE), codes)
            self.assertIn("$ " + re.search(r"^Example: (.*)$", told, re.MULTILINE)[1], text)
            usage = re.match(r"Usage: ((?:.+\n)+?)(?=\S)", told)[1]
            self.assertEqual(text.split(".Sh SYNOPSIS\n")[1].split(".Sh ")[0].count(".Nm\n"), usage.count(program))

    def test_all_options_of_help_are_completed_in_each_shell(self):
        for program in PROGRAMS:
            names = {name for _, name, _ in listed(program)}
            letters = {letter for letter, _, _ in listed(program) if letter}
            takers = {name for _, name, argument in listed(program) if argument}
            self.assertEqual(set(self.bash[program].words("-")), {f"--{n}" for n in names} | {f"-{c}" for c in letters})
            zsh = page(program, "zsh")
            self.assertEqual(set(re.findall(r"--([a-z0-9-]+)=?[}\[]", zsh)), names)
            self.assertEqual(set(re.findall(r"--([a-z0-9-]+)=[}\[]", zsh)), takers)
            self.assertEqual(set(re.findall(r"\{-(\w)\+?,", zsh)), letters)
            fish = page(program, "fish")
            self.assertEqual(set(re.findall(r"^complete .*? -l ([a-z0-9-]+)\b", fish, re.MULTILINE)), names)
            self.assertEqual(set(re.findall(r"^complete .*? -l ([a-z0-9-]+) -(?:x|r)\b", fish, re.MULTILINE)), takers)
            self.assertEqual(set(re.findall(r"^complete .*? -s (\w) -l", fish, re.MULTILINE)), letters)

    def test_the_words_of_an_argument_are_those_that_the_program_lists(self):
        """Of each option that refuses a wrong word with a list of the right ones."""
        seen = set()
        for program in PROGRAMS:
            for _, name, argument in listed(program):
                if not argument:
                    continue
                command = "recode" if program == "presto-inspect" else "x"
                said = run(program, f"--{name}={WRONG}", command, "x").stderr
                known = re.search(r"is not one of ([^;\n]*)", said) or re.search(r"there are ([a-z, -]+?)(?:, and .*)?$", said, re.MULTILINE)
                if known is None or "," not in known[1] and " or " not in known[1]:
                    continue
                right = {re.sub(r":.*", ":", word) for word in re.split(r", (?:or )?| or ", known[1].strip())}
                with self.subTest(program=program, option=name):
                    self.assertEqual(set(self.bash[program].words(f"--{name} ")), right)
                seen.add(name)
        self.assertLessEqual({"shuffle", "format", "verify", "order", "index", "cache", "on-error", "storage", "file-compression"}, seen)

    def test_words_of_the_library_are_those_that_it_has(self):
        told = " ".join(run("presto-write", "--help").stdout.decode().split())
        pipelines = re.search(r"Built-in pipelines: ([a-z0-9, -]*[a-z0-9])\b A", told)[1].split(", ")
        self.assertEqual(self.bash["presto-write"].complete("presto-write -p ")[0], pipelines)
        known = re.search(r"known: (.*?)\)", run("presto-write", "-c", WRONG).stderr)[1].split(", ")
        codecs = self.bash["presto-write"].words("--codec ")
        self.assertEqual(codecs, [codec for codec in known if codec in codecs])
        for codec in known:  # and each that this build has
            done = run("presto-write", "-c", codec, "-p", "cv", "-o", "", "x")
            self.assertEqual(codec in codecs, "--output" in done.stderr, done.stderr)
        self.assertLessEqual({"concatenated", "decoded", "resized"}, set(self.bash["presto-load"].words("--to ")))

    def test_bash_completes_the_end_of_what_stands_before_the_cursor(self):
        for program, line, replies, wishes in [
                ("presto-load", "--shuf", ["--shuffle"], []),
                ("presto-load", "--shuffle f", ["full"], []),
                ("presto-load", "--shuffle=f", ["full"], []),
                ("presto-load", "--shuffle=bu", ["buffer:"], ["nospace"]),
                ("presto-load", "--cache mem", ["memory:"], ["nospace"]),
                ("presto-load", "--index keep", ["keep", "keep:"], []),
                ("presto-load", "--index keep:", [], ["dirnames"]),
                ("presto-load", "--index keep:/tm", [], ["dirnames"]),
                ("presto-load", "-j 4 --verify h", ["header"], []),
                ("presto-load", "-p ./cv", [], ["default"]),
                ("presto-load", "--verify header pho", [], ["default"]),
                ("presto-load", "--epochs ", [], []),
                ("presto-write", "-o da", [], ["dirnames"]),
                ("presto-write", "--strategy x.y", [], ["default"]),
                ("presto-sweep", "--codecs none,zs", ["none,zstd"], []),
                ("presto-sweep", "--codecs=none,zs", ["none,zstd"], []),
                ("presto-inspect", "ver", ["verify"], []),
                ("presto-inspect", "verify x", [], ["default"]),
                ("presto-inspect", "cat --rec", ["--record"], []),
                ("presto-inspect", "verify --rec", ["--records"], []),
                ("presto-make-photos", "x", [], []),
                ("presto-make-photos", "--format ", ["jpeg", "png16"], [])]:
            with self.subTest(program=program, line=line):
                self.assertEqual(self.bash[program].complete(f"{program} {line}"), (replies, wishes))

    def test_a_bash_with_a_terminal_completes_what_is_typed(self):
        script = self.new("completion")
        script.write_text(self.bash["presto-load"].script)
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        shell = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=theirs, stdout=theirs, stderr=theirs,
                                 cwd=self.folder, start_new_session=True,
                                 env={"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": "ready> ", "INPUTRC": "/dev/null"})
        os.close(theirs)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)  # first
        shown = ""

        def until(text):
            nonlocal shown
            while text not in shown:
                self.assertTrue(select.select([ours], [], [], TIMEOUT_S)[0], shown)
                shown += os.read(ours, 4096).decode(errors="replace")
            shown = shown.split(text, 1)[1]

        until("ready> ")
        os.write(ours, f". {script}\n".encode())
        until("ready> ")
        for typed, completed in [("presto-load --shuf\t", "presto-load --shuffle "), ("bl\t", "blocks:"), ("64 --cache=mem\t", "--cache=memory:")]:
            os.write(ours, typed.encode())
            until(completed)

    def test_mandoc_finds_nothing_to_complain_about(self):
        mandoc = shutil.which("mandoc")
        if mandoc is None:
            self.skipTest("mandoc is not installed")
        folder = self.new("man")
        names = sorted(path.name for path in MAN.iterdir())
        self.assertEqual({f"{program}.1" for program in PROGRAMS} | {"presto.7", "presto-dataset.5"}, set(names))
        for name in names:
            path = folder / f"man{name[-1]}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(manual(name))
        for path in sorted(folder.rglob("presto*")):
            done = subprocess.run([mandoc, "-Tlint", path], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            # It looks for other pages among those that are installed; ours have a test of their own.
            faults = [line for line in (done.stdout + done.stderr).splitlines() if not re.search(r"referenced manual not found: Xr presto\b", line)]
            self.assertEqual(faults, [], path.name)
            shown = subprocess.run([mandoc, "-Tutf8", "-Owidth=80", path], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
            plain = re.sub(".\b", "", shown.stdout)  # bold is overstruck
            for _, option, _ in listed(path.stem) if path.stem in PROGRAMS else []:
                self.assertRegex(plain, rf"(?m)^ +(-\w, )?--{option}\b")

    def test_the_pages_that_a_manual_page_names_are_there(self):
        for path in MAN.iterdir():
            for name, section in re.findall(r"^\.Xr (\S+) (\d)", path.read_text(), re.MULTILINE):
                self.assertTrue((MAN / f"{name}.{section}").is_file(), (path.name, name))

    def test_the_commands_of_a_manual_page_have_options_that_there_are(self):
        count = 0
        for path in MAN.iterdir():
            for program, words in re.findall(r"\$ (presto-[a-z-]+) (.*)$", path.read_text(), re.MULTILINE):
                known = {f"--{name}" for _, name, _ in listed(program)} | {f"-{letter}" for letter, _, _ in listed(program)}
                self.assertLessEqual(set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", words)), known, path.name)
                count += 1
        self.assertGreater(count, 10)

    def test_the_shells_take_their_scripts(self):
        folder = self.new("scripts")
        folder.mkdir()
        for shell in SHELLS:
            if shutil.which(shell) is None:
                print(f"{shell} is not installed: its completions are not run")
                continue
            for program in PROGRAMS:
                path = folder / f"{program}.{shell}"
                path.write_text(page(program, shell))
                done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), path.name)

    @unittest.skipIf(shutil.which("fish") is None, "fish is not installed")
    def test_fish_completes(self):
        for program, line, replies in [("presto-load", "--shuffle bl", ["blocks:"]), ("presto-load", "--verify h", ["header"]),
                                       ("presto-inspect", "rep", ["repair"]), ("presto-sweep", "--codecs none,zst", ["none,zstd"])]:
            script = self.new("script")
            script.write_text(page(program, "fish"))
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{program} {line}'"], capture_output=True, text=True,
                                  timeout=TIMEOUT_S, check=True, env={**os.environ, "HOME": str(self.folder)}, cwd=self.folder)
            self.assertEqual([reply.split("\t")[0] for reply in done.stdout.splitlines()], replies)

    @unittest.skipIf(shutil.which("zsh") is None, "zsh is not installed")
    def test_zsh_completes(self):
        folder = self.new("functions")
        folder.mkdir()
        (folder / "_presto-load").write_text(page("presto-load", "zsh"))
        (folder / "program").write_text(r'''
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; fpath=(%s $fpath); autoload -U compinit; compinit -u -D; compdef _presto-load presto-load; bindkey '^I' expand-or-complete; print rea''dy"
zpty -r -m z x '*ready*'
zpty -w -n z $'presto-load --verify he\t'
zpty -r -m z x '*header*' && print completed
''' % folder)
        done = subprocess.run(["zsh", "-f", folder / "program"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertIn("completed", done.stdout, done)

    def test_the_option_behind_it_is_not_listed_and_refuses_what_is_wrong(self):
        for program in PROGRAMS:
            self.assertNotIn("print-page", run(program, "--help").stdout.decode())
            for words in ([], ["man"], ["csh"], ["bash", "x"]):
                self.assert_usage(run(program, "--print-page", *words), "man TEMPLATE, bash, zsh or fish")
        self.assert_fails(run("presto-load", "--print-page", "man", self.new("missing")), 1, "cannot open", "No such file")
        wrong = self.new("wrong")
        wrong.write_text(".Sh NAME\n@nothing@\n")
        self.assert_fails(run("presto-load", "--print-page", "man", wrong), 1, "nothing stands for @nothing@")
        with open("/dev/full", "wb") as full:
            self.assert_fails(run("presto-load", "--print-page", "bash", stdout=full), 1, "stdout", "No space left")


if __name__ == "__main__":
    main()
