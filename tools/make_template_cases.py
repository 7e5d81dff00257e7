#!/usr/bin/env python3
"""Renders small templates with Python's jinja2 and stores what it says: the oracle of the template interpreter.

usage: make_template_cases.py tests/golden/chat-templates/features.json

The environment is that of Hugging Face transformers: immutable sandbox, trim_blocks, lstrip_blocks, loop controls,
{% generation %}, tojson = json.dumps without ASCII escapes, raise_exception, strftime_now at a frozen time.
"""
import datetime
import json
from pathlib import Path
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 3, 9, 8, 7, 5)

VARIABLES = {
    "s": "Hello World", "u": "naïve 日本語 😀 ß", "ws": " \t\n a  b \u00a0\r\n", "empty": "", "i": 7, "n": -3, "f": 2.5, "t": True,
    "nul": None, "l": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": [[1, 2], [3, [4]]], "d": {"k": "v", "z": 1, "a": None},
    "people": [{"name": "Bo", "age": 3, "tags": ["x"]}, {"name": "al", "age": 1, "job": {"title": "T"}}, {"name": "Cy", "age": 2}],
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.0, "y": [True]}}}]}],
    "html": "<a href='x'>\"&\"</a>", "num": {"1": "one"}, "big": 9007199254740993, "sm": 1e-7, "lg": 1e22,
}

ATOMS = ["s", "u", "empty", "i", "n", "f", "t", "nul", "l", "d", "nested", "(1, 'x')", "missing", "0", "0.0", "'7'", "{}", "[]", "()"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]

EXPRESSIONS = (Path(__file__).resolve().parent.parent /
               "tests/golden/chat-templates/expressions.txt").read_text().strip("\n").replace("\\\nx'", "\\\\\nx'").split("\n")

STATEMENTS = [
    "{% for x in l %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for x in l -%}\n  {{ x }}\n{%- endfor %}|",
    "{% for x in l %}\n  {{ x }}\n{% endfor %}|",
    "a\n  {% if t %}\n  b\n  {% endif %}\n c",
    "a\n  {%+ if t %}\n  b\n  {%+ endif +%}\n c",
    "a  {%- if t -%}  b  {%- endif -%}  c",
    "a {{- ' b ' -}} c {{+ 1 }}",
    "a\n\n{%- if t %}\n\nb{% endif %}\n\n\nc\n",
    "  {# c #}\n  x {#- y -#}  z\n{# multi\nline #}\nq",
    "{#+ x #}a  {# x +#}\nb",
    "{% raw %}{{ x }} {% if %}{% endraw %}",
    "a\n  {% raw %}\n x\n  {% endraw %}\nb",
    "a {%- raw -%}  x  {%- endraw -%} b",
    "{{ '{% raw %}' }}{% raw -%} {# {% endraw %}",
    "\r\na\rb\r\n{{ 'x\r\ny' }}\r\n",
    "x\n\n", "x\n", "\n", "", "\n\n{% if t %}\n\n{% endif %}\n",
    "{% if nul %}1{% elif empty %}2{% elif t %}3{% else %}4{% endif %}",
    "{% if i > 5 and not nul %}y{% endif %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}",
    "{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for c in 'añ😀' %}[{{ c }}]{% endfor %}",
    "{% for x in missing %}x{% else %}none{% endfor %}",
    "{% for x in nul %}x{% endfor %}", "{% for x in 5 %}x{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}{{ loop.last }}{{ x }} {% else %}e{% endfor %}",
    "{% for x in l if x > 9 %}{{ x }}{% else %}e{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}e{% endfor %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% break %}", "{% macro m() %}{% break %}{% endmacro %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}{{ loop.previtem is defined }} {% endfor %}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in l %}{{ loop.nope is defined }}{% endfor %}",
    "{% for x in people if x.age > 1 recursive %}{{ x.name }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in nested recursive %}{% if x is iterable %}[{{ loop(x) }}]{% else %}{{ x }}{{ loop.depth }}{% endif %}{% endfor %}",
    "{% for x in l %}{{ loop(l) }}{% endfor %}",
    "{% for x in l %}{% set y = x %}{% endfor %}{{ y is defined }}{{ x is defined }}",
    "{% set x = 1 %}{% for q in l %}{{ x }}{% set x = q %}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set (x, y) = [1, 2] %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}", "{% set x, = [1] %}{{ x }}",
    "{% set x %}a{{ i }}b{% endset %}{{ x }}{{ x | length }}",
    "{% set x | upper | replace('A', '-') %}a{{ i }}b{% endset %}{{ x }}",
    "{% set ns = namespace(a=1, b='x') %}{% set ns.a = ns.a + 1 %}{% set ns.c = 3 %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns.d is defined }}",
    "{% set ns = namespace() %}{% for x in l %}{% set ns.last = x %}{% endfor %}{{ ns.last }}",
    "{% set ns = namespace(t='') %}{% set ns.t %}block{% endset %}{{ ns.t }}",
    "{% set ns = namespace(a=1, b=2) %}{% set ns.a, ns.b = ns.b, ns.a %}{{ ns.a }}{{ ns.b }}",
    "{% set d.k = 1 %}", "{% set nope.k = 1 %}", "{% set true = 1 %}",
    "{% macro m(a, b=2, *c) %}{% endmacro %}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4) }}{{ m(a=5, b=6) }}",
    "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(4) }}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}",
    "{% macro m() %}{% set z = 5 %}{{ z }}{% endmacro %}{{ m() }}{{ z is defined }}",
    "{% macro m() %}  x\n  {% if t %}y{% endif %}\n{% endmacro %}[{{ m() }}]",
    "{% macro m() -%}\n  x\n{%- endmacro %}[{{ m() | trim }}]{{ m() is string }}{{ m.name }}",
    "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro w(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call w('b') %}{{ i }}{% endcall %}",
    "{% macro w() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) w() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro w() %}{{ caller is defined }}{% endmacro %}{{ w() }}", "{% macro w() %}x{% endmacro %}{% call w() %}{% endcall %}",
    "{% for x in l %}{% call(y) wrap() %}{{ x }}{% endcall %}{% endfor %}",
    "{% macro wrap() %}({{ caller() }}){% endmacro %}{% for x in l %}{% call wrap() %}{{ x }}{{ loop.index }}{% endcall %}{% endfor %}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}a{% endfilter %}", "{% filter indent(2) %}a\nb\n{% endfilter %}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}",
    "{% with x = 1 %}{% with y = x %}{{ y }}{% endwith %}{% endwith %}",
    "{% block b %}x{{ i }}{% endblock %}", "{% print 1, 2 %}",
    "{% generation %}{{ s }}{% endgeneration %}!", "{% generation %}{% set q = 1 %}{% endgeneration %}{{ q is defined }}",
    "{% for m in messages %}\n  {%- generation %}\n{{ m.role }}{{ loop.index }}\n  {%- endgeneration %}\n{% endfor %}",
    "{% include 'x' %}", "{% if nul %}{% include 'x' %}{% endif %}ok", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}",
    "{% if nul %}{{ s | nope }}{% endif %}ok", "{{ s | nope if nul else 'ok' }}", "{{ 'ok' if t else s is nope }}", "{% for x in [] %}{{ x | nope }}{% endfor %}",
    "{% if t %}{% for x in [] %}{{ x | nope }}{% endfor %}{% endif %}", "{% macro m() %}{{ 1 | nope }}{% endmacro %}", "{% if s | nope %}{% endif %}",
    "{% if %}{% endif %}", "{% if t %}", "{% endif %}", "{% for %}{% endfor %}", "{% for x in l %}", "{% set %}", "{% nope %}", "{{ }}", "{{", "{%", "{#", "{{ 1", "{% if t %}{% endfor %}",
    "{% do 1 %}", "{% trans %}x{% endtrans %}", "{% else %}", "{% if t %}{% else %}{% else %}{% endif %}", "{% raw %}", "}} %} #} { % }", "{ {{ '{' }} }", "{{ '}}' }}{{ \"%}\" }}{{ {'a': {'b': 1}}['a']['b'] }}",
    "{{ {'a': 1} }}{{ {'a': {}}}}", "{{1}}{{2}}{%if t%}3{%endif%}", "{%-if t-%} x {%-endif-%}", "{{ 1 , 2 }}", "{{ (1) }}{{ (1,) }}",
    "{% if 1, 2 %}t{% endif %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% if t: %}x{% endif %}", "{% for x in l: %}{{ x }}{% endfor: %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    "{% set j = joiner() %}{{ j() }}a{{ j() }}b", "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
    "{% set m = words | map('upper') %}{{ m | list }}{{ m | list }}", "{% set m = d.items() %}{{ m | list }}{{ m | length }}{% for k, v in m %}{{ k }}{% endfor %}",
    "{{ d.items() }}{{ d.keys() }}{{ d.values() }}", "{% for g in people | groupby('age') %}{{ g.grouper }}:{{ g.list | length }}{{ g[0] }} {% endfor %}",
    "{% for g, xs in people | groupby('age') %}{{ g }}{{ xs | map(attribute='name') | join }} {% endfor %}",
    "{% set a = [1] %}{% set b = a + [2] %}{{ a }}{{ b }}{{ a is sameas a }}", "{% set x = none %}{{ x }}{% set x = x or 'd' %}{{ x }}",
    "{{ dict(**d) }}{{ dict(*[[('q', 1)]]) }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}{{ m(5, **{'b': 6}) }}",
    "{% set loop = 5 %}{{ loop }}", "{% for loop in l %}{% endfor %}", "{{ loop is defined }}{% for x in l %}{% else %}{{ loop is defined }}{% endfor %}",
    "{% set x = 'é' %}{{ x }}{{ x | length }}{% if x == '\\u00e9' %}same{% endif %}", "{% set é = 1 %}{{ é }}", "{{ 'a' ~ '\\n' }}|{{ \"\\t\" }}|{{ '\\\\' }}",
    "{% for m in messages %}{% if m.role == 'system' and loop.first %}<<{{ m.content }}>>{% elif m['content'] is not none %}[{{ m['content'] }}]{% else %}{% for tc in m.tool_calls %}{{ tc.function | tojson }}{% endfor %}{% endif %}{% endfor %}",
    "{% set ns = namespace(found=false) %}{% for m in messages[::-1] %}{% if not ns.found and m.role == 'user' %}{% set ns.found = true %}{{ loop.index0 }}{% endif %}{% endfor %}",
    "{%- set sep = joiner(', ') -%}\n{%- for k, v in d | dictsort -%}\n  {{- sep() -}}{{ k }}: {{ v | default('nil', true) }}\n{%- endfor -%}",
    "{{ caller is defined }}{{ kwargs is defined }}", "{% macro m(caller) %}{{ caller }}{% endmacro %}{{ m(1) }}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}{{ m(caller=2) }}",
    "{% set x = {'a': 1} %}{% set x = dict(x, b=2) %}{{ x }}{% for k in x %}{{ k }}{{ x[k] }}{% endfor %}",
    "{%- macro obj(p, depth=0) -%}{%- for k, v in p.items() -%}{{ ' ' * depth }}{{ k }}{% if v is mapping %}\n{{ obj(v, depth + 1) }}{% else %}={{ v }}\n{% endif %}{%- endfor -%}{%- endmacro -%}{{ obj({'a': {'b': 1, 'c': {'d': 2}}, 'e': 3}) }}",
    "{%\nif\nt\n%}\nx\n{%\nendif\n%}", "x{% if t %}\n\n{% endif %}y", "{{ s }}\n{{ s }}\n", "{% if t %} \n{% endif %}", " {% if t %} x {% endif %} ", "\t{% if t %}\tx\n\t{% endif %}\n\ty", "a {% if t %}\nb{% endif %}", "{{ i }}  {% if t %}x{% endif %}",
    "\u00a0{% if t %}x{% endif %}", "{% if t %}x{% endif %}\r\ny", "{# a #}\n\n{# b #}\nx", "x {#- a #} y", "{{ 'a' -}}\n\n b", "{% set x = 1 -%}\n\n b", "{%- if t %}\n  a\n  {%- endif %}\n", "<{% if t -%} \n x \n {%- endif %}>",
]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def templates():
    for e in EXPRESSIONS:
        yield e, "{{ %s }}" % e.replace("\\\\\n", "\\\n")
    for op in BINARY:
        for a in ATOMS:
            for b in ATOMS:
                yield "%s %s %s" % (a, op, b), "{{ %s %s %s }}" % (a, op, b)
    for i, s in enumerate(STATEMENTS):
        yield "statement %d" % i, s


def main():
    env = make_environment()
    cases = []
    for name, source in templates():
        case = {"name": name, "template": source}
        try:
            text = env.from_string(source).render(**VARIABLES)
            if " at 0x" in text or text.endswith("j)"):  # addresses, complex numbers
                continue
            text.encode()
            case["expected"] = text
        except Exception as e:
            case["error"] = type(e).__name__
            case["error_message"] = str(e)[:200]
        cases.append(case)
    with open(sys.argv[1], "w") as f:
        f.write('{"now": %s, "versions": %s,\n"variables": %s,\n"cases": [\n' % (
            json.dumps(NOW.isoformat()), json.dumps({"jinja2": jinja2.__version__}), json.dumps(VARIABLES, ensure_ascii=False)))
        f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases))
        f.write("\n]}\n")
    print(len(cases), "cases,", sum("error" in c for c in cases), "of them errors")


if __name__ == "__main__":
    main()
