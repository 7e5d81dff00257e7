// Markdown as elements. Nothing is parsed as HTML, so a model cannot smuggle markup in.
import {copy_button, element} from './dom.js';

const kFence = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const kHeading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const kRule = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const kTableRule = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const kMaxDepth = 16;

/** The text as a fragment of block elements. */
export function markdown(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(...blocks(text.replace(/\r\n?/g, '\n').split('\n'), 0));
  return fragment;
}

function blocks(lines, depth) {
  if (depth > kMaxDepth) return [element('p', {}, lines.join('\n'))];
  const nodes = [];
  for (let i = 0; i < lines.length;) {
    if (!lines[i].trim()) { ++i; continue; }
    const [node, next] = block(lines, i, depth);
    nodes.push(node);
    i = next;
  }
  return nodes;
}

/** The block that starts at line `i`, and the line after it. */
function block(lines, i, depth) {
  const line = lines[i];
  if (kFence.test(line)) return code_block(lines, i);
  const heading = kHeading.exec(line);
  if (heading) return [element(`h${heading[1].length}`, {}, ...inline(heading[2])), i + 1];
  if (kRule.test(line)) return [element('hr'), i + 1];
  if (kQuote.test(line)) return quote(lines, i, depth);
  if (kItem.test(line)) return list(lines, i, depth);
  if (is_table(lines, i)) return table(lines, i);
  let end = i + 1;
  while (end < lines.length && lines[end].trim() && !interrupts(lines, end)) ++end;
  const text = lines.slice(i, end).map((l) => l.trimStart()).join('\n');
  return [element('p', {}, ...inline(text)), end];
}

function interrupts(lines, i) {
  const line = lines[i];
  return kFence.test(line) || kHeading.test(line) || kRule.test(line) || kQuote.test(line) ||
         kItem.test(line);
}

function code_block(lines, i) {
  const [, fence, language] = kFence.exec(lines[i]);
  const closes = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}\\s*$`);
  let end = i + 1;
  while (end < lines.length && !closes.test(lines[end])) ++end;
  const text = lines.slice(i + 1, end).join('\n');
  const head = element('figcaption', {}, element('span', {}, language || 'code'),
                       copy_button(() => text));
  const code = element('pre', {tabIndex: 0}, element('code', {}, text));
  return [element('figure', {className: 'code'}, head, code), end + 1];
}

function quote(lines, i, depth) {
  const inner = [];
  while (i < lines.length && kQuote.test(lines[i])) inner.push(lines[i++].replace(kQuote, ''));
  return [element('blockquote', {}, ...blocks(inner, depth + 1)), i];
}

function list(lines, i, depth) {
  const first = kItem.exec(lines[i]);
  const ordered = /\d/.test(first[2]);
  const node = element(ordered ? 'ol' : 'ul');
  if (ordered) node.start = parseInt(first[2], 10);
  while (i < lines.length) {
    const item = kItem.exec(lines[i]);
    if (!item || item[1].length !== first[1].length || /\d/.test(item[2]) !== ordered) break;
    const indent = lines[i].length - item[3].length;
    const inner = [item[3]];
    for (++i; i < lines.length; ++i) {
      const is_blank = !lines[i].trim();
      const next_is_inside = i + 1 < lines.length && indentation(lines[i + 1]) > first[1].length;
      if (is_blank ? !next_is_inside : indentation(lines[i]) <= first[1].length) break;
      inner.push(lines[i].slice(Math.min(indent, indentation(lines[i]))));
    }
    const content = blocks(inner, depth + 1);
    // A tight item is a line, not a paragraph.
    if (content[0]?.tagName === 'P') content.splice(0, 1, ...content[0].childNodes);
    node.append(element('li', {}, ...content));
    while (i + 1 < lines.length && !lines[i].trim() && kItem.test(lines[i + 1])) ++i;
  }
  return [node, i];
}

const indentation = (line) => line.length - line.trimStart().length;

function is_table(lines, i) {
  return lines[i].includes('|') && i + 1 < lines.length && lines[i + 1].includes('-') &&
         kTableRule.test(lines[i + 1]) && cells(lines[i]).length === cells(lines[i + 1]).length;
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((c) => c.trim());
}

function table(lines, i) {
  const sides = cells(lines[i + 1]).map(
      (rule) => (rule.endsWith(':') ? (rule.startsWith(':') ? 'center' : 'right') : 'left'));
  const row = (tag, line) => element('tr', {}, ...sides.map((side, c) => {
    const text = (cells(line)[c] ?? '').replaceAll('\\|', '|');
    return element(tag, {className: side}, ...inline(text));
  }));
  const head = element('thead', {}, row('th', lines[i]));
  const body = element('tbody');
  for (i += 2; i < lines.length && lines[i].includes('|'); ++i) body.append(row('td', lines[i]));
  return [element('div', {className: 'table'}, element('table', {}, head, body)), i];
}

// One alternative per kind of span; the first that matches at the earliest place is taken.
const kSpans = new RegExp([
  String.raw`(?<ticks>\x60+)(?<code>[^\x60](?:.{0,2000}?[^\x60])?)\k<ticks>(?!\x60)`,
  String.raw`\\(?<escaped>[!-\/:-@\[-\x60{-~])`,
  String.raw`!?\[(?<label>[^\]\n]{0,500})\]\((?<target>[^\s()]{1,2000})\)`,
  String.raw`(?<url>https?:\/\/[^\s<>()\x60*]{1,2000}[^\s<>()\x60*.,;:!?'"])`,
  String.raw`\*\*(?<strong>\S(?:.{0,2000}?\S)?)\*\*(?!\*)`,
  String.raw`~~(?<gone>\S(?:.{0,2000}?\S)?)~~`,
  String.raw`\*(?<em>[^\s*](?:[^*]{0,2000}[^\s*])?)\*`,
  String.raw`(?<![\p{L}\p{N}_])_(?<em2>[^\s_](?:[^_]{0,2000}[^\s_])?)_(?![\p{L}\p{N}_])`,
  String.raw`(?<newline> {2,}\n|\n)`,
].join('|'), 'su');

/** Spans of a line of text as nodes. */
function inline(text, depth = 0) {
  const nodes = [];
  while (text) {
    const match = depth < kMaxDepth ? kSpans.exec(text) : null;
    if (!match) { nodes.push(text); break; }
    if (match.index > 0) nodes.push(text.slice(0, match.index));
    nodes.push(span(match, depth + 1));
    text = text.slice(match.index + match[0].length);
  }
  return nodes;
}

function span({0: whole, groups: g}, depth) {
  if (g.code !== undefined) return element('code', {}, g.code);
  if (g.escaped !== undefined) return g.escaped;
  if (g.newline !== undefined) return g.newline.length > 1 ? element('br') : '\n';
  if (g.target !== undefined) return link(g.target, inline(g.label, depth)) ?? whole;
  if (g.url !== undefined) return link(g.url, [g.url]) ?? whole;
  if (g.strong !== undefined) return element('strong', {}, ...inline(g.strong, depth));
  if (g.gone !== undefined) return element('del', {}, ...inline(g.gone, depth));
  return element('em', {}, ...inline(g.em ?? g.em2, depth));
}

/** Only addresses that cannot run anything become links. */
function link(target, content) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return null;
  return element('a', {href: target, target: '_blank', rel: 'noopener noreferrer'}, ...content);
}
