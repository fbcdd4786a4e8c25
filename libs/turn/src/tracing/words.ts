/** Longest id that becomes part of a span, in characters. */
const MAX_ID = 120;
const ID = /^[\w:.@/+-]+$/;
const CODE = /^[\w./:-]{1,80}$/;

/** An id as a span may hold it: a model may write anything where a function is named. */
export const idOf = (id: string): string => (ID.test(id) ? id.slice(0, MAX_ID) : 'other');

/** The code of an error as a span may hold it; `otherwise` for what is no code. */
export const codeOf = (code: unknown, otherwise: string): string => (typeof code === 'string' && CODE.test(code) ? code : otherwise);
