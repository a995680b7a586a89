// A Cloudflare Worker: the model is the body of a request, the module is imported compiled, and there are no workers.
import { createQuantizer } from 'wasmquant';
import wasmModule from 'wasmquant/wasmquant.wasm';
import { work } from './work.mjs';

export default {
  async fetch(request) {
    try {
      const model = new Uint8Array(await request.arrayBuffer());
      const found = await work(createQuantizer, model, { threads: 0, wasmModule });
      return Response.json([{ name: 'memory, 0 workers', ...found }]);
    } catch (error) {
      return new Response(`${error.stack ?? error}`, { status: 500 });
    }
  },
};
