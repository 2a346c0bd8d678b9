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


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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

    assert tab("re") == ["record", "report", "rerun"]
    assert tab("run", "--un") == ["--until"]
    assert tab("run", "--method", "gib") == ["gibbs"]
    assert tab("run", "m.uai", "--backend", "num") == ["numba", "numpy", "numpyro"]
    if shell == "bash":  # its words end at =, and its last word is what is completed
        assert tab("sweep", "-m", "experiment", "=", "to") == ["tour"]
        assert tab("sweep", "method", "=", "gib") == ["gibbs"]
        assert len(tab("sweep", "budget", "=")) > 3
        assert tab("sweep", "method", "=", "gibbs", "model", "=", "uai14/G") == ["uai14/Grids_12"]
        assert tab("sweep", "model", "=", "file", "model.path", "=", "my") == ["my.uai"]
        assert tab("sweep", "method", "=", "gibbs,p") == ["gibbs,pt"]
        assert tab("sweep", "-m", "method", "=", "gibbs,pt,zan") == ["gibbs,pt,zanella"]
        assert tab("sweep", "backend", "=", "jax,") == [f"jax,{name}" for name in sorted(registry.names("backends"))]
        assert tab("sweep", "model", "=", "file", "model.path", "=", "a.uai,my") == ["a.uai,my.uai"]
        assert tab("sweep", "model", "=", "grid", "model.r") == ["model.rows="]
        assert tab("sweep", "model", "=", "ring,torus", "model.") == sorted(
            f"model.{name}=" for name in ("n", "c1", "c2", "kind", "scale", "seed", "rows", "cols", "coupling", "field")
        )
        assert tab("sweep", "method.sc") == ["method.scan="], "gibbs is the default"
        assert tab("sweep", "method", "=", "dhmc", "method.sc") == []
        assert tab("sweep", "budget.sa") == ["budget.samples="]
        assert tab("sweep", "nosuch.x") == []
    else:
        assert tab("sweep", "-m", "experiment=to") == ["experiment=tour"]
        assert tab("sweep", "method=gib") == ["method=gibbs"]
        assert tab("sweep", "method=gibbs", "model=uai14/G") == ["model=uai14/Grids_12"]
    assert "--resume" in tab("sweep", "--re")
    assert "dwave" in tab("peers", "install", "dw")
    assert tab("init", "new", "--method", "gib") == []
    assert tab("run", "my") == ["my.uai"]


def test_every_script_names_commands_and_methods(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name in (
        "bracket",
        "--until",
        "experiment=tour",
        "model=grid",
        *registry.names("methods"),
        *registry.names("backends"),
    ):
        assert name in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_a_shell_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["completion", "cmd"])
    assert "invalid choice: 'cmd'" in capsys.readouterr().err
