export * from './approval.module.js';
export { ApprovalInbox } from './inbox.js';
