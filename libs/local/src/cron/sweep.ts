import { Inject, Injectable } from '@nestjs/common';
import { BUS, type Bus, type Registration } from '#libs/iii';
import { LiveConfiguration } from '../configuration/live.js';

/** Keeps `harness::sweep-pending` bound to the cron expression that is in force. */
@Injectable()
export class PendingSweep {
  private bound: { expression: string; registration: Registration } | undefined;
  private stopListening: (() => void) | undefined;

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(LiveConfiguration) private readonly configuration: LiveConfiguration,
  ) {}

  /** Binds it, now and anew whenever the expression changes. */
  start(): void {
    this.stopListening ??= this.configuration.onChange(() => this.bind());
    this.bind();
  }

  /** Takes the binding back. */
  stop(): void {
    this.stopListening?.();
    this.stopListening = undefined;
    this.bound?.registration.unregister();
    this.bound = undefined;
  }

  private bind(): void {
    const expression = this.configuration.current.harness.sweep_expression;
    if (this.bound?.expression === expression) return;
    const registration = this.bus.registerTrigger({ type: 'cron', function_id: 'harness::sweep-pending', config: { expression } });
    this.bound?.registration.unregister();
    this.bound = { expression, registration };
  }
}
