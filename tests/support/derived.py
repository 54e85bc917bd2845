"""Systems made from those that are here by a few assignments."""

from pathlib import Path

from understudy.paths import files


def derive(site: Path, name: str, of: str, *lines: str) -> None:
    """Write systems/<name>.py below a site: the system `of` by another name, after `lines`, which
    change `system`, each `partition` and each `environment`."""
    (site / "systems").mkdir(parents=True, exist_ok=True)
    text = [
        "import runpy",
        f"made = runpy.run_path({str(files('systems', '.py')[of])!r})",
        "system, environments = made['system'], made.get('environments', [])",
        f"system |= {{'name': {name!r}, 'hostnames': ['^{name}$']}}",
        "for environment in environments:",
        "    if 'target_systems' in environment:",
        f"        environment['target_systems'] = [{name!r}]",
        "for partition in system['partitions']:",
        *(f"    {line}" for line in lines),
    ]
    (site / "systems" / f"{name}.py").write_text("\n".join(text) + "\n", encoding="utf-8")
