"""Short words for what tells conditions apart: only the keys in which they differ."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.run import Run
from understudy.units import seconds, size

OPTION = "producer.options."
PARAMETER = f"{OPTION}parameters."
LONG = 40  # characters of a value that is still shown in full
TIMES = "\N{MULTIPLICATION SIGN}"

Words = Callable[[Any], str]


def _flag(word: str) -> Words:
    return lambda value: word if value else ""


def _count(noun: str) -> Words:
    return lambda value: "" if value is None else f"{value} {noun}{'s' * (value != 1)}"


# Words for keys that read badly as they are; the order is that of a label. Any other key that
# differs is shown by its name and value, after these.
WORDS: dict[str, Words] = {
    f"{OPTION}transfer_bytes": lambda v: "" if v is None else f"transfer {v} B",
    f"{OPTION}collective": lambda v: "" if v is None else "collective" if v else "independent",
    f"{OPTION}fsync": _flag("fsync"),
    f"{OPTION}time_scale": lambda v: "" if v is None else f"time {TIMES}{v:g}",
    f"{OPTION}bytes_scale": lambda v: "" if v is None else f"bytes {TIMES}{v:g}",
    f"{OPTION}restart": _flag("restart"),
    f"{OPTION}steps": _count("step"),
    f"{OPTION}repetitions": _count("repetition"),
    f"{OPTION}append": _flag("appended"),
    f"{OPTION}pause_s": lambda v: "" if v is None else f"pause {v:g} s",
    f"{OPTION}slow_rank": lambda _: "",
    f"{OPTION}slow_rank.rank": lambda v: "" if v is None else f"rank {v} slow",
    f"{OPTION}slow_rank.seconds": lambda v: "" if v is None else f"by {v:g} s",
    f"{OPTION}extra_collective_bytes": _flag("extra collective"),
    f"{OPTION}drop_cache": _flag("drop cache"),
    f"{OPTION}deadline_s": lambda v: "" if v is None else f"{v:g} s at most",
    f"{OPTION}wear_out": _flag("worn out"),
    f"{OPTION}rate_bytes_per_s": lambda v: "" if v is None else f"{size(v)}/s at most",
    f"{OPTION}mix_percent": lambda v: "" if v is None else f"{v} % reads",
    f"{OPTION}stripe_size": lambda v: "" if v is None else f"stripe size {size(v)}",
}
# Of the place, which a page shows beside the label; of the method, which begins it; or said by
# other words of the label.
_SHOWN_ELSEWHERE = (
    "schema.",
    "place.system.",
    "place.partition.",
    "storage.type.",
    f"{OPTION}method.",
    f"{OPTION}parameters.",
    "producer.name.",
    "producer.workload.",
)
# Follow from other keys as a rule: shown only where no other key tells the conditions apart.
_CONSEQUENCES = (
    "software.",
    "storage.asked.",
    "storage.applied.",
    "storage.streams",
    f"{OPTION}config",
    f"{OPTION}name",
    f"{OPTION}application",
)


def parameters(text: str | None) -> dict[str, str]:
    """The parameters of an ADIOS method, key=value;key=value, by key."""
    pairs = (part.partition("=") for part in re.split("[;,]", text or "") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def label(
    conditions: Sequence[runs.Condition],
    places: Sequence[str],
    ranks_of: Sequence[int],
    caller_words: Sequence[Sequence[str]],
) -> list[tuple[str, ...]]:
    """For each condition the words that tell it from the others of its case.

    Options are compared over the whole case, what belongs to a place (storage, software) within
    the place, nodes among runs on as many ranks there, and parameters of an ADIOS method among
    those of the method. `own` are words that the caller has for each: the arm, the ranks.
    """
    options = runs.differences([{"producer": c["producer"]} for c in conditions])
    around = _within(places, [_without_nodes(c) for c in conditions])
    on_as_many = [f"{p} {ranks}" for p, ranks in zip(places, ranks_of, strict=True)]
    nodes = _within(on_as_many, [{"place": {"nodes": c["place"]["nodes"]}} for c in conditions])
    methods = [str(c["producer"]["options"].get("method")) for c in conditions]
    tuning = _within(methods, [_tuning(c) for c in conditions])
    differences = [o | n | a for o, n, a in zip(options, nodes, around, strict=True)]
    keys = list(dict.fromkeys(key for differing in differences for key in differing))
    keys = [k for k in keys if not _is_shown_elsewhere(k)]
    first = [*filter(keys.__contains__, WORDS), *(k for k in keys if k not in WORDS)]
    told = [k for k in first if not k.startswith(_CONSEQUENCES)]
    words = [
        [*leading, *_told(told, differing), *_parameter_words(tuned)]
        for leading, differing, tuned in zip(caller_words, differences, tuning, strict=True)
    ]
    for key in (k for k in first if k not in told):
        _add_where_it_tells(key, differences, words, list(zip(places, methods, strict=True)))
    return [tuple(filter(None, texts)) for texts in words]


def facts(condition: runs.Condition) -> str:
    """All of one condition that says something, in words; not the system and the partition."""
    values = {key: value for key, value in runs.differences([condition, {}])[0].items() if value}
    keys = ["place.nodes", f"{OPTION}method", *values]
    shown = [k for k in dict.fromkeys(keys) if k in keys[:2] or not _is_shown_elsewhere(k)]
    return ", ".join(filter(None, _told(shown, values)))


def _is_shown_elsewhere(key: str) -> bool:
    return f"{key}.".startswith(_SHOWN_ELSEWHERE)


def _told(keys: Iterable[str], values: Mapping[str, Any]) -> Iterator[str]:
    return (_words(key, values[key]) for key in keys if key in values)


def _add_where_it_tells(
    key: str,
    differences: Sequence[Mapping[str, Any]],
    words: list[list[str]],
    beside: Sequence[tuple[str, str]],
) -> None:
    """Add a key that follows from others to the conditions that nothing tells apart so far."""
    alike: dict[Any, list[int]] = {}
    for i, texts in enumerate(words):
        alike.setdefault((beside[i], *texts), []).append(i)
    for same in alike.values():
        values = {schema.canonical(differences[i].get(key)) for i in same}
        if len(values) > 1:
            for i in same:
                words[i].append(_words(key, differences[i].get(key)))


def _within(groups: Sequence[str], conditions: Sequence[runs.Condition]) -> list[dict[str, Any]]:
    """The differences among the conditions of each group."""
    differences: list[dict[str, Any]] = [{} for _ in conditions]
    for group in dict.fromkeys(groups):
        members = [i for i, of in enumerate(groups) if of == group]
        for i, differing in zip(
            members, runs.differences([conditions[i] for i in members]), strict=True
        ):
            differences[i] = differing
    return differences


def _without_nodes(condition: runs.Condition) -> dict[str, Any]:
    """The condition of the place, whatever is played there."""
    place = {k: v for k, v in condition["place"].items() if k != "nodes"}
    return {k: v for k, v in condition.items() if k != "producer"} | {"place": place}


def _tuning(condition: runs.Condition) -> dict[str, Any]:
    text = condition["producer"]["options"].get("parameters")
    return dict(parameters(text)) if isinstance(text, str) else {}


def _parameter_words(differing: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(differing):
        value = differing[name]
        yield f"{name}={'default' if value is None else value}"


def _words(key: str, value: Any) -> str:
    if key in WORDS:
        return WORDS[key](value)
    if key == "place.nodes":
        return _nodes(value)
    if value is None or value is False:
        return ""
    name = _name(key)
    if value is True:
        return name
    if "=" in name:
        return f"{name}{value}"
    if isinstance(value, int) and name.endswith(" bytes"):
        return f"{name.removesuffix(' bytes')} {size(value)}"
    if isinstance(value, int | float) and key.endswith("_s"):
        return f"{name.removesuffix(' s')} {seconds(value)}"
    shown = value if isinstance(value, str | int | float) else schema.canonical(value)
    text = " ".join(str(shown).split())
    if re.fullmatch("[0-9a-f]{40,}", text):
        return f"{name} {text[:8]}"
    return f"{name} {text if len(text) <= LONG else schema.digest(value)[:8]}"


def _name(key: str) -> str:
    """The last of a key's names; options of methods and hints keep theirs, as name=."""
    for group in (f"{OPTION}method_options.", "hints.", f"{OPTION}hints."):
        if group in key:
            return key.partition(group)[2] + "="
    last = key.rpartition(".")[2].replace("_", " ")
    return f"applied {last}" if ".applied." in key else last


def _nodes(nodes: Any) -> str:
    if not nodes:
        return ""
    ranks = sorted({node["ranks"] for node in nodes if node["ranks"] is not None})
    each = f" with {' or '.join(map(str, ranks))} ranks" if ranks else ""
    return f"{len(nodes)} node{'s' * (len(nodes) != 1)}{each}"


def stripe_count(run: Run) -> str:
    """Stripe count requested by the case, in its words: default, nodes, cores or a number."""
    case = run.identity.case or ""
    for pattern in (r"%point=\S*?\bstripe_count=(\w+)", r"%\.?stripe_count=(\S+)"):
        if match := re.search(pattern, case):
            return match[1]
    count = run.storage.asked.get("stripe_count")
    return "default" if count is None else str(count)
