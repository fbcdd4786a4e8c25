import { Controller, Inject, Optional } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import { IiiFunction, type InvocationContext } from '#libs/iii';
import {
  CONFINE_SETTINGS,
  type ConfineSettings,
  type ConfineValues,
  type FilesystemScope,
  Scope,
  workingDirectorySettings,
} from '../confine/index.js';
import { type CreateFileSpec, createFiles } from './edit/create-file.js';
import { type UpdateFileSpec, updateFiles } from './edit/update-file.js';
import { CoderError, coderError } from './errors.js';
import { coderInfo } from './info.js';
import { type ListFolderRequest, listFolder } from './list-folder.js';
import { KeyedLock } from './lock.js';
import { type ReadFileRequest, readFiles } from './read-file.js';
import { coderSchemas as schemas } from './schemas/index.js';
import { type SearchRequest, search } from './search/search.js';
import { type TreeRequest, tree } from './tree.js';

const invalid = (detail: string): Error => new CoderError('C210', detail);

/** The `coder::*` functions: reading, searching and editing files below one root. */
@Controller()
export class CoderController {
  private readonly lock = new KeyedLock();
  private readonly settings: ConfineSettings;

  constructor(@Optional() @Inject(CONFINE_SETTINGS) settings: ConfineSettings | undefined) {
    this.settings = settings ?? workingDirectorySettings;
  }

  @IiiFunction({
    id: 'coder::info',
    description: 'Tells which folders the coder functions may use, what they leave out, and their limits. Example: {}.',
    ...schemas.info,
    invalid,
  })
  info(@Payload() request: object): Promise<unknown> {
    return this.run(request, '.', (scope, values) => Promise.resolve(coderInfo(scope, values)));
  }

  @IiiFunction({
    id: 'coder::read-file',
    description:
      'Reads one file (path) or several (paths), whole or by line range. For a file of unknown size ask with stat: true first, then read a range. ' +
      'numbered: true shows the line numbers that coder::update-file takes. In a batch each file succeeds or fails by itself. ' +
      'Examples: {"path": "src/main.ts", "line_from": 1, "line_to": 80, "numbered": true}; {"paths": ["a.ts", {"path": "b.ts", "line_to": 20}]}.',
    ...schemas.readFile,
    invalid,
  })
  readFile(@Payload() request: ReadFileRequest, @Ctx() context: InvocationContext): Promise<unknown> {
    return this.run(request, request.path ?? '', (scope, values) => readFiles(scope, values, request, context.signal));
  }

  @IiiFunction({
    id: 'coder::list-folder',
    description: 'Lists one folder by name, page by page. Example: {"path": "src", "page": 1, "page_size": 100}.',
    ...schemas.listFolder,
    invalid,
  })
  listFolder(@Payload() request: ListFolderRequest, @Ctx() context: InvocationContext): Promise<unknown> {
    return this.run(request, request.path ?? '.', (scope) => listFolder(scope, request, context.signal));
  }

  @IiiFunction({
    id: 'coder::tree',
    description:
      'Shows a folder and what is below it, bounded in depth and in entries of each folder; `truncated` says where something is missing. ' +
      'Example: {"path": ".", "max_depth": 3}.',
    ...schemas.tree,
    invalid,
  })
  tree(@Payload() request: TreeRequest, @Ctx() context: InvocationContext): Promise<unknown> {
    return this.run(request, request.path ?? '.', (scope) => tree(scope, request, context.signal));
  }

  @IiiFunction({
    id: 'coder::search',
    description:
      'Finds text or a regular expression (RE2) in the lines and names of files below a folder. Binary files are passed over. ' +
      'Examples: {"query": "parseConfig(", "include_globs": ["*.ts"]}; {"query": "^export (class|function) \\\\w+", "regex": true, "path": "src"}.',
    ...schemas.search,
    invalid,
  })
  search(@Payload() request: SearchRequest, @Ctx() context: InvocationContext): Promise<unknown> {
    return this.run(request, request.path ?? '.', (scope, values) => search(scope, values, request, context.signal));
  }

  @IiiFunction({
    id: 'coder::create-file',
    description:
      'Writes new files whole, with missing folders; with overwrite: true it replaces files. Each file is written at once or not at all. ' +
      'Example: {"files": [{"path": "src/hello.ts", "content": "export const hello = 1;\\n"}]}.',
    ...schemas.createFile,
    invalid,
  })
  createFile(@Payload() request: { files: CreateFileSpec[] }, @Ctx() context: InvocationContext): Promise<unknown> {
    return this.run(request, '.', (scope, values) => createFiles(scope, values, request.files, this.lock, context.signal));
  }

  @IiiFunction({
    id: 'coder::update-file',
    description:
      'Changes text files by line numbers and by regular expression; all ops of a file are applied or none. Line ops (insert, remove, update_lines) ' +
      'all use the line numbers of the file as it was read, whatever the other ops do; replace ops run after them, in order, over the whole text. ' +
      'Check the echoes instead of reading the file again. Example: {"files": [{"path": "src/a.ts", "ops": [' +
      '{"op": "insert", "at_line": 1, "content": "// head"}, {"op": "update_lines", "from_line": 7, "to_line": 9, "content": "const x = 1;"}, ' +
      '{"op": "replace", "pattern": "oldName", "replacement": "newName", "expect_matches": 1}]}]}.',
    ...schemas.updateFile,
    invalid,
  })
  updateFile(@Payload() request: { files: UpdateFileSpec[] }, @Ctx() context: InvocationContext): Promise<unknown> {
    return this.run(request, '.', (scope, values) => updateFiles(scope, values, request.files, this.lock, context.signal));
  }

  private async run<T>(request: object, path: string, work: (scope: Scope, values: ConfineValues) => Promise<T>): Promise<T> {
    const values = this.settings.current();
    const { fs_scope } = request as { fs_scope?: FilesystemScope | null };
    try {
      return await work(await Scope.open(values, fs_scope), values);
    } catch (error) {
      throw coderError(error, path);
    }
  }
}
