"""Texts of profd's configuration and of scenarios of its simulator, which are both TOML."""

import json

from text_files import write_text


def toml_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return json.dumps(value)


def toml(sections):
    """{"section": {"key": value}}; a list of dicts is an array of tables; "" holds top-level keys."""
    lines = [f"{key} = {toml_value(value)}" for key, value in sections.get("", {}).items()]
    for name, body in sections.items():
        if name == "":
            continue
        for table in body if isinstance(body, list) else [body]:
            lines.append(f"[[{name}]]" if isinstance(body, list) else f"[{name}]")
            lines += [f"{key} = {toml_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def scenario_text(chip="910B", devices=2, seed=1, faults=(), phases=None, **more):
    """A simulator scenario (sim/README.md). "for" is a keyword: write it as "for_"."""
    sections = {"": {"chip": chip, "devices": devices, "seed": seed, **more}}
    if phases:
        sections["phases"] = phases
    if faults:
        sections["fault"] = [{k.rstrip("_"): v for k, v in fault.items()} for fault in faults]
    return toml(sections)


def scenario(path, **how):
    write_text(path, scenario_text(**how))
    return path


def merged(*configs):
    """The sections of all of them; of what several say the last one's."""
    result = {}
    for config in configs:
        for section, body in config.items():
            result.setdefault(section, {}).update(body)
    return result
