#!/usr/bin/env python3
"""Renders small templates with Python's jinja2 and stores what it says: the oracle of the template interpreter.

usage: make_template_cases.py tests/golden/chat-templates/features.json

The environment is that of Hugging Face transformers: immutable sandbox, trim_blocks, lstrip_blocks, loop controls,
{% generation %}, tojson = json.dumps without ASCII escapes, raise_exception, strftime_now at a frozen time.
"""
import datetime
import json
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

EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2
-7 // 2
7 % -3
-7 % 3
7.5 // 2
-7.5 % 2
2 ** 10
2 ** -1
-2 ** 2
2 ** 3 ** 2
0.1 + 0.2
1e16
1e15
123456789012345678
1e-4
1e-5
1.0
1_000
0x1f
0b101
0o17
1.5e3
5 / 2
4 / 2
10 % 3.5
1 < 2 < 3
1 < 2 > 3
1 == 1.0
true == 1
not true
not not i
i is odd and n is odd
+i
-f
- - 3
+true
-true
true + true
'a' 'b' "c"
'a' * 3
3 * 'ab'
[1] * 3
(1,) + (2,)
[1] + [2]
'x' ~ 1 ~ none ~ true ~ 1.0 ~ [1] ~ {'a': 1}
1 if t else 2
1 if empty
(1 if empty) is defined
'a' if empty else 'b' if t else 'c'
t and 'x' or 'y'
nul or empty or 'z'
s[0]
s[-1]
s[99]
s[1:4]
s[::-1]
s[::2]
s[-3:]
s[:-3]
s[5:2]
s[10:0:-3]
u[6:9]
u[::-1]
u[-1]
l[0]
l[-1]
l[5]
l[:2]
l[::-1]
l[1:]
l[-2:]
l[::2]
nested[1][1][0]
nested.0.1
(1, 2, 3)[1:]
range(10)[2:5]
range(5)[-1]
range(10)[::-2] | list
d.k
d['k']
d['no']
d.no is defined
d.items() | list
d.keys() | list
d.values() | list
d.get('k')
d.get('q')
d.get('q', 5)
d | length
d | list
d
num[1]
num['1']
num.1
d.items
'k' in d
'q' not in d
'ell' in s
'x' in s
1 in l
[1, 2] in nested
missing in l
(1, 2) in [(1, 2)]
messages[0]['role']
messages[-1].tool_calls[0].function.arguments.y[0]
messages | map(attribute='role') | list
messages | selectattr('role', 'equalto', 'user') | list
messages | selectattr('tool_calls', 'defined') | map(attribute='role') | list
messages | rejectattr('content') | list | length
messages | map(attribute='content') | select('string') | join('|')
people | map(attribute='job.title', default='-') | list
people | map(attribute='tags.0', default='-') | list
people | sort(attribute='age') | map(attribute='name') | list
people | sort(attribute='name') | map(attribute='name') | list
people | sort(attribute='name', case_sensitive=true) | map(attribute='name') | list
people | sort(attribute='age', reverse=true) | map(attribute='name') | list
people | sort(attribute='age,name') | map(attribute='name') | join
people | sum(attribute='age')
people | max(attribute='age')
people | min(attribute='name')
people | groupby('age') | list | length
people | groupby('age') | map('first') | list
people | groupby('job.title', default='none') | map('list') | list
words | sort
words | sort(case_sensitive=true)
words | unique | list
words | unique(case_sensitive=true) | list
words | map('upper') | list
words | map('replace', 'a', 'x') | list
words | map('default', 'x') | list
words | reject('eq', 'a') | list
words | select('in', ['a', 'b']) | list
words | reverse | list
words | first
words | last
[] | first
[] | last
[] | max
[] | sum
words | join
words | join(', ')
words | join(d=', ')
[1, none, 'x', 2.0] | join('-')
l | sum
l | sum(start=10)
l | max
l | min
l | sort(reverse=true)
l | length
l | count
l | batch(2) | list
l | batch(2, 'x') | list
l | slice(2) | list
l | slice(2, 'x') | list
range(7) | slice(3, 'f') | list
'abc' | batch(2) | list
l | string
l | list
'abc' | list
'abc' | reverse
'日本' | reverse
'abc' | first
'abc' | last
d | dictsort
d | dictsort(by='key', reverse=true)
{'b': 1, 'A': 2, 'c': 0} | dictsort
{'b': 1, 'A': 2, 'c': 0} | dictsort(true)
{'b': 1, 'A': 2, 'c': 0} | dictsort(false, 'value')
d | items | list
missing | items | list
s | upper
s | lower
'hELLO wORLD-foo (bar) [baz] {q} <r> a_b' | title
'hello WORLD' | capitalize
u | upper
u | title
u | capitalize
'ΑΣ ΑΣΑ' | lower
'ǆ' | capitalize
'ŉ ﬁ ΐ' | upper
ws | trim
'xxaxx' | trim('x')
'--a--' | trim('-')
s | replace('l', 'L')
s | replace('l', 'L', 1)
s | replace('', '-')
s | length
u | length
s | wordcount
'' | wordcount
'ab' | center(7)
'abc' | center(6)
'ab' | center
s | truncate(8)
s | truncate(8, true)
s | truncate(5, leeway=0)
s | truncate(8, false, '…', 0)
s | truncate(20)
'a\nb\n\nc' | indent
'a\nb\n\nc' | indent(2)
'a\nb\n\nc' | indent(2, true)
'a\nb\n\nc' | indent(2, first=true, blank=true)
'a\nb' | indent('> ')
'a\n' | indent
'' | indent(2, true)
html | e
html | escape
html | e | e
html | forceescape
html | safe
(html | e) ~ '<'
(html | e) + '<'
'<' + ('>' | safe)
('<b>' | safe) | upper
('<b>' | safe) is escaped
'<b>' is escaped
('%s' | safe) % '<'
'a b/ü&' | urlencode
{'a': 'x y', 'b': 1} | urlencode
'%s=%d' | format('a', 3)
'%(a)s' | format(a=1)
'5' | int
'5.9' | int
' 42 ' | int
'x' | int
'x' | int(3)
'0x1A' | int(0, 16)
'ff' | int(base=16)
'0b11' | int(base=2)
'1_000' | int
'-7' | int
'' | int
none | int
3.99 | int
-3.99 | int
true | int
[] | int
'1e3' | int
'inf' | int
'nan' | int
'5' | float
'x' | float
'x' | float(1.5)
'1e3' | float
'inf' | float
'-inf' | float
'nan' | float
' 2.5 ' | float
none | float
3 | float
-3 | abs
-2.5 | abs
2.5 | round
3.5 | round
2.675 | round(2)
1234.5678 | round(2)
1234.5678 | round(-2)
5 | round
15 | round(-1)
42.55 | round(1, 'floor')
42.55 | round(1, 'ceil')
42.1 | round(method='ceil')
missing | default('x')
missing | default
nul | default('x')
empty | default('x', true)
0 | d(5, true)
missing.x | default('q')
d.q | default('z')
missing | length
missing | list
missing | join
missing | upper
missing | trim
missing | string
missing | int
missing | first
missing | sort
missing | reverse | list
missing | tojson
missing == missing
missing == none
missing is none
missing is defined
missing is undefined
missing is string
missing is iterable
missing is sequence
missing is mapping
missing is number
missing ~ 'x'
missing + 'x'
missing.x
missing['x']
missing()
missing[0:1]
d.no.deeper
not missing
missing and 1
missing or 1
missing < 1
-missing
{'a': missing}
[missing]
d | tojson
l | tojson
nested | tojson(indent=2)
d | tojson(indent=4)
messages | tojson
messages | tojson(indent=2)
people | tojson(indent=none)
d | tojson(indent=0)
d | tojson(indent='--')
d | tojson(separators=(',', ':'))
d | tojson(separators=(',', ': '), indent=1)
d | tojson(sort_keys=true)
u | tojson
u | tojson(ensure_ascii=true)
html | tojson
'\u2028\x00\x1f\x7f\\/"' | tojson
'\u2028\x00\x1f\x7f\\/"' | tojson(ensure_ascii=true)
[1.0, 1e100, 1e-10, 0.1, 100000000000000000000.0, 1e16, -0.0] | tojson
[none, true, false] | tojson
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
(1, 2) | tojson
[] | tojson(indent=2)
{} | tojson(indent=2)
[[], {}] | tojson(indent=2)
'x' | tojson | length
big | tojson
sm | tojson
lg | tojson
range(3) | tojson
namespace(a=1) | tojson
big
sm
lg
big + 1
9223372036854775807 + 1
18446744073709551616 * 2
[0.1, 1e20, 123456.789, 1e-7, 100.0, 12345678901234567.0]
'it\'s'
['it\'s', "say \"x\"", 'both \' "', 'tab\t nl\n back\\ nul\x00 é \x7f \u200b \U0001f600 \ue000']
{'a': [1, {'b': ()}], (1, 2): none}
{'a': 1, 'a': 2}
{1: 'a', 1.0: 'b', true: 'c'}
(1,)
()
[(), [], {}]
(1, 2) | length
range(3)
range(1, 10, 3)
range(0)
range(3) | list
range(5, 0, -1) | list
range(3) | length
range(3) | last
3 in range(5)
dict(a=1, b=2)
dict(d, k='new')
dict([('a', 1), ('b', 2)])
dict()
namespace(a=1).a
namespace(a=1).b is defined
namespace({'x': 5}).x
namespace(a=1)
s.upper()
s.lower()
s.title()
s.capitalize()
s.swapcase()
'they\'re bill\'s'.title()
u.upper()
u.casefold()
s.strip('Hd')
ws.strip()
ws.lstrip()
ws.rstrip()
ws.split()
ws.split(' ')
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.split(',', maxsplit=1)
'a,b,c'.split(sep=',')
'a b  c'.split(none, 1)
' a b  c '.rsplit(none, 1)
'a,b,c'.rsplit(',', 1)
''.split()
''.split(',')
'abc'.split('')
'<think>x</think>y'.split('</think>')[-1]
'a\nb\r\nc\rd\x0be\u2028f'.splitlines()
'a\nb\n'.splitlines(true)
'a\n'.splitlines()
''.splitlines()
s.startswith('Hell')
s.startswith(('x', 'He'))
s.startswith('W', 6)
s.endswith('ld')
s.endswith(('x', 'ld'))
s.endswith('o', 0, 5)
s.startswith(['x'])
s.find('o')
s.find('o', 5)
s.find('zz')
s.find('o', -4)
s.rfind('o')
s.index('W')
s.index('zz')
u.find('本')
s.count('l')
s.count('l', 4)
'aaa'.count('aa')
'aaa'.count('')
s.replace('o', '0')
s.replace('o', '0', 1)
s.replace('', '.')
'-'.join(['a', 'b'])
'-'.join('abc')
'-'.join([1])
''.join(words)
'{} {}'.format(1, 'x')
'{1} {0}'.format('a', 'b')
'{a} {b[k]} {c[0]} {d.k}'.format(a=1, b=d, c=l, d=d)
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:05d} {:+d} {:,} {:x} {:#x} {:b} {:o} {:X}'.format(42, 42, 1234567, 255, 255, 5, 8, 255)
'{:.2f} {:8.3f} {:e} {:g} {:%} {:.1%} {:,.2f}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.25, 0.5, 1234567.891)
'{!r} {!s}'.format('x', 'y')
'{:{}}'.format('a', 5)
'{{}} {}'.format(1)
'{}'.format(none)
'{} {}'.format(1)
'{:d}'.format('x')
'{:5}|{:5}'.format(1, true)
'{:.3}'.format('abcdef')
'{:.3}'.format(3.14159)
'{:_}'.format(1234567)
'{:=+8d}'.format(42)
'{:-^20}'.format(u)
'%s' % 1
'%s %s' % ('a', [1])
'%d' % 3.7
'%d' % true
'%5d|%-5d|%05d|%+d|% d' % (42, 42, 42, 42, 42)
'%x %X %o %#x %#o' % (255, 255, 8, 255, 8)
'%.2f %8.2f %e %g %G' % (3.14159, 3.14159, 12345.678, 0.00001, 1e20)
'%10s|%-10s|%.2s' % ('abc', 'abc', 'abc')
'%r %s' % ('x', 'x')
'%%' % ()
'%c%c' % ('a', 98)
'%(k)s-%(z)d' % d
'%*d' % (5, 42)
'%s %s' % 'a'
'%s' % ('a', 'b')
'%d' % 'x'
'%s' % missing
'%s' % none
'%s' % (none,)
'abc'.isalpha()
'ab1'.isalnum()
'123'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
' \t'.isspace()
''.isspace()
'ABC'.isupper()
'abc1'.islower()
'Abc Def'.istitle()
'a_1'.isidentifier()
'1a'.isidentifier()
'é'.isascii()
'a\n'.isprintable()
'7'.zfill(3)
'-7'.zfill(4)
'ab'.ljust(4, '.')
'ab'.rjust(4)
'ab'.center(5, '*')
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('x')
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'a\tb'.expandtabs(4)
l.index(2)
l.index(9)
l.count(1)
l.append(4)
l.pop()
d.update({'x': 1})
d.pop('k')
l.append is defined
(1, 2).index(2)
s.__class__
s._x is defined
d.__len__ is defined
s.nope
s.nope()
i()
1 is number
1.5 is number
true is number
'1' is number
1 is integer
true is integer
1.0 is integer
1.0 is float
true is boolean
1 is boolean
s is string
l is string
l is iterable
i is iterable
d is iterable
l is sequence
s is sequence
d is sequence
i is sequence
(1,) is sequence
range(3) is sequence
range(3) is iterable
words | map('upper') is iterable
(words | map('upper')) is sequence
d is mapping
l is mapping
nul is none
nul is not none
d.items() is mapping
d.items() is iterable
d.items() is sequence
range is callable
s is callable
s.upper is callable
4 is even
3 is even
9 is divisibleby(3)
9 is divisibleby 2
'a' is in 'abc'
2 is in [1, 2]
1 is eq 1
1 is equalto(1)
1 is ne 2
1 is lt 2
2 is le 2
3 is gt 2
3 is ge 4
3 is greaterthan 2
1 is sameas 1
nul is sameas none
true is sameas 1
l is sameas l
[1] is sameas [1]
'abc' is lower
'ABC' is upper
'upper' is filter
'nope' is filter
'odd' is test
t is true
t is false
1 is true
not s is string
s is not string
i is odd if t else 1
strftime_now('%Y-%m-%d')
strftime_now('%d %B %Y, %H:%M:%S %p %j %U %a %A %b')
strftime_now('%-d %e %y %f[%z][%Z] %%')
raise_exception('stop')
raise_exception('stop %s' % 1)
1 / 0
1 // 0
1 % 0
1.0 / 0
'a' + 1
1 + 'a'
'a' - 'b'
[1] + (1,)
none + 1
1 < 'a'
none < 1
[1, 2] < [1, 3]
'a' < 'b'
'Z' < 'a'
(1, 2) < (1, 2, 0)
true < 2
l | nope
l is nope
s | upper | lower | title
(s | upper)[0]
s | upper ~ 'x'
i + l | length
-i | abs
'a' ~ 'b' | upper
1 | string + 'x'
[1, 2, 3,]
{'a': 1,}
(1, 2,)
[1, [2, [3]]] | string
'%s' | format(1) | length
d | attr('k') is defined
s | attr('upper') is callable
l | map('string') | join(',')
nested | map('length') | list
nested | map('first') | list
[1, 2, 3, 4] | select('divisibleby', 2) | list
[1, 'a', none, 2.5] | select('number') | list
l | map('pprint_no') | list
l | map(attribute='x') | list
[{'a': {'b': 1}}, {'a': {'b': 2}}] | map(attribute='a.b') | sum
[[1, 'a'], [2, 'b']] | map(attribute=1) | list
[[1, 'a'], [2, 'b']] | sum(attribute=0)
[{'a': 1}] | selectattr('b', 'undefined') | list
[{'a': 1}, {'a': none}] | selectattr('a', 'none') | list | length
[{'a': 1}, {'a': 2}] | selectattr('a', 'gt', 1) | list
[{'a': 1}, {'a': 2}] | selectattr('a', '==', 1) | list
[{'a': 1}, {'a': 2}] | rejectattr('a', '!=', 1) | first
[{'a': [1]}, {'a': []}] | selectattr('a') | list
(words | select('eq', 'zzz')) and 'lazy is true'
(words | select) | length
(words | select)[0]
words | map('upper') | first
words | map('upper') | last
'a' is string and 'b' is string
'ab' == 'a' 'b'
'x' in ['x', 'y'] and not 'z' in ['x']
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 == '1'
none == false
0 == false
'' == none
1.0 == 1
big == 9007199254740992
(1 if true else 2) + 3
[x for x in l]
{**d}
lambda: 1
l[0
'unclosed
{{ 1 }}
1 +
* 2
a b
1 2
if
not
l[1:2:3:4]
d.
d.'x'
s |
s is
'\x4'
'\u12'
'\101\60\n\q\'\
x'
"a\"b"
'a' if
true
True
none
None
false
loop
varargs is defined
""".strip("\n").replace("\\\nx'", "\\\\\nx'").split("\n")

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
