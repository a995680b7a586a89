/** For hosts that import WebAssembly compiled (Cloudflare workerd): the value of `wasmModule`. */
declare const module: WebAssembly.Module;
export default module;
