// Model sources and output targets.

import type { InputFormat } from './formats.js';

/** Random access to bytes. `read` resolves to exactly `length` bytes from `offset` (both in bytes) or rejects. */
export interface ByteSource {
  /** Size in bytes. */
  size: number;
  /** File name, if it has one. */
  name?: string;
  /** Reads `length` bytes from `offset`. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** An open `fs.promises.FileHandle` of Node. The caller closes it, after the model. */
export interface NodeFileHandle {
  /** File descriptor. */
  readonly fd: number;
  /** Size of the file. */
  stat(): Promise<{
    /** In bytes. */
    size: number;
  }>;
}

/** Where a model is, the same with every host. */
export type SourcePlace =
  | {
      /** A file, folder or index file; in Node. */
      path: string;
    }
  | {
      /** A file or index file; relative to the page if it has no scheme. */
      url: string | URL;
    }
  | {
      /** A model of the Hugging Face Hub: `org/model`, `org/model@revision`, each with the path of a file or folder behind it. */
      hub: string;
    };

/**
 * What models can be opened from. A string is a path in Node (file, folder or index file) and a URL elsewhere, with `hf:` a model
 * of the hub; in Node also `org/model` where there is no such path. {@link SourcePlace} says which it is.
 */
export type Source =
  | SourcePlace
  | File
  | Blob
  | FileSystemFileHandle
  | FileSystemDirectoryHandle
  | Uint8Array
  | ArrayBuffer
  | URL
  | Response
  | string
  | ByteSource
  | NodeFileHandle;

/** How a model is opened. */
export interface OpenOptions {
  /** Any other format is the error `format-unknown`. */
  format?: InputFormat;
  /**
   * Tensors are named without what wrappers of the module added: `_orig_mod.` (torch.compile), `module.` (data
   * parallel), `base_model.model.` (PEFT) and the like, in any nesting. All that is made of the model has these names:
   * weights, index, lists of layers. Two tensors of one name are the error `tensor-duplicate`.
   */
  stripPrefix?: boolean;
  /** For models of the Hugging Face Hub. */
  hub?: HubOptions;
}

/** How the Hugging Face Hub is asked. */
export interface HubOptions {
  /** Of an account that may read the model: for private and gated ones. It is sent to the hub only, and stored nowhere. */
  token?: string;
  /** Another hub of the same kind. Default `https://huggingface.co`. */
  endpoint?: string;
}

/** A custom folder: object storage, an archive, an upload. */
export interface FileWriter {
  /** A stream for the file `name`, a path with `/`. It is closed when the file is complete, aborted if the run fails.
   */
  write(name: string): Promise<WritableStream<Uint8Array>>;
}

/** Output target. A stream or file handle takes a single file, a folder several. */
export type Target =
  | WritableStream<Uint8Array>
  | FileSystemFileHandle
  | FileSystemDirectoryHandle
  | string
  | FileWriter;
