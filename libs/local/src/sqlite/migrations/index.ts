import { initial } from './0001_initial.js';
import { approval } from './0002_approval.js';
import { compactions } from './0003_compactions.js';
import { guards } from './0004_guards.js';
import { spans } from './0005_spans.js';
import { turnDocuments } from './0006_turn_documents.js';

/** The migrations in order; the n-th one leads to schema version n. Never change one that was released: add another. */
export const migrations: readonly string[] = [initial, approval, compactions, guards, spans, turnDocuments];
