# SPDX-License-Identifier: Apache-2.0
"""The commands in a page of the documents: sessions, blocks of commands, and those that a test cannot run.

A fenced block marked `console` is a session: lines that start with "$ " are commands, the lines after a command are its output.
An indented block, or a fenced one without a language or marked `sh`, holds commands, one a line. A command goes on after a
trailing backslash or within quotes. All other fenced blocks hold none.
"""
import json
import re
import shlex
import shutil
import subprocess

MINUTES = "it takes minutes"
NETWORK = "it downloads"
ROOT_RIGHTS = "it installs packages of the system"
# Commands of the pages that are only checked, and why. What no line matches is run.
NOT_RUN = {
    r"scripts/demo\b": f"{ROOT_RIGHTS}; {MINUTES}",
    r"scripts/setup\b(?!.*--list)": ROOT_RIGHTS,
    r"tests/run\b": f"{ROOT_RIGHTS}; {MINUTES}",
    r"tests/chaos/hostile\b": f"{MINUTES}, in a build with a sanitizer",
    r"tests/recorded/record BUILD": "BUILD stands for any; cli.recorded runs it",
    r"tests/corpora/make NAME": "NAME stands for any; cli.corpora makes them",
    r"(cmake|ctest) ": MINUTES,
    r"(python3 -m venv \S+ && \. \S+ && )?pip install ": NETWORK,
    r"scripts/wheel\b": MINUTES,
    r"torchrun ": "it needs PyTorch; python.examples runs its program",
    r'python3 -c "import (sentencepiece|tokenizers)\b': "it needs a package; live.tokenizers runs the same",
    r"presto-\w+ .*\b(s3|https)://": "it needs a server; cli.remote runs the same against its own",
    r"presto-write --join\b": "it wants parts; cli.parts writes and joins them",
    r"presto-\w+ .*\bURL\b": "URL stands for any; cli.remote runs the same against its own",
    r"bench/": MINUTES,
    r"build/": "it is built with other options, or needs build/venv",
}
# Of blocks of commands.
LANGUAGES = (None, "sh", "bash", "shell")
CHECKOUT = ("scripts/", "tests/", "bench/", "examples/")


def blocks(text):
    """Yield (language, [(line number, line), ...]) of each block; the language of an indented one is None."""
    language, lines, before, fenced = None, [], "", False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if fence := re.match(r" *```(.*)", line):
            if lines or fenced:
                yield language, lines
            fenced, language, lines = not fenced, fence[1].strip() or None, []
        elif fenced or (line.startswith("    ") and (lines or not before.strip())):
            lines.append((number, line if fenced else line[4:]))
        elif lines:
            yield None, lines
            lines = []
        before = line


def sessions(text):
    """Yield (line number, command, expected output lines)."""
    for language, lines in blocks(text):
        command, expected, start = None, [], 0
        for number, line in lines if language == "console" else []:
            if command is not None and command.endswith("\\"):
                command = command[:-1] + line.strip()
            elif line.startswith("$ "):
                if command is not None:
                    yield start, command, expected
                command, expected, start = line[2:], [], number
            elif command is not None:
                expected.append(line)
        if command is not None:
            yield start, command, expected


def is_open(command):
    """Does the command go on in the next line?"""
    if command.endswith("\\"):
        return True
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return False


def commands(text):
    """Yield (line number, command) of the blocks of commands."""
    for language, lines in blocks(text):
        command, start = "", 0
        for number, line in lines if language in LANGUAGES else []:
            start = start if command else number
            command = f"{command}\n{line}" if command else line.strip()
            if command and not is_open(command):
                yield start, command
                command = ""
        if command:
            yield start, command


def strays(text):
    """Yield (line number, command) of commands in blocks that are marked as something else."""
    for language, lines in blocks(text):
        for number, line in lines if language not in (*LANGUAGES, "console") else []:
            if re.match(r"\s*(\$ |presto-[\w-]+ |(tools|tests|bench)/\S+ |(pip|cmake|ctest) )", line):
                yield number, line.strip()


def named(text):
    """The commands of a checkout that are named in `code spans`: a script with words behind it."""
    for span in re.findall(r"`([^`]*)`", re.sub(r"(?ms)^ *```.*?^ *```$", "", text)):
        span = " ".join(span.split())
        if re.match(r"(\w+=\S+ )*((tools|tests|bench|build|examples)/\S+|cmake|ctest) ", span):
            yield span


def reason(command):
    """Why a command is not run; None: it is."""
    return next((why for pattern, why in NOT_RUN.items() if re.match(rf"(\w+=\S+ )*{pattern}", command)), None)


def python_faults(code):
    try:
        compile(code, "-c", "exec")
    except SyntaxError as error:
        yield f"Python says: {error}"


class Checkout:
    """What a command that is not run must find in the checkout."""

    def __init__(self, root, build):
        self.root, self.build = root, build
        self.helps = {}
        presets = json.loads((root / "CMakePresets.json").read_text())
        self.presets = {preset["name"] for kind in presets.values() if isinstance(kind, list) for preset in kind}

    def help_of(self, script):
        if script not in self.helps:
            done = subprocess.run([self.root / script, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
            self.helps[script] = done.stdout if done.returncode == 0 else ""
        return self.helps[script]

    def faults(self, command):
        """What the command names and is not there."""
        for part in re.split(r" (?:&&|\|) ", command):
            words = shlex.split(part, comments=True)
            while re.match(r"\w+=", words[0]):
                words = words[1:]
            yield from self.faults_of(words)

    def faults_of(self, words):
        program = words[0]
        if program.startswith(CHECKOUT):
            yield from self.script_faults(words)
        elif program.startswith("build/release/"):
            if not (self.build / program.removeprefix("build/release/")).exists():
                yield f"{program} is not built"
        elif program in ("cmake", "ctest"):
            yield from self.preset_faults(words)
        elif not program.startswith("build/") and program not in ("pip", "torchrun", ".") and shutil.which(program) is None:
            yield f"{program} is not known"
        if words[1:2] == ["-c"] and program == "python3":
            yield from python_faults(words[2])
        for word in words[1:]:
            if word.startswith(CHECKOUT) and not (self.root / word).exists():
                yield f"{word} is not there"

    def script_faults(self, words):
        script = words[0]
        if not (self.root / script).is_file():
            yield f"{script} is not there"
            return
        for option in (word.partition("=")[0] for word in words[1:]):
            if option.startswith("-") and not re.search(rf"(?<![\w-]){option}(?![\w-])", self.help_of(script)):
                yield f"{script} --help does not know {option}"

    def preset_faults(self, words):
        for i, word in enumerate(words):
            if word == "--preset" and words[i + 1] not in self.presets:
                yield f"there is no preset {words[i + 1]}"
