import type { Bus, SdkBus, TriggerRequest } from '#libs/iii';

/** Functions that only read or write the store of the folder, which is at hand here. */
const AT_HAND = /^(session::|harness::status$|configuration::)/;

/**
 * The bus of a process on a folder that a worker serves. What only concerns the store is done here; all else goes to the
 * worker, since only there are the functions, hooks and providers that other programs have connected. When the worker
 * cannot be reached it is done here as well, under the guards that the folder knows of.
 */
export class ServedBus implements Bus {
  private worker: Promise<SdkBus | null> | undefined;

  constructor(
    private readonly own: Bus,
    /** Connects to the worker; null when it cannot be reached. */
    private readonly connect: () => Promise<SdkBus | null>,
  ) {}

  async trigger<T = unknown>(request: TriggerRequest): Promise<T> {
    if (AT_HAND.test(request.function_id)) return await this.own.trigger<T>(request);
    return await (await this.elsewhere()).trigger<T>(request);
  }

  registerFunction: Bus['registerFunction'] = (definition, handler) => this.own.registerFunction(definition, handler);
  registerTrigger: Bus['registerTrigger'] = (trigger) => this.own.registerTrigger(trigger);
  registerTriggerType: Bus['registerTriggerType'] = (definition, handler) => this.own.registerTriggerType(definition, handler);
  createChannel: Bus['createChannel'] = async (options) => await (await this.elsewhere()).createChannel(options);
  openWriter: Bus['openWriter'] = (ref) => this.own.openWriter(ref);
  openReader: Bus['openReader'] = (ref) => this.own.openReader(ref);

  async close(): Promise<void> {
    await (await this.worker)?.close();
  }

  private async elsewhere(): Promise<Bus> {
    this.worker ??= this.connect();
    return (await this.worker) ?? this.own;
  }
}
