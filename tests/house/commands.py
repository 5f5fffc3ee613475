#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command that the documents, --help and the programs' own advice tell a user to run, run as it would be pasted.

The programs are installed into a prefix that is first on the PATH. Each command runs in a pseudo-terminal of 80 columns,
in a scratch folder with the photos that README's first command makes.

pages.py says where commands stand in a document, and lists those that are not run, with the reason: what they name must be there,
scripts, options, presets. In the output of a session a number stands for any number, " ... " for anything within the line and a line
"..." for any lines. All blocks of a document run in one folder, in order. `Code spans` may also name a command that still lacks
its operands. Each row of the table of docs/data.md has one whole command, which runs on the data that samples.py makes; those of
presto-write run as presto-load, too.

Usage: commands.py ROOT BUILD_DIR
"""
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import fcntl
import termios
import threading

import pages
import samples

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
PROGRAMS = ["presto-make-photos", "presto-sweep", "presto-write", "presto-load", "presto-inspect"]
PROGRAM = rf"(?:{'|'.join(PROGRAMS)})\b"
# Where the words of the programs come from.
SOURCES = ["base", "storage", "records", "steps", "loader", "profile", "tools"]
# What a command that is only named may lack.
INCOMPLETE = re.compile(r"is missing|needs an argument|go together")
LIMIT_S = 600


def line_pattern(line):
    parts = re.split(rf"(\.\.\.|{NUMBER}|\s+)", line)
    out = ""
    for part in parts:
        if part == "...":
            out += ".*"
        elif re.fullmatch(NUMBER, part or ""):
            out += NUMBER
        elif part and part.isspace():
            out += r"\s+"
        else:
            out += re.escape(part or "")
    return out


def matches(expected, got):
    pattern = ""
    for line in expected:
        pattern += r"(?:.*\n)*" if line.strip() == "..." else line_pattern(line.rstrip()) + r"[ \t]*\n"
    return re.fullmatch(pattern, got) is not None


def read_all(descriptor, parts):
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except OSError:  # the end of a terminal
        pass


class Desk:
    """Where commands run: an environment with the installed programs, and counts."""

    def __init__(self, root, build, scratch):
        self.root, self.scratch = root, scratch
        self.ran = self.checked = self.failed = 0
        self.checkout = pages.Checkout(root, build)
        prefix, shims = scratch / "prefix", scratch / "shims"
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        shims.mkdir()
        (shims / "python3").symlink_to(sys.executable)
        # A sweep of what its options do not name otherwise takes minutes. Options that are given win.
        (shims / "presto-sweep").write_text(f'#!/bin/sh\nexec "{prefix}/bin/presto-sweep" --samples 8 --runs 1 --decide-time 0 '
                                            '--run-time 0 --codecs none,zstd:1 "$@"\n')
        # A fifth of the photos that a user makes shows the same; the last option wins.
        (shims / "presto-make-photos").write_text('#!/bin/sh\ncase " $* " in *" -n 200 "*) set -- "$@" -n 40;; esac\n'
                                                  f'exec "{prefix}/bin/presto-make-photos" "$@"\n')
        for shim in ("presto-sweep", "presto-make-photos"):
            (shims / shim).chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{shims}:{prefix}/bin:{os.environ['PATH']}", TERM="xterm",
                                CMAKE_PREFIX_PATH=str(prefix), PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig")
        self.environment.pop("COLUMNS", None)
        self.photos = None

    def folder(self, name):
        """A fresh folder with what a checkout has, and with the photos of the first one."""
        folder = self.scratch / name
        folder.mkdir()
        for part in ("examples", "scripts", "tests", "pipelines"):
            (folder / part).symlink_to(self.root / part)
        (folder / "stream.c").symlink_to(self.root / "examples" / "stream.c")  # docs/c-api.md compiles it
        if self.photos:
            shutil.copytree(self.photos, folder / "photos", copy_function=os.link)
        return folder

    def paste(self, command, folder):
        """Exit code and what the terminal shows, without the progress lines that were drawn over."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        parts = []
        reader = threading.Thread(target=read_all, args=(master, parts))
        reader.start()
        process = subprocess.Popen(["bash", "-eo", "pipefail", "-c", command], cwd=folder, env=self.environment,
                                   stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            code = process.wait()
        reader.join()
        os.close(master)
        self.ran += 1
        shown = b"".join(parts).decode(errors="replace").replace("\r\n", "\n")
        return code, re.sub(r"\r[^\n\r]*?\x1b\[K", "", shown).replace("\r", "")

    def fail(self, where, command, code, shown, wanted=None):
        self.failed += 1
        print(f"{where}: {command}\n-- exit {code}, shown:\n{shown}" + (f"-- promised:\n{wanted}\n" if wanted else ""))

    def look_at(self, where, command):
        """Is there what the command names?"""
        self.checked += 1
        faults = list(self.checkout.faults(command))
        if faults:
            self.fail(where, command, "none", "".join(f"{fault}\n" for fault in faults))

    def try_out(self, where, command, folder):
        """Run a command of a block, unless it is one of those that are not run."""
        if pages.reason(command) is None:
            self.expect(where, command, folder)
        else:
            self.look_at(where, command)

    def expect(self, where, command, folder):
        code, shown = self.paste(command, folder)
        if code != 0:
            self.fail(where, command, code, shown)
        return shown


def run_document(desk, path):
    name = path.relative_to(desk.root)
    text = path.read_text()
    folder = desk.folder(path.stem)
    for number, command in pages.strays(text):
        desk.fail(f"{name}:{number}", command, "none", "a command in a block of something else\n")
    for number, command in pages.commands(text):
        desk.try_out(f"{name}:{number}", command, folder)
    for command in pages.named(text):
        desk.try_out(name, command, folder)
    for number, command, expected in pages.sessions(text):
        code, shown = desk.paste(command, folder)
        if code != 0 or (expected and not matches(expected, shown)):
            desk.fail(f"{name}:{number}", command, code, shown, "\n".join(expected))
    if desk.photos is None:
        desk.photos = folder / "photos"
    if path.name == "data.md":
        return run_rows(desk, name, text, folder)
    for span in sorted(set(re.findall(rf"`({PROGRAM} [^`]*)`", text))):
        check_named(desk, name, " ".join(span.split()), folder)


def run_rows(desk, name, text, folder):
    samples.make(folder)
    for command in re.findall(rf"made by `({PROGRAM} [^`]*)`", text):
        desk.expect(name, command, folder)
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    for row in rows:
        spans = re.findall(r"`([^`]*)`", row)
        if len(spans) != 1 or not re.match(PROGRAM, spans[0]):
            desk.fail(name, row, "none", "a row without one command\n")
            continue
        shutil.rmtree(folder / "out", ignore_errors=True)
        desk.expect(name, spans[0], folder)
        if spans[0].startswith("presto-write "):
            online = re.sub(r" -u \S+", "", spans[0].replace("presto-write", "presto-load --format null").replace(" -o out", ""))
            desk.expect(name, online, folder)
    if len(rows) < 10:
        desk.fail(name, "the table", "none", f"{len(rows)} rows\n")


def check_named(desk, where, command, folder):
    """It runs, or lacks nothing but operands and arguments, or cannot be run here."""
    if pages.reason(command) is not None:
        return
    code, shown = desk.paste(command, folder)
    if code != 0 and not (code == 2 and INCOMPLETE.search(shown)):
        desk.fail(where, command, code, shown)


def run_examples(desk):
    """The example of each --help, in the order in which they feed each other; then what the sweep said to do next."""
    folder = desk.folder("help")
    shutil.rmtree(folder / "photos")
    for program in PROGRAMS:
        _, text = desk.paste(f"{program} --help", folder)
        examples = re.findall(r"^Example: (.*(?:\n +.*)*)", text, re.MULTILINE)
        if len(examples) != 1:
            desk.fail(program, "--help", 0, text, "one example")
        for example in examples:
            shown = desk.expect(f"{program} --help", " ".join(example.split()), folder)
            if program == "presto-sweep":
                run_next(desk, shown, folder)


def run_next(desk, shown, folder):
    commands = re.findall(rf"^  ({PROGRAM}.*)$", shown.partition("\nNext:\n")[2].replace("\n\n", "\n$\n").partition("\n$\n")[0],
                          re.MULTILINE)
    if not commands:
        desk.fail("presto-sweep", "Next:", 0, shown, "commands")
    for command in commands:
        desk.expect("presto-sweep, Next", command, folder)


def run_advice(desk):
    """"Try '...'" of usage errors, and every command and option that a message names."""
    folder = desk.folder("advice")
    of_others = re.compile("'aws [^']*'")  # commands of others, as a message quotes them
    options = {"--print-page"}  # by which the build gets manual pages; --help does not list it
    for program in PROGRAMS:
        code, shown = desk.paste(f"{program} --no-such-option", folder)
        (advice,) = re.findall(r"^Try '(.*)'\.$", shown, re.MULTILINE)
        options |= set(re.findall(r"--[a-z][a-z-]+", desk.expect(program, advice, folder)))
    for directory in SOURCES:
        for path in sorted((desk.root / directory).rglob("*.c")):
            name = path.relative_to(desk.root)
            text = re.sub(r'"\s*\n\s*"', "", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL))
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
                for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+[a-z]", of_others.sub("", literal))) - options:
                    desk.fail(name, option, "none", f"no program has this option; the text is: {literal}\n")
                for command in re.findall(rf"{PROGRAM}(?: (?:-p|--[a-z-]+|info|verify|cat|index|repair|recode)\b)+", literal):
                    if not literal.startswith(command + " "):  # the line of usage
                        check_named(desk, name, command, folder)


def check_dataset_listing(desk):
    """The files that docs/format.md lists are those of a dataset with everything."""
    folder = desk.folder("listing")
    desk.expect("docs/format.md", "presto-write -p cv -u concatenated -c zstd:3+dict -s 8 -o dataset photos", folder)
    text = (desk.root / "docs" / "format.md").read_text()
    listing = text.partition("A dataset is a folder:\n\n```text\n")[2].partition("\n```")[0]
    listed = {line.split()[0] for line in listing.splitlines()} - {"..."}
    there = {path.name for path in (folder / "dataset").iterdir()}
    kinds = {re.sub(r"data-\d{5}", "data-00000", name) for name in there}
    if listed != kinds:
        desk.fail("docs/format.md", "A dataset is a folder", "none", f"{sorted(kinds)}\n", sorted(listed))


def main():
    root, build = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as scratch:
        desk = Desk(root, build, pathlib.Path(scratch))
        for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]:
            run_document(desk, path)
        run_examples(desk)
        run_advice(desk)
        check_dataset_listing(desk)
    print(f"{desk.ran} commands, {desk.checked} more only looked at, {desk.failed} failures")
    return 1 if desk.failed or desk.ran < 40 or desk.checked < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
