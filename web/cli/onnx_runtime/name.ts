/** What the ONNX Runtime of the user is called. */

/** onnxruntime-node is the faster one. */
export const kModules = ['onnxruntime-node', 'onnxruntime-web'];

/** How people get it. */
export const onnxRuntimeInstall = `npm install ${kModules[0]}`;
/** What is named in tables and reports. */
export const onnxRuntimeTitle = 'ONNX Runtime';
/** For help texts. */
export const onnxRuntimeOfUser = `the ${kModules[0]} installed here`;
