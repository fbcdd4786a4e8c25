import { HarnessError } from '#libs/contracts';

/** A result that comes sooner than this after its call may come too soon, in ms. */
const QUICK_MS = 100;
/** When such a result is sent once more, in ms after it was sent first. */
const AGAIN_MS = [25, 400];
const RESULT = 'invocationresult';

/** The part of the SDK's client that its types do not show. */
interface SendingClient {
  sendMessage?: (type: string, message: { invocation_id?: string }, skipIfClosed?: boolean) => void;
  onInvokeFunction?: (invocation_id: string | undefined, ...rest: unknown[]) => unknown;
}

/**
 * Sends results that come at once a second and a third time. An engine hands a call to a worker before it notes who waits for it; a result
 * that comes in between finds nobody and is dropped, and its caller waits until its time is over. A result that nobody waits for any more is
 * dropped as well, so that more of them do no harm. Throws `harness/internal` when a version of the SDK sends in another way.
 */
export function repeatQuickResults(client: object): void {
  const sending = client as SendingClient;
  const send = sending.sendMessage?.bind(client);
  const invoke = sending.onInvokeFunction?.bind(client);
  if (send === undefined || invoke === undefined)
    throw new HarnessError('harness/internal', 'this version of iii-sdk does not send results as it did');
  const cameAt = new Map<string, number>();
  sending.onInvokeFunction = (id, ...rest) => {
    if (id !== undefined) {
      cameAt.set(id, Date.now());
      setTimeout(() => cameAt.delete(id), QUICK_MS).unref();
    }
    return invoke(id, ...rest);
  };
  sending.sendMessage = (type, message, skipIfClosed) => {
    send(type, message, skipIfClosed);
    if (type !== RESULT || message.invocation_id === undefined || !cameAt.delete(message.invocation_id)) return;
    for (const ms of AGAIN_MS) setTimeout(() => send(type, message, true), ms).unref();
  };
}
