import { readFileSync } from 'node:fs';
import { type Document, isMap, isScalar, LineCounter, parseDocument, Scalar, visit, type YAMLError } from 'yaml';
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

const systemCode = (error: unknown): string => String((error as NodeJS.ErrnoException).code ?? 'unknown error');

function readText(file: string): Reading<string | null> {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return { ok: true, value: null };
    return { ok: false, faults: [{ file, field: '', problem: `cannot be read (${systemCode(error)})` }] };
  }
  try {
    return { ok: true, value: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { ok: false, faults: [{ file, field: '', problem: 'is not UTF-8 text; save it as UTF-8' }] };
  }
}

/** Reads a file; null when it does not exist, `{}` when nothing is in it. */
export function readYamlFile(file: string, env: Environment): Reading<YamlContent | null> {
  const text = readText(file);
  if (!text.ok) return text;
  return text.value === null ? { ok: true, value: null } : parseYaml(file, text.value, env);
}

function parseYaml(file: string, text: string, env: Environment): Reading<YamlContent> {
  const lines = new LineCounter();
  // Without prettyErrors no line of the file, which may hold a key, gets into a message.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  // Only the first one: the others mostly follow from it.
  const broken = document.errors[0] ?? document.warnings[0];
  if (broken !== undefined) return { ok: false, faults: [syntaxFault(file, lines, broken)] };
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) return { ok: true, value: EMPTY };
  if (!isMap(document.contents))
    return { ok: false, faults: [{ file, field: '', problem: 'must be a mapping of fields (`name: value`)' }] };

  const faults = [...refusedKeys(file, lines, document), ...expandDocument(file, lines, document, env)];
  if (faults.length > 0) return { ok: false, faults };
  try {
    const value = document.toJS() as { [key: string]: unknown };
    return { ok: true, value: { value, lineOf: (field) => lineOf(document, lines, field) } };
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
