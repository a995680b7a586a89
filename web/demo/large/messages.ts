// Work on models with many tensors that a worker does, as it is asked for and answered: a plan of thousands of tensors is a long task.
import type {
  Curve,
  CurveOptions,
  HubOptions,
  OutputFormat,
  OutputOptions,
  PlainError,
  Plan,
  PlanOptions,
  Progress,
  RunReport,
  Source,
  TensorReport,
} from 'wasmquant';

/** Text as it is sent: a tokenizer cannot be. */
export interface PlainTokens {
  text: string;
  sequences: number;
  plain: number[];
  special: number[];
}

/** The sample of an ONNX model that is being run, from 1. */
export interface RunningSample {
  index: number;
  count: number;
  pass: number;
}

/** A former run of the worker: unchanged tensors are copied from its output. */
export interface LargeReuse {
  number: number;
  config: string | object;
  output: Source | Source[];
}

/** Of each kind of work: what is asked, what is told before the end, and what comes of it. */
export interface Works {
  plan: { asked: { config: string | object; options: PlanOptions }; told: never; result: Plan };
  /** A plan without its rows. */
  size: { asked: { config: string | object; options: PlanOptions }; told: never; result: Omit<Plan, 'tensors'> };
  curve: {
    /** `outputs`: those of an ONNX model are compared, and its speed is measured. */
    asked: Pick<CurveOptions, 'target' | 'schemes' | 'windows'> & { tokens?: PlainTokens; outputs?: boolean };
    told: Curve;
    result: Curve;
  };
  preview: {
    asked: { config: string | object; tensors: string[]; options: OutputOptions };
    told: never;
    result: TensorReport[];
  };
  run: {
    asked: {
      /** Of the run, on this page. */
      number: number;
      config: string | object;
      format: OutputFormat;
      target: FileSystemDirectoryHandle | FileSystemFileHandle;
      tokens?: PlainTokens;
      /** Files of feeds of an ONNX model, grouped as they are opened together. */
      feeds?: File[][];
      reuse?: LargeReuse;
    };
    told: { progress: Progress } | { sample: RunningSample | null };
    result: RunReport;
  };
}
export type WorkKind = keyof Works;

export type LargeRequest =
  | { type: 'open'; source: Source | Source[]; hub: HubOptions }
  | { type: 'stop'; id: number }
  | { [K in WorkKind]: { type: 'work'; id: number; kind: K; asked: Works[K]['asked'] } }[WorkKind];

/** The last reply has `result` or `error`. Rows of plans and reports come before, in pieces: reading all at once is a long task. */
export interface LargeReply {
  id: number;
  rows?: unknown[];
  told?: unknown;
  result?: unknown;
  error?: PlainError | Error;
}
