"""Cells composed quickly are what Hydra composes, but for what only the sweep's own process reads of Hydra's node."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.global_hydra import GlobalHydra
from hydra.core.utils import setup_globals
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import OmegaConf

from spinbench.conf import searchpath
from spinbench.foundation import overrides
from spinbench.sweeping import cellconfigs, composition


def test_what_members_of_a_varied_group_share_is_for_cells_alone() -> None:
    given = [
        "model=grid,torus",
        "model.rows=4",
        "model.cols=3,4",
        "+model.name='a b'",
        "method=bp",
        "method.damp=0.5",
    ]
    kept = ["chains=3", "~model.seed", "model.extra="]
    assert cellconfigs.of_cells_alone([*given, *kept], ("model", "model.cols")) == [
        "model=grid,torus",
        "model.rows=choice(4)",
        "model.cols=3,4",
        "+model.name=choice('a b')",
        "method=bp",
        "method.damp=0.5",
        *kept,
    ]


@pytest.fixture
def hydra() -> Iterator[Hydra]:
    searchpath.install()
    assert composition  # registers resolvers
    try:
        yield Hydra.create_main_hydra2("sweep", create_config_search_path(f"pkg://{searchpath.PACKAGE}"))
    finally:
        GlobalHydra.instance().clear()


def test_same_configurations(hydra: Hydra) -> None:
    setup_globals()
    cells = [
        ["experiment=dhmc_fig2", "method=paper/gibbs", "model.c1=0.5", "model.c2=1", f"seed={seed}", "sweep_dir='a b'"]
        for seed in (0, 1)
    ]
    cells += [
        ["experiment=dhmc_fig2", "method=paper/dhmc", "model.c1=0.5", "model.c2=1", "seed=0", "reading.slack=0.1"],
        ["experiment=tour", "backend=jax", "model=grid", "+method.extra=1", "size=smoke", "git={dirty:true}"],
        ["method=dhmc", "~chains", "model=grid", "model.rows=3"],
    ]
    loader = hydra.config_loader
    masters = [hydra.compose_config("config", cell[:1], RunMode.MULTIRUN) for cell in cells]
    swept = list(zip(masters, cells, strict=True))
    slow = [_plain(loader.load_sweep_config(master, cell)) for master, cell in swept]
    quick, again = ([_plain(cellconfigs.compose(loader, master, cell)) for master, cell in swept] for _ in range(2))
    with pytest.raises(ConfigCompositionException, match="seeed"):
        cellconfigs.compose(loader, masters[0], ["seeed=1"])
    assert quick == slow
    assert again == slow


def _plain(config: Any) -> dict[str, Any]:
    content: dict[str, Any] = OmegaConf.to_container(config, resolve=False)  # type: ignore[assignment]
    own = content["hydra"]
    del own["job"]["override_dirname"]
    for name in ("config_sources", "choices"):
        del own["runtime"][name]
    del own["hydra_logging"]
    own["sweeper"] = own["sweeper"]["_target_"]
    return content


FILE_NAMES = (
    *(
        "a b.uai",
        "a,b.uai",
        "a'b.uai",
        "a;b.uai",
        "$(id).uai",
        "`id`.uai",
        "a\nb.uai",
        "${seed}.uai",
        "~a[1]{2}(3).uai",
    ),
    *("b\\c${x}", "\\\\${seed}'.uai", "${x}\\", "a\\", "${", "${oc.env:HOME}", "-a.uai", "null", "1e3", "a#b=c:d.uai"),
)


@pytest.mark.parametrize("name", FILE_NAMES)
def test_printed_commands_name_the_file_whatever_it_is_called(name: str) -> None:
    line = shlex.split(overrides.command({"model": "file", "model.path": name}))
    assert composition.plan(line[2:], multirun=False).config.model.path == name


def test_settings_refer_to_others_on_the_command_line() -> None:
    line = ["model=file", "model.path=a${seed}.uai", "seed=3"]
    assert composition.plan(line, multirun=False).config.model.path == "a3.uai"
