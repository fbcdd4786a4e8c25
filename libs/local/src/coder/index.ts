export { CoderModule } from './coder.module.js';
