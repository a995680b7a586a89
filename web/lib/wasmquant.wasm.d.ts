/** Hosts that import WebAssembly compiled (Cloudflare workerd): the value for `wasmModule`. */
declare const module: WebAssembly.Module;
export default module;
