import type { ErrorObject, ValidateFunction } from 'ajv';

type Node = { readonly [keyword: string]: unknown };
/** Checks a part of a schema on its own; `root` has the definitions that it refers to. Null when it cannot stand alone. */
export type CompilePart = (part: Node, root: Node) => ValidateFunction | null;

/** What an explanation needs beside the errors. `whole` is what the value itself is called. */
export interface Explaining {
  root: Node;
  whole: string;
  compile: CompilePart;
}

/** How many faults one message tells. */
const MAX_TOLD = 3;

/**
 * What is wrong with a value, in words, from the errors that ajv gave for it (made with `verbose`). Of a union only the
 * branch that was meant speaks: the one whose type and whose `type`, `role` or the like the value has.
 */
export function explain(errors: readonly ErrorObject[], context: Explaining): string {
  const told = faults(errors, context, '');
  const depth = (fault: Fault): number => (fault.path === '' ? 0 : fault.path.split('.').length);
  const deepest = Math.max(0, ...told.map(depth));
  const words = told.filter((fault) => depth(fault) === deepest).map((fault) => fault.words);
  return [...new Set(words)].slice(0, MAX_TOLD).join('; ') || `${context.whole} is not valid`;
}

/** One fault: where it is, and what to say of it. */
interface Fault {
  path: string;
  words: string;
}

function faults(errors: readonly ErrorObject[], context: Explaining, at: string): Fault[] {
  const unions = new Map<string, ErrorObject>();
  // ajv tells of the outer one of two unions last.
  for (const error of errors) if (isUnion(error)) unions.set(error.instancePath, error);
  const isInside = (error: ErrorObject): boolean =>
    [...unions.keys()].some((path) => error.instancePath === path || error.instancePath.startsWith(`${path}/`));
  const isOuter = (path: string): boolean => ![...unions.keys()].some((other) => other !== path && path.startsWith(`${other}/`));
  const plain = errors.filter((error) => error.keyword !== 'if' && !isInside(error)).map((error) => describe(error, at, context.whole));
  const inUnions = [...unions.values()]
    .filter(({ instancePath }) => isOuter(instancePath))
    .flatMap((error) => ofUnion(error, context, join(at, error.instancePath)));
  return [...plain, ...inUnions];
}

const isUnion = ({ keyword, schema }: ErrorObject): boolean => (keyword === 'anyOf' || keyword === 'oneOf') && Array.isArray(schema);
const join = (at: string, instancePath: string): string =>
  [at, ...instancePath.split('/').slice(1)].filter((part) => part !== '').join('.');

function ofUnion(error: ErrorObject, context: Explaining, at: string): Fault[] {
  const { root, whole } = context;
  const value: unknown = error.data;
  const branches = branchesOf(error.schema as unknown[], root);
  const fitting = branches.filter((branch) => admits(branch, value));
  if (fitting.length === 0) return [{ path: at, words: `${at || whole} must be ${[...new Set(branches.flatMap(typesOf))].join(' or ')}` }];
  const tag = tagOf(fitting, root);
  if (tag !== null && isObject(value)) {
    const meant = fitting.filter((branch) => tagValue(branch, tag, root) === value[tag]);
    if (meant.length === 0) return [untagged(fitting, tag, value, root, at)];
    return nearest(meant, value, context, at);
  }
  return nearest(fitting, value, context, at);
}

/** The faults under the branch that comes nearest to the value. */
function nearest(branches: readonly Node[], value: unknown, context: Explaining, at: string): Fault[] {
  const tried = branches.map((branch) => {
    const validate = context.compile(branch, context.root);
    if (validate === null) return [{ path: at, words: `${at || context.whole} fits none of its alternatives` }];
    return validate(value) ? [] : faults(validate.errors ?? [], context, at);
  });
  if (tried.some((found) => found.length === 0))
    return [{ path: at, words: `${at || context.whole} fits more than one of its alternatives` }];
  return tried.reduce((best, found) => (found.length < best.length ? found : best));
}

function untagged(branches: readonly Node[], tag: string, value: Node, root: Node, at: string): Fault {
  const path = join(at, `/${tag}`);
  const known = [...new Set(branches.map((branch) => JSON.stringify(tagValue(branch, tag, root))))];
  return { path, words: value[tag] === undefined ? `${path} is missing` : `${path} must be one of ${known.join(', ')}` };
}

const isObject = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The alternatives of a union, with references followed and unions in unions opened. */
function branchesOf(union: readonly unknown[], root: Node): Node[] {
  return union
    .map((branch) => resolve(branch, root))
    .flatMap((branch) => {
      const inner = branch['anyOf'] ?? branch['oneOf'];
      return Array.isArray(inner) && branch['properties'] === undefined ? branchesOf(inner, root) : [branch];
    });
}

/** Follows references inside the same schema. What leads nowhere is taken as a schema that says nothing. */
function resolve(schema: unknown, root: Node): Node {
  let node = schema;
  for (let hops = 0; hops < 20; hops += 1) {
    if (!isObject(node)) return {};
    const ref = node['$ref'];
    if (typeof ref !== 'string' || !ref.startsWith('#/')) return node;
    node = ref
      .slice(2)
      .split('/')
      .reduce<unknown>((part, key) => (isObject(part) ? part[key.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined), root);
  }
  return {};
}

const typesOf = (branch: Node): string[] => [branch['type'] ?? []].flat().map(String);

function admits(branch: Node, value: unknown): boolean {
  const types = typesOf(branch);
  if (types.length === 0) return true;
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  return types.includes(type) || (types.includes('integer') && type === 'number');
}

/** The one value that a branch wants of a property; undefined when it wants none or several. */
function tagValue(branch: Node, key: string, root: Node): unknown {
  const properties = branch['properties'];
  if (!isObject(properties)) return undefined;
  const schema = resolve(properties[key], root);
  const values = schema['enum'];
  return schema['const'] ?? (Array.isArray(values) && values.length === 1 ? (values[0] as unknown) : undefined);
}

/** The property that tells the branches apart: each wants one value of it. */
function tagOf(branches: readonly Node[], root: Node): string | null {
  const properties = branches[0]?.['properties'];
  if (!isObject(properties)) return null;
  return Object.keys(properties).find((key) => branches.every((branch) => tagValue(branch, key, root) !== undefined)) ?? null;
}

function describe(error: ErrorObject, before: string, whole: string): Fault {
  const at = join(before, error.instancePath);
  const name = at || whole;
  const field = (key: unknown): string => join(at, `/${String(key)}`);
  switch (error.keyword) {
    case 'required':
      return { path: at, words: `${field(error.params['missingProperty'])} is missing` };
    case 'additionalProperties':
      return { path: at, words: `${field(error.params['additionalProperty'])} is not a known field` };
    case 'enum':
      return {
        path: at,
        words: `${name} must be one of ${(error.params['allowedValues'] as unknown[]).map((value) => JSON.stringify(value)).join(', ')}`,
      };
    case 'const':
      return { path: at, words: `${name} must be ${JSON.stringify(error.params['allowedValue'])}` };
    case 'type':
      return { path: at, words: `${name} must be ${[error.params['type']].flat().join(' or ')}` };
    default:
      return { path: at, words: `${name} ${error.message ?? 'is not valid'}` };
  }
}
