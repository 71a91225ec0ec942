"""What the documents promise: a current table of flags, commands that parse, links and names that exist."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from args import Args, read_args
from scripts.flags_table import BEGIN, END, FLAGS, updated

ROOT = FLAGS.parents[1]
README = ROOT / "README.md"
DOCUMENTS = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "redis_conf" / "README.md",
    ROOT / "results" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]
TAKE_OUR_FLAGS = {
    "launch_learner.py",
    "launch_actor.py",
    "launch_cluster.py",
    "test_multiple_seed.py",
    "start_learning.py",
    "start_learning_atari.sh",
}
OTHER_COMMANDS = {
    "redis-server",
    "tensorboard",
    "source",
    "export",
    "mkdir",
    "kill",
    "ruff",
    "mypy",
    "pip",
    "pytest",
    "ray",
    "docker",
    "kubectl",
    "openssl",
    "sbatch",
}
"""Programs of others; what follows them is theirs to check."""
OF_NOW = [path for path in DOCUMENTS if path.parent.name != "journal" and path.name != "CHANGELOG.md"]
"""Documents that name modules as they are; the others name those of their time."""
CLASSES_OF_OTHERS = {"MalmoEnvServer"}
ROOMS = {path.parent.name for path in ROOT.glob("*/__init__.py")}
MODULES = [*ROOT.glob("*.py"), *(path for room in ROOMS for path in ROOT.glob(f"{room}/**/*.py"))]
CODE = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)


def commands(path: Path) -> Iterator[list[str]]:
    """The words of every command in the ```bash blocks of a document."""
    for block in re.findall(
        r"^ *```bash\n(.*?)^ *```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]  # a variable of the environment
            words = [word.removeprefix("~/rainbow/") for word in words]  # typed in a folder of the user's
            if words:
                yield words


ALL_COMMANDS = {  # tests/test_tutorials.py types those of the tutorials
    f"{path.relative_to(ROOT)}: {shlex.join(words)}": words
    for path in DOCUMENTS
    if path.parent.name != "tutorials"
    for words in commands(path)
}


@pytest.mark.parametrize("words", ALL_COMMANDS.values(), ids=ALL_COMMANDS)
def test_every_command_can_be_typed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if words[0] in OTHER_COMMANDS:
        return
    if words[0] == "torchrun":
        words = ["python", *words[words.index("launch_learner.py") :]]
    assert words[0] in {"python", "bash"}, f"tests/test_readme.py does not know {words[0]}"
    if words[1] == "-m":
        module = ROOT / words[2].replace(".", "/")
        assert module.with_suffix(".py").is_file() or (module / "__main__.py").is_file()
        return
    assert (ROOT / words[1]).is_file()
    if words[1] in TAKE_OUR_FLAGS:
        monkeypatch.chdir(ROOT)  # --spec is named from there
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing that we recommend deserves a warning
            read_args(words[2:])


def test_the_documents_show_commands() -> None:
    shown = {words[1] for words in ALL_COMMANDS.values() if words[0] in {"python", "bash"}}
    assert shown > TAKE_OUR_FLAGS - {"start_learning.py"}
    assert "run_tests.sh" in shown


def test_the_table_of_flags_is_current() -> None:
    document = FLAGS.read_text(encoding="utf-8")
    assert document == updated(document), "run python -m scripts.flags_table"


def test_the_table_of_flags_is_complete() -> None:
    table = FLAGS.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    flags = re.findall(r"^\| `--([\w-]+)`", table, re.MULTILINE)
    assert sorted(flag.replace("-", "_") for flag in flags) == sorted(Args.model_fields)


def test_a_page_of_flags_without_its_markers_is_refused() -> None:
    for document in ("", f"{END} {BEGIN}", f"{BEGIN} {BEGIN} {END}"):
        with pytest.raises(ValueError, match="once each"):
            updated(document)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file(path: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", OF_NOW, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_exists(path: Path) -> None:
    """`room/file.py`, `room/folder/`."""
    for name in re.findall(r"`(\w+/[\w./-]*)`", path.read_text(encoding="utf-8")):
        if name.partition("/")[0] in ROOMS | {"specs", "docs", "scripts", "redis_conf"}:
            assert (ROOT / name).exists(), f"{path.name} names {name}"


@pytest.mark.parametrize("path", OF_NOW, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_class_and_function_that_is_named_exists(path: Path) -> None:
    """`room.folder.module.name` and `Class.method`."""
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`([a-z_]+(?:\.\w+){2,})`", text):
        if name.partition(".")[0] in ROOMS:
            assert _is_defined(name.split(".")), f"{path.name} names {name}"
    for owner, name in re.findall(r"\b([A-Z][a-z][A-Za-z]*)\.([a-z_]\w*)\b", text):
        if owner not in CLASSES_OF_OTHERS:
            assert re.search(rf"^class {owner}\b", CODE, re.MULTILINE), f"{path.name} names {owner}"
            assert re.search(rf"\bdef {name}\b", CODE), f"{path.name} names {owner}.{name}"


def _is_defined(words: list[str]) -> bool:
    """Whether a module, or a name in one, is called so."""
    for length in range(len(words), 0, -1):
        place = ROOT.joinpath(*words[:length])
        file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if file.is_file():
            rest = words[length:]
            return all(re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) for name in rest)
    return False
