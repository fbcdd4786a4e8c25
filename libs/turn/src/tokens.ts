/** Injection token of the `LoopPorts`. */
export const LOOP_PORTS = Symbol('harness:loop-ports');
