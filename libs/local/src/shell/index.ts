export { ShellModule } from './shell.module.js';
export { ShellError, type ShellCode } from './errors.js';
export { ShellService } from './shell.service.js';
