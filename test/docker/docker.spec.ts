import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const FOLDER = join(import.meta.dirname, '../../docker');
const dockerfile = readFileSync(join(FOLDER, 'Dockerfile'), 'utf8').replace(/^#.*$/gm, '').replace(/\\\n/g, ' ');
const instructions = (name: string): string[] =>
  dockerfile.split('\n').flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1).trim()] : []));

interface Service {
  image?: string;
  build?: { context: string; dockerfile: string };
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  privileged?: boolean;
  ports?: string[];
  environment?: { [name: string]: string | null };
}

describe('docker/Dockerfile', () => {
  it('builds in one stage and runs in another, both from a fixed version', () => {
    const from = instructions('FROM');
    expect(from).toHaveLength(2);
    for (const image of from) expect(image).toMatch(/^node:\d+\.\d+-\S+/);
    const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
    expect(last).not.toMatch(/apt-get|npm /);
  });

  it('runs as nobody in particular, is told of signals itself, and is asked for its health', () => {
    expect(instructions('USER')).toEqual(['node']);
    const [entry = ''] = instructions('ENTRYPOINT');
    expect(JSON.parse(entry)).toEqual(['node', 'dist/apps/harness/src/main.js']);
    expect(instructions('STOPSIGNAL')).toEqual(['SIGTERM']);
    expect(instructions('HEALTHCHECK')[0]).toContain('/health/ready');
  });

  it('copies what is there', () => {
    const sources = instructions('COPY').flatMap((line) =>
      line
        .split(' ')
        .slice(0, -1)
        .filter((part) => !part.startsWith('--')),
    );
    const kept = sources.map((source) => source.replace(/^\/src\//, '')).filter((path) => !['node_modules', 'dist'].includes(path));
    for (const path of kept) expect(existsSync(join(FOLDER, '..', path)), path).toBe(true);
  });
});

describe.each(readdirSync(FOLDER).filter((name) => name.startsWith('compose')))('docker/%s', (name) => {
  const { services } = parse(readFileSync(join(FOLDER, name), 'utf8'), { merge: true }) as { services: { [name: string]: Service } };

  it.each(Object.entries(services))('%s may do no more than it must', (_, service) => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    expect(service.privileged).toBeUndefined();
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    if (service.build === undefined) expect(service.image).toMatch(/:\d+\.\d+/);
    else expect(existsSync(join(FOLDER, service.build.context, service.build.dockerfile))).toBe(true);
  });

  it('opens no gateway to others without a token', () => {
    for (const { environment } of Object.values(services)) {
      if (environment?.['HARNESS_GATEWAY_HOST'] !== undefined)
        expect(environment['HARNESS_GATEWAY_TOKEN']).toMatch(/^\$\{HARNESS_GATEWAY_TOKEN:\?/);
    }
  });
});
