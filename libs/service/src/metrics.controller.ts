import { Controller, Get, Header, Inject } from '@nestjs/common';
import { Metrics } from './metrics.js';

/** `/metrics`, for Prometheus. */
@Controller('metrics')
export class MetricsController {
  constructor(@Inject(Metrics) private readonly metrics: Metrics) {}

  @Get()
  @Header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  read(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}
