import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '#libs/contracts';

/** True when every key of `filter` is in `metadata` with an equal value; no filter matches everything. */
export const matchesMetadata = (filter: JsonObject | null | undefined, metadata: JsonObject | undefined): boolean =>
  filter == null ||
  Object.entries(filter).every(
    ([key, value]) => metadata !== undefined && Object.hasOwn(metadata, key) && isDeepStrictEqual(metadata[key], value),
  );
