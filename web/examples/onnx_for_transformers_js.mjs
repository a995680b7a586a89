// node onnx_for_transformers_js.mjs MODEL OUT TEXT
// MODEL is a folder with safetensors or an ONNX model, config.json and tokenizer.json. OUT becomes a folder that transformers.js
// loads with dtype 'q4' (onnx/model_q4.onnx) to continue TEXT. In a browser the same two libraries do the same.
import { basename, dirname, resolve } from 'node:path';
import { AutoModelForCausalLM, AutoTokenizer, env } from '@huggingface/transformers';
import { createQuantizer } from 'wasmquant';

const [source, out, text] = process.argv.slice(2);
if (!text) throw new Error('usage: node onnx_for_transformers_js.mjs MODEL OUT TEXT');

const quantizer = await createQuantizer();
const model = await quantizer.open(source);
const { totals } = await quantizer.quantizeModel(model, 'int4_wo_32', { target: out, format: 'onnx' });
console.log(`${totals.bytesBefore} to ${totals.bytesAfter} bytes, ${totals.bitsPerWeight.toFixed(2)} bits per weight`);
await model.close();
await quantizer.close();

Object.assign(env, { allowRemoteModels: false, localModelPath: `${dirname(resolve(out))}/` });
const tokenizer = await AutoTokenizer.from_pretrained(basename(out));
const quantized = await AutoModelForCausalLM.from_pretrained(basename(out), { dtype: 'q4' });
const ids = await quantized.generate({ ...tokenizer(text), max_new_tokens: 16, do_sample: false });
console.log(tokenizer.batch_decode(ids, { skip_special_tokens: true })[0]);
