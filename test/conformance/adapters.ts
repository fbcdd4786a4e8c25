import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** The ports that have a suite, and the function that runs it. */
export const SUITES = {
  Bus: 'busConformance',
  Journal: 'journalConformance',
  Transcript: 'transcriptConformance',
  StepQueue: 'queueConformance',
} as const;
type Port = keyof typeof SUITES;

/** A class of the product, with what it is made from. */
export interface ClassRow {
  name: string;
  file: string;
  /** Classes that it extends and interfaces that it implements, by their names in its file. */
  parents: readonly string[];
  isAbstract: boolean;
}

/** The TypeScript files of a folder that match, with their paths from the root. */
export function sources(root: string, folder: string, wanted: (file: string) => boolean): { file: string; text: string }[] {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => `${folder}/${String(name).replaceAll('\\', '/')}`)
    .filter((file) => file.endsWith('.ts') && wanted(file))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
}

/** The classes of a file, wherever they stand in it. */
export function classesOf({ file, text }: { file: string; text: string }): ClassRow[] {
  const rows: ClassRow[] = [];
  visit(parse(file, text), (node) => {
    if (!ts.isClassLike(node)) return;
    const parents = (node.heritageClauses ?? []).flatMap(({ types }) => types.map(({ expression }) => lastName(expression)));
    const isAbstract = ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword) === true;
    rows.push({ name: node.name?.text ?? `a class without a name in ${file}`, file, parents, isAbstract });
  });
  return rows;
}

/** The classes that implement a port, by themselves or by a class that they extend; abstract ones are not run. */
export function implementationsOf(port: string, classes: readonly ClassRow[]): ClassRow[] {
  const isIt = (row: ClassRow, seen: ReadonlySet<ClassRow> = new Set()): boolean =>
    row.parents.includes(port) ||
    classes.some((parent) => row.parents.includes(parent.name) && !seen.has(parent) && isIt(parent, new Set([...seen, row])));
  return classes.filter((row) => !row.isAbstract && isIt(row));
}

/** Which implementations the calls of a suite cover: the names in `covers` of their adapters. */
export function coveredBy(suite: string, specs: readonly { file: string; text: string }[]): Set<string> {
  const names = new Set<string>();
  const adapters = new Map<string, ts.ObjectLiteralExpression>();
  const files = specs.map(({ file, text }) => parse(file, text));
  for (const file of files)
    visit(file, (node) => {
      if (
        ts.isVariableDeclaration(node) &&
        ts.isIdentifier(node.name) &&
        node.initializer !== undefined &&
        ts.isObjectLiteralExpression(node.initializer)
      )
        adapters.set(node.name.text, node.initializer);
    });
  for (const file of files)
    visit(file, (node) => {
      if (!ts.isCallExpression(node) || lastName(node.expression) !== suite) return;
      const [given] = node.arguments;
      const adapter = given !== undefined && ts.isIdentifier(given) ? adapters.get(given.text) : given;
      if (adapter === undefined || !ts.isObjectLiteralExpression(adapter)) return;
      for (const property of adapter.properties)
        if (ts.isPropertyAssignment(property) && property.name.getText() === 'covers' && ts.isArrayLiteralExpression(property.initializer))
          for (const element of property.initializer.elements) names.add(lastName(element));
    });
  return names;
}

/** What is not run by the suite of its port, in words. */
export function uncovered(classes: readonly ClassRow[], specs: readonly { file: string; text: string }[]): string[] {
  return (Object.keys(SUITES) as Port[]).flatMap((port) => {
    const covered = coveredBy(SUITES[port], specs);
    return implementationsOf(port, classes)
      .filter(({ name }) => !covered.has(name))
      .map(({ name, file }) => `${file}: ${name} implements ${port}, and ${SUITES[port]} is not run for it`);
  });
}

const parse = (file: string, text: string): ts.SourceFile => ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);

function visit(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node);
  ts.forEachChild(node, (child) => visit(child, look));
}

const lastName = (expression: ts.Node): string =>
  ts.isPropertyAccessExpression(expression) ? expression.name.text : ts.isIdentifier(expression) ? expression.text : '';
