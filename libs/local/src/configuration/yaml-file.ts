import { type Document, isMap, isScalar, LineCounter, parseDocument, Scalar, visit, type YAMLError } from 'yaml';
import type { JsonValue } from '#libs/contracts';
import type { ConfigurationFault, Reading } from './fault.js';
import { type Environment, expandReferences, hasReference, plainScalar } from './references.js';

/** The content of a YAML file, with environment references expanded. */
export interface YamlContent {
  value: { [key: string]: unknown };
  /** The line of a field by its dotted path, or of the nearest one around it. */
  lineOf(field: string): number | undefined;
}

const EMPTY: YamlContent = { value: {}, lineOf: () => undefined };
const REFUSED_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

/** Reads the text of a file as YAML; null when there is no file, `{}` when nothing is in it. */
export function readYaml(file: string, text: Reading<string | null>, env: Environment): Reading<YamlContent | null> {
  if (!text.ok) return text;
  return text.value === null ? { ok: true, value: null } : parseYaml(file, text.value, env);
}

/** Reads the text of a file as any YAML value; references stay as they are when `env` is null. */
export function readYamlValue(file: string, text: string, env: Environment | null): Reading<JsonValue> {
  const parsed = parse(file, text, env);
  return parsed.ok ? { ok: true, value: parsed.value.value as JsonValue } : parsed;
}

function parseYaml(file: string, text: string, env: Environment): Reading<YamlContent> {
  const parsed = parse(file, text, env);
  if (!parsed.ok) return parsed;
  const { value, document, lines } = parsed.value;
  if (value === null || value === undefined) return { ok: true, value: EMPTY };
  if (!isMap(document.contents)) {
    return { ok: false, faults: [{ file, field: '', problem: 'must be a mapping of fields (`name: value`)' }] };
  }
  return { ok: true, value: { value: value as { [key: string]: unknown }, lineOf: (field) => lineOf(document, lines, field) } };
}

function parse(file: string, text: string, env: Environment | null): Reading<{ value: unknown; document: Document; lines: LineCounter }> {
  const lines = new LineCounter();
  // Without prettyErrors no line of the file, which may hold a key, gets into a message.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  // Only the first one: the others mostly follow from it.
  const broken = document.errors[0] ?? document.warnings[0];
  if (broken !== undefined) return { ok: false, faults: [syntaxFault(file, lines, broken)] };
  const faults = [...refusedKeys(file, lines, document), ...(env === null ? [] : expandDocument(file, lines, document, env))];
  if (faults.length > 0) return { ok: false, faults };
  try {
    return { ok: true, value: { value: document.toJS(), document, lines } };
  } catch {
    return { ok: false, faults: [{ file, field: '', problem: 'has aliases that cannot be resolved' }] };
  }
}

function syntaxFault(file: string, lines: LineCounter, error: YAMLError): ConfigurationFault {
  const { line, col } = lines.linePos(error.pos[0]);
  const what = error.code.toLowerCase().replaceAll('_', ' ');
  return { file, field: '', line, problem: `is not valid YAML: ${what} at column ${col}` };
}

function refusedKeys(file: string, lines: LineCounter, document: Document): ConfigurationFault[] {
  const faults: ConfigurationFault[] = [];
  visit(document, {
    Pair(_key, pair) {
      if (!isScalar(pair.key) || !REFUSED_KEYS.has(String(pair.key.value))) return;
      const line = lines.linePos(pair.key.range?.[0] ?? 0).line;
      faults.push({ file, field: String(pair.key.value), line, problem: 'is not a known field' });
    },
  });
  return faults;
}

/**
 * Expands the references in values (not in keys). An unquoted scalar takes the type that its
 * expanded text has in YAML; one of which nothing is left is an empty field, quoted or not.
 */
function expandDocument(file: string, lines: LineCounter, document: Document, env: Environment): ConfigurationFault[] {
  const faults: ConfigurationFault[] = [];
  visit(document, {
    Scalar(key, node) {
      if (key === 'key' || typeof node.value !== 'string' || !hasReference(node.value)) return;
      const { text, missing } = expandReferences(node.value, env);
      node.value = node.type === Scalar.PLAIN || text === '' ? plainScalar(text) : text;
      const line = lines.linePos(node.range?.[0] ?? 0).line;
      for (const name of missing) {
        const problem = `refers to the environment variable ${name}, which is not set; give it a default as in \${${name}:default}`;
        faults.push({ file, field: '', line, problem });
      }
    },
  });
  return faults;
}

function lineOf(document: Document, lines: LineCounter, field: string): number | undefined {
  const path = field.split('.');
  for (let length = path.length; length > 0; length--) {
    const parent = document.getIn(path.slice(0, length - 1), true) ?? document.contents;
    if (!isMap(parent)) continue;
    const pair = parent.items.find((item) => isScalar(item.key) && String(item.key.value) === path[length - 1]);
    const offset = isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
    if (offset !== undefined) return lines.linePos(offset).line;
  }
  return undefined;
}
