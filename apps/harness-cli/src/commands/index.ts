import type { CommandClass } from '../cli/command.js';
import { ApprovalsCommand } from './approvals.command.js';
import { ApproveCommand } from './approve.command.js';
import { CompletionCommand } from './completion.command.js';
import { ConformanceCommand } from './conformance.command.js';
import { DenyCommand } from './deny.command.js';
import { DoctorCommand } from './doctor.command.js';
import { FunctionsCommand } from './functions.command.js';
import { HooksCommand } from './hooks.command.js';
import { ModelsCommand } from './models.command.js';
import { SendCommand } from './send.command.js';
import { ServeCommand } from './serve.command.js';
import { SessionsCommand } from './sessions.command.js';
import { ShowCommand } from './show.command.js';
import { StatusCommand } from './status.command.js';
import { StopCommand } from './stop.command.js';
import { TracesCommand } from './traces.command.js';
import { WatchCommand } from './watch.command.js';

/** All commands, in the order of the help text. */
export const COMMANDS: readonly CommandClass[] = [
  SendCommand,
  StatusCommand,
  StopCommand,
  WatchCommand,
  SessionsCommand,
  ShowCommand,
  TracesCommand,
  ApprovalsCommand,
  ApproveCommand,
  DenyCommand,
  FunctionsCommand,
  HooksCommand,
  ModelsCommand,
  ServeCommand,
  DoctorCommand,
  ConformanceCommand,
  CompletionCommand,
];
