import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ClassRow, classesOf, coveredBy, implementationsOf, SUITES, sources, uncovered } from './adapters.js';

const root = resolve(import.meta.dirname, '../..');
const isProduct = (file: string): boolean => !file.endsWith('.spec.ts') && !file.includes('/test/');
const classes = ['apps', 'libs'].flatMap((folder) => sources(root, folder, isProduct)).flatMap(classesOf);
const suites = sources(root, 'test/conformance', () => true);

describe('adapters of ports', () => {
  it('are all run by the suite of their port', () => {
    expect(uncovered(classes, suites)).toEqual([]);
  });

  it('are found by what they implement and by what they extend', () => {
    const names = (port: string): string[] => implementationsOf(port, classes).map(({ name }) => name);
    expect(names('Bus')).toEqual(expect.arrayContaining(['LocalBus', 'SdkBus', 'ServedBus']));
    expect(names('Journal')).toContain('SqliteJournal');
    expect(names('Transcript')).toContain('SqliteTranscript');
    expect(names('StepQueue')).toEqual(expect.arrayContaining(['SqliteStepQueue', 'SharedStepQueue']));
    for (const port of Object.keys(SUITES)) expect(coveredBy(SUITES[port as keyof typeof SUITES], suites).size).toBeGreaterThan(0);
  });

  it('are missed when no suite runs them, also a class of a class and one in an expression', () => {
    const text = `
      abstract class Base implements Journal {}
      class First extends Base {}
      namespace inner { export const make = () => class Second extends outer.First {}; }
      class Other implements JournalReader {}
    `;
    const rows = classesOf({ file: 'a.ts', text });
    expect(implementationsOf('Journal', rows).map(({ name }) => name)).toEqual(['First', 'Second']);
    const spec = {
      file: 's.ts',
      text: `const one = { covers: [First] }; journalConformance(one); queueConformance({ covers: [Second] });`,
    };
    expect(uncovered(rows, [spec])).toEqual(['a.ts: Second implements Journal, and journalConformance is not run for it']);
  });

  it('may go round in circles in what they extend without an end of the search', () => {
    const row = (name: string, ...parents: string[]): ClassRow => ({ name, file: 'a.ts', parents, isAbstract: false });
    expect(implementationsOf('Bus', [row('A', 'B'), row('B', 'A'), row('C', 'C', 'Bus')]).map(({ name }) => name)).toEqual(['C']);
  });
});
