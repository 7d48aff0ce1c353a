"""What _c.py declares against include/taut.abi: the structs field by field, their sizes, the functions."""
import ctypes
import re

import pytest
from conftest import ROOT

from taut import _c

C_TYPES = {"int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t,
           "uint64_t": ctypes.c_uint64, "double": ctypes.c_double}
ABI = (ROOT / "include" / "taut.abi").read_text()
FUNCTIONS = re.findall(r"(\w+)\((.*)\);", re.sub(r"typedef .*", "", ABI))


def python_name(c_name):
    return "".join(word.capitalize() for word in c_name.split("_")[1:])


def fields(body):
    """(type, name) of every field, as `double loss, lr;` has two."""
    for part in filter(None, (p.strip() for p in body.split(";"))):
        call = re.match(r"int \(\*(\w+)\)\((const taut_step_facts \*|double done), void \*arg\)", part)
        if call:
            yield "step callback" if "step" in call[2] else "callback", call[1]
            continue
        kind, first = re.match(r"(?:const )?(\w+) (.*)", part).groups()
        for name in first.split(","):
            stars, plain, many = re.match(r"([\s*]*(?:const \*)?)\s*(\w+)(\[\d+\])?", name.strip()).groups()
            yield kind + stars.replace(" ", "").replace("const", "") + (many or ""), plain


def python_type(kind):
    """The ctypes of a C type; enums are ints."""
    many = re.match(r"(\w+)\[(\d+)\]$", kind)
    if many:
        return {"char": ctypes.c_char, **C_TYPES}[many[1]] * int(many[2])
    special = {"step callback": _c.StepProgress, "callback": _c.Progress, "void*": ctypes.c_void_p,
               "char*": ctypes.c_char_p, "char**": _c.Strings}
    if kind in special:
        return special[kind]
    if kind.endswith("*"):
        inner = kind[:-1]
        return ctypes.POINTER(C_TYPES.get(inner) or getattr(_c, python_name(inner)))
    return C_TYPES.get(kind, ctypes.c_int if re.search(rf"typedef enum {{[^}}]*}} {kind};", ABI) else None)


STRUCTS = [(name, body) for body, name in re.findall(r"typedef struct \{ (.*) \} (\w+);", ABI)]


@pytest.mark.parametrize("name,body", STRUCTS, ids=[s[0] for s in STRUCTS])
def test_struct(name, body):
    ours = getattr(_c, python_name(name))
    assert [(n, t) for t, n in ((python_type(k), n) for k, n in fields(body))] == list(ours._fields_)
    assert ctypes.sizeof(ours) == int(re.search(rf"^sizeof {name} (\d+)$", ABI, re.M)[1])


def test_functions():
    ours = _c.functions()
    assert set(ours) == {name for name, _ in FUNCTIONS}, "taut.h and _c.py have other functions"
    for name, takes in FUNCTIONS:
        assert len(ours[name][1]) == (0 if takes == "void" else takes.count(",") + 1), name


@pytest.mark.parametrize("enum,ours", [("taut_split", _c.SPLITS), ("taut_metric", _c.METRICS),
                                       ("taut_verdict", _c.VERDICTS), ("taut_kind", _c.KINDS),
                                       ("taut_measurement", _c.MEASUREMENTS)])
def test_enum(enum, ours):
    names = re.search(rf"typedef enum {{ (.*) }} {enum};", ABI)[1].split(", ")
    plain = [re.sub("TAUT_(READS_|MEASURE_)?", "", name) for name in names]
    assert [name.replace("_", " ").lower() for name in plain] == list(ours)


def test_statuses():
    names = re.search(r"typedef enum { (.*) } taut_status;", ABI)[1].split(", ")
    assert len(names) == len(_c.STATUS) and names.index("TAUT_BAD_FILE") == _c.STATUS.index(_c.FileError)
    assert names.index("TAUT_DEVICE") == _c.STATUS.index(_c.DeviceError)
