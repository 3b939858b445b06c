"""Values of JSON that are equal but for the last bits of floating point numbers."""

import math


def assert_same(got, want, where="$", close=1e-9, but=(), order=None):
    """Each value at the same place; of the keys `but` there may be others. `order`: the key by which lists of objects are
    sorted first, where their order does not matter, and neither does that of keys."""
    if isinstance(want, dict):
        keys = [[key for key in value if key not in but] for value in (got, want)]
        if order:
            keys = list(map(sorted, keys))
        assert keys[0] == keys[1], f"{where}: {keys[0]}, not {keys[1]}"
        for key in keys[1]:
            assert_same(got[key], want[key], f"{where}.{key}", close, but, order)
    elif isinstance(want, list):
        assert len(got) == len(want), f"{where}: {len(got)}, not {len(want)}"
        if order and want and isinstance(want[0], dict):
            got, want = sorted(got, key=order), sorted(want, key=order)
        for number, (mine, other) in enumerate(zip(got, want)):
            assert_same(mine, other, f"{where}[{number}]", close, but, order)
    elif isinstance(want, float) or isinstance(got, float):
        assert got is not None and want is not None, f"{where}: {got}, not {want}"
        assert math.isclose(got, want, rel_tol=close, abs_tol=close), f"{where}: {got!r}, not {want!r}"
    else:
        assert got == want, f"{where}: {got!r}, not {want!r}"
