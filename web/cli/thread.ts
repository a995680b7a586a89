/** The thread that program/thread.ts starts for a command. */
import { workerData } from 'node:worker_threads';
import { execute } from './execute.js';
import { type ThreadData, useTerminal } from './streams.js';

const { asked, columns } = workerData as ThreadData;
useTerminal(columns);
void execute(asked);
