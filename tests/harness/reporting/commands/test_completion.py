"""`spinbench completion`: what shells complete with its script."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from spinbench import cli
from spinbench.inference import registry

ASK = {
    "bash": """source {script}; cd {folder}; COMP_WORDS=({words}); COMP_CWORD=$(({count} - 1)); COMP_LINE={line};
        COMP_POINT=${{#COMP_LINE}}; _spinbench; printf "%s\\n" "${{COMPREPLY[@]}}\"""",
    "fish": """source {script}; cd {folder}; complete -C {line} | cut -f 1""",
}


# What comes of each line in all shells.
LINES = {
    "re": "record report rerun",
    "run --un": "--until",
    "run --method gib": "gibbs",
    "run m.uai --backend num": "numba numpy numpyro",
    "init new --method gib": "",
    "run my": "my.uai",
}
AMONG = {"sweep --re": "--resume", "peers install dw": "dwave"}
JAX = " ".join(f"jax,{name}" for name in registry.names("backends"))
SETTINGS = "n c1 c2 kind scale seed rows cols coupling field"
OF = {
    "bash": {  # its words end at =, and its last word is what is completed
        "sweep -m experiment = to": "tour",
        "sweep method = gib": "gibbs",
        "sweep size =": "full smoke",
        "sweep method = gibbs model = uai14/G": "uai14/Grids_12",
        "sweep model = file model.path = my": "my.uai",
        "sweep method = gibbs,p": "gibbs,pt",
        "sweep -m method = gibbs,pt,zan": "gibbs,pt,zanella",
        "sweep backend = jax,": JAX,
        "sweep model = file model.path = a.uai,my": "a.uai,my.uai",
        "sweep model = grid model.r": "model.rows=",
        "sweep model = ring,torus model.": " ".join(f"model.{name}=" for name in SETTINGS.split()),
        "sweep method.sc": "method.scan=",  # gibbs is the default
        "sweep method = dhmc method.sc": "",
        "sweep budget.sa": "budget.samples=",
        "sweep nosuch.x": "",
    },
    "fish": {
        "sweep -m experiment=to": "experiment=tour",
        "sweep method=gib": "method=gibbs",
        "sweep method=gibbs model=uai14/G": "model=uai14/Grids_12",
    },
}


def completed(script: Path, shell: str, words: list[str]) -> list[str]:
    """What a shell makes of a line whose last word has been begun."""
    line = shlex.quote(" ".join(words))
    asked = ASK[shell].format(script=script, folder=script.parent, words=shlex.join(words), count=len(words), line=line)
    done = subprocess.run([shell, "-c", asked], capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes_commands_options_names_and_files(
    tmp_path: Path, shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert cli.main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "my.uai").touch()

    def tab(*words: str) -> list[str]:
        return completed(tmp_path / "script", shell, ["spinbench", *words])

    for line, expected in {**LINES, **OF[shell]}.items():
        assert tab(*line.split()) == sorted(expected.split()), line
    for line, one in AMONG.items():
        assert one in tab(*line.split()), line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_names_commands_and_methods(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    named = ("bracket", "--until", "experiment=tour", "model=grid")
    everything = (*named, *registry.names("methods"), *registry.names("backends"))
    assert [name for name in everything if name not in script] == []
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_a_shell_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "cmd"]) == 2
    message = "spinbench: no shell of spinbench completion is named 'cmd'; known: bash, zsh, fish\n"
    assert capsys.readouterr().err == message
