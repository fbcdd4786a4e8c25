import { editingSchemas } from './editing.js';
import { readingSchemas } from './reading.js';

/** Request and response schemas of the coder functions. */
export const coderSchemas = { ...readingSchemas, ...editingSchemas };
