/** How deep values may be that come from elsewhere: deeper ones take seconds to read, and nothing here could write them. */
export const MAX_DEPTH = 512;

const [QUOTE, BACKSLASH, BRACKET, BRACE, CLOSING_BRACKET, CLOSING_BRACE] = [34, 92, 91, 123, 93, 125];

/** True when JSON text nests deeper than `MAX_DEPTH`. Says nothing of whether the text is JSON. */
export function isTooDeep(json: string): boolean {
  if (json.length <= 2 * MAX_DEPTH) return false;
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === BRACKET || code === BRACE) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) depth -= 1;
    else if (code === QUOTE) {
      at = endOfString(json, at);
      if (at < 0) return false;
    }
  }
  return false;
}

/** Index of the quote that ends the string which begins at `start`; -1 without one. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let first = end;
    while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
  return -1;
}
