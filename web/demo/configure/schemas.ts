// The JSON Schemas that the library publishes.
import aihwkit from 'wasmquant/schema/aihwkit.json';
import brevitas from 'wasmquant/schema/brevitas.json';
import gguf from 'wasmquant/schema/gguf.json';
import quark from 'wasmquant/schema/quark.json';
import type { Schema } from '../editor/schema-walk';

export const schemas: Record<string, Schema> = { aihwkit, brevitas, gguf, quark };
