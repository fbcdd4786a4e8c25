import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares in a time that tells nothing of the secret, not even its length. */
export function isSameSecret(secret: string, given: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(secret), digest(given));
}
