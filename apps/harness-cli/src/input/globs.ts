const NAMES: { readonly [char: string]: string } = { '\n': 'a newline', '\r': 'a carriage return', '\t': 'a tab', ' ': 'a space' };

/**
 * Why a policy glob is refused, or null. In a function id glob only `*` means something: any run of characters. What other
 * tools read as negation, alternatives or classes is refused, so that nobody relies on it.
 */
export function globFault(glob: string): string | null {
  if (glob === '') return 'it is empty';
  if (glob.includes('**')) return '`**` means nothing more than `*` here';
  const bad = /[!?[\]{}\s]|\p{Cc}/u.exec(glob)?.[0];
  if (bad !== undefined) {
    const name = NAMES[bad] ?? (/\p{Cc}/u.test(bad) ? 'a control character' : /\s/u.test(bad) ? 'a space' : `\`${bad}\``);
    return `it holds ${name}; only \`*\` is special, and it stands for any run of characters`;
  }
  if (glob.length > 256) return 'it is longer than 256 characters';
  return null;
}
