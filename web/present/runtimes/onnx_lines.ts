// ONNX models: a session of ONNX Runtime.
import { javascript, python } from './literals.js';
import { runtimes } from './table.js';
import type { LoadText } from './written.js';

const inJavaScript = (packageName: 'onnxruntime-node' | 'onnxruntime-web', path: string) => [
  `// ${runtimes[packageName].install}`,
  `import { InferenceSession } from '${packageName}';`,
  `const session = await InferenceSession.create(${javascript(path)});`,
];

export const onnxTexts = (path: string): LoadText[] => [
  { title: 'Node', lines: inJavaScript('onnxruntime-node', path) },
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
