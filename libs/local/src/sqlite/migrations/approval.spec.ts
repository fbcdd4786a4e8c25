import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { migrations } from './index.js';

it('schema 2 finds the root of the sub-agents that are there already', () => {
  const db = new Sqlite(':memory:');
  db.exec(migrations[0] as string);
  const insert = db.prepare(`INSERT INTO turns (session_id, turn_id, version, status, record) VALUES (?, 't', 1, 'completed', ?)`);
  const tree = { root: null, child: 'root', grandchild: 'child', other: null, orphan: 'gone' };
  for (const [id, parent] of Object.entries(tree)) insert.run(id, JSON.stringify({ parent: parent && { session_id: parent } }));
  db.exec(migrations[1] as string);
  expect(db.prepare('SELECT session_id, root FROM turns').all()).toEqual([
    { session_id: 'child', root: 'root' },
    { session_id: 'grandchild', root: 'root' },
    { session_id: 'orphan', root: 'gone' },
    { session_id: 'other', root: null },
    { session_id: 'root', root: null },
  ]);
  db.close();
});
