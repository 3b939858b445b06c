#!/usr/bin/env python3
"""usage: unity_groups.py ROOT OUT [SIZE]

Says which C++ sources of a folder can be compiled as one: at most SIZE of them, none with a name of its
own (unnamed namespace, static, macro, test) that another of the group also has, uses or gets from a header.
Writes OUT, a CMake file: set(PROFD_UNITY_<path> <group>) for each source that has company.
"""

import os
import re
import sys

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|::|->|[{}();=<>\[\],:.*&#~]|\n')
RAW = re.compile(r'R"([^(\s]*)\((?:.|\n)*?\)\1"')
COMMENT = re.compile(r'//[^\n]*|/\*(?:.|\n)*?\*/')
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
DEFINE = re.compile(r'^\s*#\s*define\s+(\w+)', re.M)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n\\]|\\(?:.|\n))*', re.M)
NESTED = re.compile(r'^(?:class|struct) \w+::\w+ ?(?:final )?[:{]', re.M)
TEST = re.compile(r'^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+)\s*,\s*(\w+)', re.M)
ALIAS = re.compile(r'^namespace (\w+) = ([\w:]+);', re.M)
KEYWORDS = frozenset("""const constexpr inline static class struct enum union using namespace template typename
 return if for while switch case default void int char bool auto double float unsigned signed long short
 explicit virtual override final noexcept operator public private protected this new delete sizeof true false
 nullptr extern consteval constinit requires concept friend mutable volatile do else break continue std
 uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t size_t""".split())

TEST_MACROS = ("TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_SUITE", "INSTANTIATE_TEST_SUITE_P")


class File:
    def __init__(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        text = COMMENT.sub(" ", RAW.sub('""', text))
        self.path = path
        self.includes = INCLUDE.findall(text)
        self.own = set(DEFINE.findall(text)) | {f"{suite}_{name}_Test" for suite, name in TEST.findall(text)}
        self.fixtures = {suite for suite, _ in TEST.findall(text)}
        self.aliases = dict(ALIAS.findall(text))
        # Its members may be of types that only this source has: a compiler warns where that is included.
        self.alone = bool(NESTED.search(text))
        self.public = set()
        self.types = set()   # of public, the ones that are defined here
        self.places = {}     # where the types that it sees are defined
        self.used = set()
        self.read(DIRECTIVE.sub("", text))
        self.own |= self.fixtures & self.public

    def read(self, text):
        """Walks namespaces; a name is declared where it is the last word before ( = ; { [ at namespace level."""
        levels = []          # one entry for each open brace: "anonymous", "named" or "other"
        words = []           # of the declaration so far
        parens = 0
        before = ""
        for token in TOKEN.findall(text):
            if token == "\n" or token[0] in "\"'":
                continue
            first = token[0]
            if first.isalpha() or first == "_":
                if before not in (".", "->", "::"):
                    self.used.add(token)
                if parens == 0:
                    words.append(token)
            at_namespace = all(level != "other" for level in levels)
            if at_namespace and parens == 0 and token in ("(", "=", ";", "{", "["):
                self.declare(words, before, token, levels)
            if token == "(":
                parens += 1
            elif token == ")":
                parens = max(0, parens - 1)
            elif token == "{":
                if "namespace" in words and at_namespace:
                    levels.append("named" if words[-1] != "namespace" else "anonymous")
                else:
                    levels.append("other")
                words = []
            elif token == "}":
                if levels:
                    levels.pop()
                words, parens = [], 0
            elif token == ";":
                words = []
            before = token

    def declare(self, words, before, token, levels):
        if not words or "namespace" in words or words[0] in TEST_MACROS:
            return
        if words[0] == "using" and token == ";":
            self.used.add(words[-1])  # may be said twice
            return
        names = [word for word in words if word not in KEYWORDS]
        if "using" in words or "class" in words or "struct" in words or "enum" in words:
            named = [b for a, b in zip(words, words[1:]) if a in ("class", "struct", "using", "enum") and b not in KEYWORDS]
            names = named or names
            name = names[0] if names else None
        else:
            name = names[-1] if names and names[-1] == words[-1] else None
            if token == "(" and before == ">":
                name = None
        if name is None:
            return
        if "anonymous" in levels or words[0] == "static" or ("using" in words and self.path.endswith(".cc")):
            self.own.add(name)
        else:
            self.public.add(name)
            if token == "{" and words[0] in ("class", "struct", "enum"):
                self.types.add(name)


def closure(root, path, files, seen):
    for include in files[path].includes:
        full = os.path.join(root, include)
        if full in seen or not os.path.exists(full):
            continue
        seen.add(full)
        if full not in files:
            files[full] = File(full)
        closure(root, full, files, seen)
    return seen


def learn(root, path, files, public):
    """What the source `path` gets from the headers of the tree; returns these."""
    headers = closure(root, path, files, set())
    public[path] = set(files[path].public).union(*(files[header].public for header in headers))
    files[path].places = {name: header for header in headers for name in files[header].types}
    return headers


def collide(a, b, public):
    if a.alone or b.alone or a.own & b.own or a.own & b.used or b.own & a.used:
        return True
    if any(b.aliases.get(name, target) != target for name, target in a.aliases.items()):
        return True
    if any(b.places.get(name, header) != header for name, header in a.places.items()):
        return True
    return bool(a.own & (public[b.path] - public[a.path]) or b.own & (public[a.path] - public[b.path]))


def groups_of(sources, files, public, size):
    groups = []
    for path in sources:
        for group in groups:
            if len(group) < size and not any(collide(files[path], files[other], public) for other in group):
                group.append(path)
                break
        else:
            groups.append([path])
    return groups


def main():
    root, out = sys.argv[1:3]
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    folders = {}
    for folder, subs, names in os.walk(root):
        subs[:] = sorted(sub for sub in subs if sub != "build" and not sub.startswith("."))
        sources = sorted(os.path.join(folder, name) for name in names if name.endswith(".cc"))
        if sources:
            folders[folder] = sources
    files, public = {}, {}
    for path in (path for sources in folders.values() for path in sources):
        files[path] = File(path)
    for path in list(files):
        learn(root, path, files, public)
    lines = []
    for folder, sources in sorted(folders.items()):
        is_test = [path for path in sources if path.endswith("_test.cc")]
        for kind, letter in (([path for path in sources if path not in is_test], "g"), (is_test, "t")):
            for number, group in enumerate(groups_of(kind, files, public, size)):
                if len(group) > 1:
                    # A target may have sources of several folders.
                    name = "_".join([letter + str(number), *os.path.relpath(folder, root).split(os.sep)[1:]])
                    lines += [f"set(PROFD_UNITY_{os.path.relpath(path, root)} {name})" for path in group]
    text = "\n".join(lines) + "\n"
    if not os.path.exists(out) or open(out, encoding="utf-8").read() != text:
        with open(out, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
