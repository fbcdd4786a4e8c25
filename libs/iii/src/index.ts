export * from './bindings.js';
export * from './bus.js';
export * from './decorators.js';
export * from './gateway/index.js';
export * from './local/engine.js';
export type { SdkBus } from './sdk/bus.js';
export * from './sdk/connect.js';
export * from './transport.js';
export * from './validation.js';
