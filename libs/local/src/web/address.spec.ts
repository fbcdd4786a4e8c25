import { describe, expect, it } from 'vitest';
import { isAllowedAddress } from './address.js';

describe('isAllowedAddress', () => {
  it.each([
    '127.0.0.1',
    '127.255.0.9',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '0.1.2.3',
    '192.0.2.1',
    '198.18.0.1',
    '224.0.0.1',
    '239.1.1.1',
    '240.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd12::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:169.254.169.254',
    '::ffff:0:10.0.0.1',
    '64:ff9b::10.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '2002:7f00:1::',
    '2002:a00:1::5',
    '::127.0.0.1',
    '2001:db8::1',
    '2001::1',
    '3fff::1',
    '100::1',
    'fd00:ec2::254',
    'not-an-address',
    '',
    '1.2.3',
  ])('refuses %s', (address) => {
    expect(isAllowedAddress(address, false)).toBe(false);
  });

  it.each([
    '93.184.216.34',
    '1.1.1.1',
    '172.32.0.1',
    '172.15.0.1',
    '192.169.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '2a00:1450:4001::1',
    '::ffff:1.1.1.1',
    '64:ff9b::1.1.1.1',
    '2002:101:101::1',
  ])('allows %s', (address) => {
    expect(isAllowedAddress(address, false)).toBe(true);
  });

  it('opens private addresses when told to, and never link-local or metadata ones', () => {
    for (const address of ['127.0.0.1', '10.0.0.1', '::1', 'fc00::1', '::ffff:127.0.0.1'])
      expect(isAllowedAddress(address, true)).toBe(true);
    for (const address of [
      '169.254.169.254',
      '::ffff:169.254.169.254',
      'fe80::1',
      'fd00:ec2::254',
      '100.100.100.200',
      '224.0.0.1',
      '0.0.0.0',
      '::',
    ]) {
      expect(isAllowedAddress(address, true)).toBe(false);
    }
  });
});
