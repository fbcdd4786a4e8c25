export { CoderModule } from './coder.module.js';
export { CoderError, type CoderCode } from './errors.js';
