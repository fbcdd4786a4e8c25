import { BusError, type TriggerRegistration, type TriggerTypeHandler } from '../bus.js';
import type { EngineMessage, WorkerMessage } from './messages.js';
import { remoteError } from './remote-errors.js';

/** How long a worker may take to accept or refuse a binding, in ms. */
const ANSWER_MS = 10_000;

/** A trigger type that a worker provides: bindings are passed on to it, and it accepts or refuses each. */
export class RemoteTriggerType implements TriggerTypeHandler {
  private readonly asked = new Map<string, (error: Error | null) => void>();

  constructor(private readonly wire: { send(message: EngineMessage): boolean }) {}

  registerTrigger(trigger: TriggerRegistration): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.answer(trigger.id, new BusError('timeout', 'its provider gave no answer')), ANSWER_MS);
      this.asked.set(trigger.id, (error) => {
        clearTimeout(timer);
        this.asked.delete(trigger.id);
        if (error === null) resolve();
        else reject(error);
      });
      const sent = this.wire.send({ type: 'registertrigger', ...onWire(trigger) });
      if (!sent) this.answer(trigger.id, new BusError('invocation_stopped', 'its provider went away'));
    });
  }

  unregisterTrigger(trigger: TriggerRegistration): void {
    this.wire.send({ type: 'unregistertrigger', ...onWire(trigger) });
  }

  settle({ id, error }: Extract<WorkerMessage, { type: 'triggerregistrationresult' }>): void {
    this.answer(id, error == null ? null : remoteError(error, id));
  }

  end(why: string): void {
    for (const id of [...this.asked.keys()]) this.answer(id, new BusError('invocation_stopped', why));
  }

  private answer(id: string, error: Error | null): void {
    this.asked.get(id)?.(error);
  }
}

const onWire = ({ id, type, function_id, config, metadata }: TriggerRegistration) => ({
  id,
  trigger_type: type,
  function_id,
  config,
  ...(metadata === undefined ? {} : { metadata }),
});
