export { WebModule } from './web.module.js';
export { WebError, type WebErrorCode } from './errors.js';
export { WEB_RESOLVE } from './connection.js';
