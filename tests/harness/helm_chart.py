"""Renders what our Helm chart uses of Helm's template language: values, `quote`, `toJson`, `indent`, `default`, and
`if` without `else`. Everything else is an error. Debian 12 has no helm."""

import json
import os
import re

from text_files import read_text

ACTION = re.compile(r"\{\{(- )?\s*(.*?)\s*( -)?\}\}", re.S)


class TemplateError(AssertionError):
    pass


def lookup(path, context):
    value = context
    for name in path.lstrip(".").split("."):
        if not isinstance(value, dict) or name not in value:
            raise TemplateError(f"{path}: no such value")
        value = value[name]
    return value


def printed(value):
    """As Go prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)) or value is None:
        raise TemplateError(f"{value!r} is printed as Go's own text; use toJson")
    return str(value)


def evaluate(pipeline, context):
    first, *stages = [part.strip() for part in pipeline.split("|")]
    value = lookup(first, context)
    for stage in stages:
        name, *arguments = stage.split()
        if name == "quote" and not arguments:
            value = json.dumps(printed(value))
        elif name == "toJson" and not arguments:
            value = json.dumps(value)
        elif name == "indent" and len(arguments) == 1:
            value = "\n".join(" " * int(arguments[0]) + line for line in printed(value).split("\n"))
        elif name == "default" and len(arguments) == 1:
            value = value or lookup(arguments[0], context)
        else:
            raise TemplateError(f"{stage}: not known here")
    return printed(value)


def render(text, context):
    out, shown, at = [], [True], 0
    for match in ACTION.finditer(text):
        before = text[at:match.start()]
        at = match.end()
        if match[1]:
            before = before.rstrip()
        if match[3]:
            at += len(text[at:]) - len(text[at:].lstrip())
        if all(shown):
            out.append(before)
        words = match[2].split()
        if words[0] == "if" and len(words) == 2:
            shown.append(bool(lookup(words[1], context)) if all(shown) else False)
        elif words == ["end"] and len(shown) > 1:
            shown.pop()
        elif words[0].startswith("."):
            if all(shown):
                out.append(evaluate(match[2], context))
        else:
            raise TemplateError(f"{match[0]}: not known here")
    if len(shown) != 1:
        raise TemplateError("an if without end")
    return "".join(out) + text[at:]


def render_chart(folder, values, chart, namespace):
    """{template: text}"""
    context = {"Values": values, "Release": {"Namespace": namespace}, "Chart": {"AppVersion": chart["appVersion"]}}
    rendered = {}
    for name in sorted(os.listdir(os.path.join(folder, "templates"))):
        rendered[name] = render(read_text(folder, "templates", name), context)
    return rendered
