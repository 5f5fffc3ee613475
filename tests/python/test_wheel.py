#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel: built from the checkout, installed into a fresh environment, and docs/python.md run there.

Usage: test_wheel.py ROOT BUILD_DIR PYTHON_WITH_TORCH. The environment of this interpreter has pip, scikit-build-core, NumPy and mypy.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

PROGRAMS = ("presto-write", "presto-load", "presto-sweep", "presto-inspect", "presto-make-photos")
# Sections whose blocks need another library. They may use what the first section defines.
NEEDS = {"Tables of Arrow": "pyarrow", "PyTorch": "torch", "JAX": "jax", "TensorFlow": "tensorflow", "Hugging Face": "datasets"}


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def clean_environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


def build_wheel(root, build, scratch):
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
        "--disable-pip-version-check", "--wheel-dir", scratch, f"--config-settings=build-dir={scratch}/build",
        f"--config-settings=cmake.define.PRESTO_BUILT={build}", root, env=clean_environment())
    (wheel,) = scratch.glob("*.whl")
    return wheel


def check_wheel(wheel, document):
    """One file for every later CPython, with types, programs, their pages and licence, and nothing else; not larger than is said."""
    assert re.fullmatch(r"presto_loader-\d+\.\d+\.\d+-cp311-abi3-\w+\.whl", wheel.name), wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("presto/_native.abi3.so", "presto/_native.pyi", "presto/py.typed", "presto/torch.py", "presto/tf.py"):
        assert name in names, (name, names)
    assert any(name.endswith("LICENSE") for name in names), names
    for program in PROGRAMS:
        for name in (f"presto_programs/bin/{program}", f"share/man/man1/{program}.1", f"share/bash-completion/completions/{program}",
                     f"share/zsh/site-functions/_{program}", f"share/fish/vendor_completions.d/{program}.fish"):
            assert sum(entry.endswith(name) for entry in names) == 1, (name, names)
    assert sum(name.startswith("presto_programs/lib/libpresto.so.") for name in names) == 1, names
    assert all(name.startswith(("presto/", "presto_programs/", "presto_loader-")) for name in names), names
    size, most = wheel.stat().st_size / 1e6, float(re.search(r"without\s+these\s+libraries\s+at\s+most\s+([\d.]+)\s+MB", document)[1])
    print(f"the wheel has {size:.2f} MB")
    assert size <= most < 1.5 * size, f"the wheel has {size:.2f} MB, and docs/python.md says at most {most}"


def check_glibc(site, document):
    """What is compiled needs no later glibc than is said."""
    needed = set()
    for path in (*site.glob("presto/*.so"), *site.glob("presto_programs/bin/*"), *site.glob("presto_programs/lib/*")):
        needed |= set(re.findall(r"\(GLIBC_2\.(\d+)\)", run("objdump", "-T", path)))
    said = int(re.search(r"runs with\s+glibc 2\.(\d+) or later", document)[1])
    assert max(map(int, needed)) <= said, f"glibc 2.{max(map(int, needed))}, and docs/python.md says 2.{said}"


def check_symbols(library, include):
    """The module exports its entry and what plugins may call, and uses no names that CPython keeps to itself."""
    shown = run("nm", "-D", library)
    exported = {line.split()[-1] for line in shown.splitlines() if line.split()[-2] in "TDBRVWui"}
    strange = {name for name in exported if not name.startswith("presto_") or name.startswith("presto__")}
    assert strange == {"PyInit__native"}, strange
    declared = set()
    for header in ("status", "span", "tensor", "rng", "step", "text"):
        text = (include / f"{header}.h").read_text()
        declared |= set(re.findall(r"^PRESTO_API [^;{=]*?\b(presto_\w+)\(", text, re.MULTILINE))
    assert len(declared) > 20 and declared <= exported, declared - exported
    private = re.findall(r" U (_Py(?!_Dealloc|_NoneStruct|_TrueStruct|_FalseStruct|Arg_\w+_SizeT|Object_\w+_SizeT|_BuildValue_SizeT)\w+)", shown)
    assert not private, private


def fresh_environment(wheel, scratch):
    """An environment with the wheel and NumPy only; its interpreter."""
    venv = scratch / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    python = venv / "bin" / "python"
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet", "--no-deps",
        "--no-index", wheel, env=clean_environment())
    (site,) = venv.glob("lib/python3*/site-packages")
    ours = pathlib.Path(sysconfig.get_paths()["platlib"])
    for name in ("numpy", "numpy.libs"):
        (site / name).symlink_to(ours / name)
    return python, site


def check_programs(folder, python, environment):
    """The commands in `folder` are the programs, as are those of python -m presto: output, exit codes, signals."""
    for program in PROGRAMS:
        for command in ([folder / program], [python, "-m", "presto", program.removeprefix("presto-")]):
            shown = run(*command, "--version", env=environment, cwd="/")
            assert re.fullmatch(rf"{program} \(Presto\) \d+\.\d+\.\d+\n", shown), shown
        done = subprocess.run([folder / program, "--no-such"], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 2 and done.stderr.startswith(f"{program}: unknown option"), done
    photos = folder / "photos"
    run(folder / "presto-make-photos", "-q", "-n", "4", "-c", "2", "-o", photos, env=environment)
    run(folder / "presto-write", "--quiet", "-p", "cv", "-o", folder / "stored", photos, env=environment)
    run(folder / "presto-inspect", "verify", folder / "stored", env=environment)
    # The command is the program: what ends it ends nothing else.
    with subprocess.Popen([folder / "presto-load", "-e", "1000000000", "--format", "raw", folder / "stored"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=environment) as loading:
        assert loading.stdout.read(1)
        name = os.readlink(f"/proc/{loading.pid}/exe")
        assert name.endswith("/presto_programs/bin/presto-load"), name
        loading.terminate()
        loading.stdout.close()
        assert loading.wait(timeout=240) == -signal.SIGTERM, loading.returncode


def check_module(python, environment):
    """What python -m presto says when it starts no program."""
    for words, code, part in [(["--help"], 0, "Usage: python -m presto PROGRAM"), (["--version"], 0, "presto (Presto) "),
                              ([], 2, "the program is missing (write, load, sweep, inspect, make-photos)"), (["laod"], 2, "'laod' is no program")]:
        done = subprocess.run([python, "-m", "presto", *words], capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, bool(done.stdout)) == (code, code == 0) and part in done.stdout + done.stderr, done


def check_editable_installation(python, site, root):
    """Its finder adds the installed folder to the package of the checkout."""
    program = f"""import sys
sys.path.insert(0, {str(root / "python")!r})
import presto_programs
presto_programs.__path__.append({str(site / "presto_programs")!r})
print(presto_programs.__file__, presto_programs.path("presto-load"), presto_programs.path("presto-none"))"""
    shown = run(python, "-c", program, env=clean_environment()).split()
    assert shown == [str(root / "python" / "presto_programs" / "__init__.py"), str(site / "presto_programs" / "bin" / "presto-load"),
                     str(root / "python" / "presto_programs" / "bin" / "presto-none")], shown


def check_user_installation(wheel, scratch, python):
    """pip install --user: other folders than those of an environment."""
    environment = clean_environment(PYTHONUSERBASE=str(scratch / "user"))
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet", "--no-deps", "--no-index",
        "--user", "--break-system-packages", wheel, env=environment)
    for program in PROGRAMS:
        shown = run(scratch / "user" / "bin" / program, "--version", env=environment)
        assert shown.startswith(f"{program} (Presto) "), shown
    # A build without libjpeg has no presto-make-photos.
    (program,) = (scratch / "user").glob("**/presto_programs/bin/presto-make-photos")
    program.unlink()
    done = subprocess.run([scratch / "user" / "bin" / "presto-make-photos"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1 and "No such file or directory; this installation was built without it" in done.stderr, done


def run_ranks(python, program, folder, environment, world=2):
    """What torchrun does: one process a rank, told by the environment. stdout of rank 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(world):
        told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks.append(subprocess.Popen([python, program, "photos-resized"], cwd=folder, stdin=subprocess.DEVNULL, text=True,
                                      env={**environment, **{k: str(v) for k, v in told.items()}},
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    shown = [process.communicate(timeout=240)[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0] * world, shown
    return shown[0]


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def sections(document):
    """Title -> code of its blocks."""
    parts = re.split(r"^## (.*)$", document, flags=re.MULTILINE)[1:]
    return {title: "".join(blocks(text)) for title, text in zip(parts[::2], parts[1::2])}


def run_with_library(title, code, pythons, folder, environment):
    """With the first interpreter that has the library."""
    library = NEEDS[title]
    for python in pythons:
        if subprocess.run([python, "-c", f"import {library}"], capture_output=True, check=False).returncode == 0:
            run(python, "-c", code, cwd=folder, env=environment)
            print(f"{title}: the blocks run")
            return python
    print(f"{title}: {library} is not installed, its blocks are not run")
    return None


def main():
    root, build = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    torch_python = sys.argv[3]
    document = (root / "docs" / "python.md").read_text()
    commands = re.search(r"^```console\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)[1]
    with tempfile.TemporaryDirectory(prefix="presto-wheel-") as folder:
        scratch = pathlib.Path(folder)
        wheel = build_wheel(root, build, scratch)
        check_wheel(wheel, document)
        python, site = fresh_environment(wheel, scratch)
        check_glibc(site, document)
        check_programs(python.parent, python, clean_environment())
        check_module(python, clean_environment())
        check_editable_installation(python, site, root)
        check_user_installation(wheel, scratch, torch_python)
        check_symbols(site / "presto" / "_native.abi3.so", root / "include" / "presto")
        tools = clean_environment(PATH=f"{build}/tools:{os.environ['PATH']}")
        for command in re.findall(r"^\$ (.*)$", commands, re.MULTILINE):
            run("sh", "-ec", command, cwd=scratch, env=tools)

        code = sections(document)
        shown = run(python, "-c", next(iter(code.values())), cwd=scratch, env=tools)
        assert re.fullmatch(r"600 samples, limited by .*\n", shown), shown
        plain = scratch / "page.py"  # a file: the source of its functions is found
        plain.write_text("".join(block for title, block in code.items() if title not in NEEDS))
        shown = run(python, plain, cwd=scratch, env=clean_environment(PATH=tools["PATH"], XDG_CACHE_HOME=str(scratch / "cache")))
        assert "200 Feature(dtype='float32', shape=(224, 224, 3))" in shown, shown
        print(f"{len(blocks(document))} blocks, of which those of {', '.join(NEEDS)} are run by themselves")

        environment = clean_environment(PYTHONPATH=str(build / "python"), TF_CPP_MIN_LOG_LEVEL="3", HF_HUB_OFFLINE="1",
                                        PATH=tools["PATH"])
        done = subprocess.run([sys.executable, "-m", "presto", "load"], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 1 and "this installation has no programs" in done.stderr, done
        begin = 'import presto\ndataset = presto.open("photos-resized")\n'
        for title in NEEDS:
            has_library = run_with_library(title, begin + code[title], [sys.executable, torch_python], scratch, environment)
            if title == "PyTorch" and has_library:
                shown = run_ranks(has_library, root / "examples" / "python" / "train_ddp.py", scratch, environment)
                assert re.search(r"(?m)^400 samples on 2 ranks", shown), shown


if __name__ == "__main__":
    main()
