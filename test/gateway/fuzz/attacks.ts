import { once } from 'node:events';
import type { Chance } from '../../fuzz/chance.js';
import { frame, Peer, type Target, tcp } from './peer.js';

/** One kind of attack. `size` is 1 in the short form and more in the long one. */
export type Attack = (target: Target, chance: Chance, size: number) => Promise<void>;

const MIB = 1024 * 1024;
const repeat = async (times: number, act: (index: number) => Promise<void>): Promise<void> => {
  for (let index = 0; index < times; index += 1) await act(index);
};
/** Waits until the gateway has had enough of a peer; fails when it has not. */
async function dropped(peer: Peer, why: string): Promise<void> {
  const timer = setTimeout(() => peer.socket.emit('late'), 20_000);
  if (peer.socket.readyState !== peer.socket.CLOSED) {
    await Promise.race([
      once(peer.socket, 'close'),
      once(peer.socket, 'late').then(() => Promise.reject(new Error(`still there: ${why}`))),
    ]);
  }
  clearTimeout(timer);
}

const TYPES = [
  'registerfunction',
  'unregisterfunction',
  'registertriggertype',
  'unregistertriggertype',
  'registertrigger',
  'unregistertrigger',
  'triggerregistrationresult',
  'invokefunction',
  'invocationresult',
  'reattach',
  'registerservice',
  'ping',
  'pong',
  'error',
  '__proto__',
];
const FIELDS = [
  'id',
  'function_id',
  'trigger_type',
  'invocation_id',
  'config',
  'data',
  'metadata',
  'action',
  'error',
  'result',
  'namespace',
  'traceparent',
  'baggage',
  'request_format',
  'previous_worker_id',
  'reattach_token',
];

/** A value of any shape. */
const anything = (chance: Chance, depth = 0): unknown =>
  chance.weighted<unknown>([
    [3, () => chance.pick(['x', '', 'harness::send', 'engine::workers::register', '\ud800', 'a'.repeat(5_000), 'default'])],
    [2, () => chance.pick([null, true, 0, -1, 1e308, 1e21])],
    [depth > 4 ? 0 : 1, () => chance.list(0, 5, () => anything(chance, depth + 1))],
    [
      depth > 4 ? 0 : 1,
      () =>
        Object.fromEntries(
          chance.list(0, 5, () => [chance.pick([...FIELDS, '__proto__', 'constructor', 'type']), anything(chance, depth + 1)]),
        ),
    ],
  ]);

export const ATTACKS: { readonly [name: string]: Attack } = {
  'frames that are not JSON': async (target, chance, size) => {
    const peer = await Peer.open(target);
    await repeat(50 * size, async () => {
      await peer.send(
        chance.pick<string | Buffer>([
          '{',
          '{"type":',
          'null',
          '[]',
          '"x"',
          '\u0000',
          Buffer.from([0xff, 0xfe, 0]),
          Buffer.from('OTLP{}'),
          '{"type":"ping"}garbage',
        ]),
      );
    });
    await peer.settled();
    peer.cut();
  },
  'messages of every type with fields of any shape': async (target, chance, size) => {
    await repeat(4 * size, async () => {
      const peer = await Peer.open(target);
      await repeat(60, async () => {
        const fields = chance.some(FIELDS, 0.5).map((field) => [field, anything(chance)] as const);
        await peer.json({ ...Object.fromEntries(fields), type: chance.pick(TYPES) });
      });
      await peer.settled();
      peer.cut();
    });
  },
  'a worker that does not stop is closed': async (target) => {
    const peer = await Peer.open(target);
    await repeat(150, async () => await peer.send('nonsense'));
    await dropped(peer, 'after 150 frames of nonsense');
  },
  'values as deep as a frame allows': async (target, _, size) => {
    const peer = await Peer.open(target);
    await repeat(size, async () => {
      const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
      await peer.send(`{"type":"invokefunction","invocation_id":"1","function_id":"session::list","data":${deep}}`);
      await peer.send(`{"type":"registerfunction","id":"deep::one","metadata":{"x":${deep}}}`);
      await peer.send(`{"type":"invokefunction","invocation_id":"2","function_id":"deep::one","data":${deep}}`);
      await peer.send(`{"type":"invokefunction","invocation_id":"3","function_id":"harness::send","data":{"message":${deep}}}`);
    });
    await peer.settled();
    peer.cut();
  },
  'a message longer than the limit': async (target) => {
    const peer = await Peer.open(target);
    void peer.send(Buffer.alloc(17 * MIB, 32));
    await dropped(peer, 'a message of 17 MiB');
    const claims = await Peer.open(target);
    claims.raw.write(frame(0x81, Buffer.from('{'), 2 ** 50));
    await dropped(claims, 'a frame that claims a petabyte');
  },
  'fragments without end': async (target) => {
    const many = await Peer.open(target);
    many.raw.write(frame(0x01, Buffer.from('{')));
    for (let sent = 0; sent < 40_000 && many.isOpen; sent += 1_000) {
      const drained = many.raw.write(Buffer.concat(Array.from({ length: 1_000 }, () => frame(0x00, Buffer.from(' ')))));
      if (!drained) await Promise.race([once(many.raw, 'drain'), once(many.raw, 'close')]);
    }
    await dropped(many, 'forty thousand fragments');
    const large = await Peer.open(target);
    large.raw.write(frame(0x01, Buffer.from('{')));
    for (let sent = 0; sent < 20 && large.isOpen; sent += 1) {
      if (!large.raw.write(frame(0x00, Buffer.alloc(MIB, 32)))) await Promise.race([once(large.raw, 'drain'), once(large.raw, 'close')]);
    }
    await dropped(large, 'fragments of 20 MiB');
  },
  'frames that break the rules of WebSocket': async (target) => {
    const breaks: [string, Buffer][] = [
      ['reserved bits', frame(0xf1, Buffer.from('{}'))],
      ['a reserved opcode', frame(0x83, Buffer.from('{}'))],
      ['no mask', Buffer.from([0x81, 0x02, 0x7b, 0x7d])],
      ['a continuation of nothing', frame(0x80, Buffer.from('{}'))],
      ['a ping of 200 bytes', frame(0x89, Buffer.alloc(200))],
      ['text that is not UTF-8', frame(0x81, Buffer.from([0xc3, 0x28]))],
      ['a close code that does not exist', frame(0x88, Buffer.from([0x00, 0x01]))],
    ];
    for (const [why, bytes] of breaks) {
      const peer = await Peer.open(target);
      peer.raw.write(bytes);
      await dropped(peer, why);
    }
  },
  'answers that nobody waits for, things taken back that were never there': async (target, chance, size) => {
    const peer = await Peer.open(target);
    await repeat(200 * size, async (index) => {
      await peer.json(
        chance.pick([
          { type: 'invocationresult', invocation_id: `none-${index}`, function_id: 'x', result: index },
          { type: 'triggerregistrationresult', id: 'none', trigger_type: 'x', function_id: 'y' },
          { type: 'unregisterfunction', id: 'session::list' },
          { type: 'unregisterfunction', id: 'steady::echo' },
          { type: 'unregistertrigger', id: 'none', trigger_type: 'harness::turn-completed' },
          { type: 'unregistertriggertype', id: 'harness::turn-completed' },
          { type: 'reattach', previous_worker_id: 'none', reattach_token: 'none' },
        ]),
      );
    });
    await peer.settled();
    peer.cut();
  },
  'the same registrations and calls over and over': async (target, _, size) => {
    const peer = await Peer.open(target);
    await repeat(100 * size, async () => {
      await peer.json({ type: 'registerfunction', id: 'twice::run' });
      await peer.json({ type: 'registerfunction', id: 'steady::echo' });
      await peer.json({
        type: 'registertrigger',
        id: 'twice',
        trigger_type: 'harness::turn-completed',
        function_id: 'twice::run',
        config: {},
      });
      await peer.json({ type: 'invokefunction', invocation_id: 'twice', function_id: 'session::list', data: {} });
    });
    await peer.settled();
    peer.cut();
  },
  'more registrations than a worker may have': async (target) => {
    const peer = await Peer.open(target);
    for (let index = 0; index < 10_200 && peer.isOpen; index += 1) await peer.json({ type: 'registerfunction', id: `flood::f${index}` });
    await dropped(peer, 'more than 10,000 registrations');
  },
  'calls whose results are never read': async (target, _, size) => {
    const peer = await Peer.open(target);
    peer.raw.pause();
    await peer.json({ type: 'registerfunction', id: 'unread::run', description: 'x'.repeat(200_000) });
    for (let index = 0; index < 1_000 * size && peer.isOpen; index += 1) {
      await peer.json({
        type: 'invokefunction',
        invocation_id: `${index}`,
        function_id: 'engine::functions::info',
        data: { function_id: 'unread::run' },
      });
    }
    peer.cut();
  },
  'channels that are made, filled and left': async (target, _, size) => {
    const peer = await Peer.open(target);
    const refs: { channel_id: string; access_key: string }[] = [];
    peer.socket.on('message', (data: Buffer) => {
      const { result } = JSON.parse(data.toString()) as { result?: { writer?: { channel_id: string; access_key: string } } };
      if (result?.writer !== undefined) refs.push(result.writer);
    });
    await repeat(
      300,
      async (index) =>
        await peer.json({
          type: 'invokefunction',
          invocation_id: `c${index}`,
          function_id: 'engine::channels::create',
          data: { buffer_size: 1024 },
        }),
    );
    while (refs.length < 256) {
      await peer.settled();
      if (!peer.isOpen) throw new Error('the maker of channels was dropped');
    }
    const writers = await Promise.all(
      refs
        .slice(0, 8 * size)
        .map(({ channel_id, access_key }) => Peer.open(target, `/ws/channels/${channel_id}?key=${access_key}&dir=write`)),
    );
    for (const writer of writers) for (let sent = 0; sent < 16; sent += 1) writer.socket.send(Buffer.alloc(MIB)); // nobody reads it
    await peer.settled();
    for (const writer of writers) writer.cut();
    peer.cut();
  },
  'connections that stop half-way': async (target, _, size) => {
    const sockets = await Promise.all(Array.from({ length: 20 * size }, () => tcp(target)));
    for (const [index, socket] of sockets.entries()) {
      if (index % 4 === 1) socket.write('GET / HTTP/1.1\r\nHost: x\r\nUpgr');
      if (index % 4 === 2)
        socket.write('GET /ws/channels/none?key=x&dir=read HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nHost: x\r\n\r\n');
      if (index % 4 === 3) socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n${'x'.repeat(10_000)}`);
    }
    const peers = await Promise.all(Array.from({ length: 10 }, () => Peer.open(target)));
    for (const peer of peers) peer.raw.pause();
    await new Promise((resolve) => setTimeout(resolve, 100));
    for (const socket of sockets) socket.destroy();
    for (const peer of peers) peer.cut();
  },
  'five hundred connections at once': async (target) => {
    const peers = await Promise.all(Array.from({ length: 500 }, () => Peer.open(target)));
    const open = peers.filter((peer) => peer.isOpen).length;
    for (const peer of peers) peer.cut();
    if (open < 200 || open > 256) throw new Error(`${open} of 500 connections were let in`);
  },
};
