// ONNX models: a session of ONNX Runtime.
import { javascript, python } from './literals.js';
import { runtimes } from './table.js';
import type { LoadText } from './written.js';

/** The module that runs ONNX models in Node. */
export const nodeRuntime = 'onnxruntime-node';
/** What runs them in a page, as people are told. */
export const webRuntimeTitle = runtimes['onnxruntime-web'].title;

const inJavaScript = (packageName: typeof nodeRuntime | 'onnxruntime-web', path: string) => [
  `// ${runtimes[packageName].install}`,
  `import { InferenceSession } from '${packageName}';`,
  `const session = await InferenceSession.create(${javascript(path)});`,
];

export const onnxTexts = (path: string): LoadText[] => [
  { title: 'Node', lines: inJavaScript(nodeRuntime, path) },
  { title: 'a web page', lines: inJavaScript('onnxruntime-web', path) },
  {
    title: 'Python',
    lines: [
      `# ${runtimes.onnxruntime.install}`,
      'import onnxruntime',
      `session = onnxruntime.InferenceSession(${python(path)})`,
    ],
  },
];
