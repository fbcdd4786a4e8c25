/** What one gateway and each of its connections may take. */
export interface GatewayLimits {
  /** Longest message, in bytes, whatever the number of its fragments. A longer one ends its connection. */
  frame_bytes: number;
  /** Connected workers. */
  connections: number;
  /** Open ends of channels. */
  channel_sockets: number;
  /** Channels that one worker may have asked for at a time. */
  channels: number;
  /** Functions, triggers and trigger types of one worker. */
  registrations: number;
  /** Calls under way of one worker, in each direction. */
  calls: number;
  /** How much may wait for a worker that does not read, in bytes, before it is dropped. */
  unread_bytes: number;
  /** How long a connection may take to say what it wants, in ms. */
  handshake_ms: number;
  /** How often a connection is asked for a sign of life, in ms; without one between two, it is dropped. */
  ping_ms: number;
  /** Malformed messages after which a connection is closed. */
  faults: number;
  /** Ids that no connected worker may register: what begins with one of these belongs to the engine, and to the harness in it. */
  reserved: readonly string[];
}

export const DEFAULT_LIMITS: GatewayLimits = {
  frame_bytes: 16 * 1024 * 1024,
  connections: 256,
  channel_sockets: 1024,
  channels: 256,
  registrations: 10_000,
  calls: 4096,
  unread_bytes: 64 * 1024 * 1024,
  handshake_ms: 10_000,
  ping_ms: 20_000,
  faults: 100,
  reserved: ['engine::', 'harness::'],
};
