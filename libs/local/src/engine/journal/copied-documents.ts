import type { KeyDocument, TurnDocument, TurnDocuments } from './documents.js';
import { isOpen } from './writes.js';

/**
 * Documents that somebody else keeps, each with a copy on the disk of this worker. What the other one has lost, say because it was killed together
 * with this worker before it saved, is taken from the copy and written back; what others have written since is newer, and stays.
 */
export class CopiedDocuments implements TurnDocuments {
  constructor(
    private readonly kept: TurnDocuments,
    private readonly copies: TurnDocuments,
  ) {}

  get guarantee(): string {
    return `${this.kept.guarantee}. A copy is in the data folder, for what the engine and this worker would lose together`;
  }

  async read(sessionId: string): Promise<TurnDocument | null> {
    const copy = await this.copies.read(sessionId);
    const stored = await this.kept.read(sessionId);
    if (copy === null || (stored !== null && stored.revision >= copy.revision)) return stored;
    await this.kept.write(copy, isOpen(copy));
    return copy;
  }

  async write(document: TurnDocument, open: boolean): Promise<void> {
    await this.kept.write(document, open);
    await this.copies.write(document, open);
  }

  async open(): Promise<string[]> {
    return [...new Set([...(await this.kept.open()), ...(await this.copies.open())])];
  }

  async readKey(key: string): Promise<KeyDocument | null> {
    return (await this.kept.readKey(key)) ?? (await this.copies.readKey(key));
  }

  async writeKey(document: KeyDocument): Promise<void> {
    await this.kept.writeKey(document);
    await this.copies.writeKey(document);
  }

  async dropKeys(now: number): Promise<void> {
    await this.kept.dropKeys(now);
    await this.copies.dropKeys(now);
  }

  async remove(sessionId: string): Promise<void> {
    await this.kept.remove(sessionId);
    await this.copies.remove(sessionId);
  }
}
