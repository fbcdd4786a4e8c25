import { BlockList, isIP } from 'node:net';
import os from 'node:os';

function list(v4: readonly string[], v6: readonly string[]): BlockList {
  const blocked = new BlockList();
  const add = (range: string, family: 'ipv4' | 'ipv6'): void => {
    const [network = '', bits = ''] = range.split('/');
    blocked.addSubnet(network, Number(bits), family);
  };
  for (const range of v4) add(range, 'ipv4');
  for (const range of v6) add(range, 'ipv6');
  return blocked;
}

/** Never reached: link-local, where clouds keep their credentials, other known metadata addresses, multicast, reserved. */
const NEVER = list(
  ['0.0.0.0/8', '169.254.0.0/16', '100.100.100.200/32', '192.0.0.192/32', '168.63.129.16/32', '224.0.0.0/4', '240.0.0.0/4'],
  [
    'fe80::/10',
    'fec0::/10',
    'ff00::/8',
    '::/128',
    'fd00:ec2::/32',
    'fd20:ce::/32',
    'fd00:c1::/32',
    'fd00:42::42/128',
    // Ways to an IPv4 address that cannot be told from the outside: NAT64 of a site, Teredo.
    '64:ff9b:1::/48',
    '2001::/32',
  ],
);
/** Reached only when private addresses are allowed. */
const PRIVATE = list(
  [
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
  ],
  ['2001::/23', '2001:db8::/32', '3fff::/20'],
);
/** The part of IPv6 that is public at all. */
const GLOBAL_V6 = list([], ['2000::/3']);

/** The eight 16-bit groups of an IPv6 address without a zone. */
function groupsOf(address: string): number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const text =
    dotted === null
      ? address
      : `${dotted[1]}${((Number(dotted[2]) << 8) | Number(dotted[3])).toString(16)}:${((Number(dotted[4]) << 8) | Number(dotted[5])).toString(16)}`;
  const [front = '', back] = text.split('::');
  const parse = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const head = parse(front);
  if (back === undefined) return head;
  const tail = parse(back);
  return [...head, ...Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0), ...tail];
}

/** The IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4, ISATAP), which is where a packet ends up. */
function embeddedV4(address: string): string | null {
  const groups = groupsOf(address);
  const at = (i: number): number => groups[i] ?? 0;
  const dotted = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const zero = (from: number, to: number): boolean => groups.slice(from, to).every((group) => group === 0);
  if (zero(0, 5) && at(5) === 0xffff) return dotted(at(6), at(7));
  if (zero(0, 4) && at(4) === 0xffff && at(5) === 0) return dotted(at(6), at(7));
  if (zero(0, 6) && !(at(6) === 0 && at(7) <= 1)) return dotted(at(6), at(7));
  if (at(0) === 0x64 && at(1) === 0xff9b && zero(2, 6)) return dotted(at(6), at(7));
  if (at(0) === 0x2002) return dotted(at(1), at(2));
  if ((at(4) & ~0x200) === 0 && at(5) === 0x5efe) return dotted(at(6), at(7));
  return null;
}

/** True for an address of this machine, public ones too: they lead to services that are meant for itself. */
function isOwn(address: string, family: 'ipv4' | 'ipv6'): boolean {
  const own = new BlockList();
  for (const { address: one } of Object.values(os.networkInterfaces()).flatMap((found) => found ?? [])) {
    const bare = one.replace(/%.*$/, '');
    if (isIP(bare) !== 0) own.addAddress(bare, isIP(bare) === 4 ? 'ipv4' : 'ipv6');
  }
  return own.check(address, family);
}

/** True when `web::fetch` may connect to an IP address. Anything that is not an address is refused. */
export function isAllowedAddress(address: string, allowPrivate: boolean): boolean {
  const bare = address.replace(/%.*$/, '');
  switch (isIP(bare)) {
    case 4:
      return !NEVER.check(bare, 'ipv4') && (allowPrivate || !(PRIVATE.check(bare, 'ipv4') || isOwn(bare, 'ipv4')));
    case 6: {
      const inner = embeddedV4(bare);
      if (inner !== null) return isAllowedAddress(inner, allowPrivate);
      if (NEVER.check(bare, 'ipv6')) return false;
      return allowPrivate || (GLOBAL_V6.check(bare, 'ipv6') && !PRIVATE.check(bare, 'ipv6') && !isOwn(bare, 'ipv6'));
    }
    default:
      return false;
  }
}
