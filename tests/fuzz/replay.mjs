// Native against WebAssembly: the same inputs through the same cases (replay.cpp) in both builds, digests compared.
// Inputs are random bytes, the corpora and hostile files, and changed ones of these.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const kinds = ['kernels', 'plans', 'column-wise algorithms', 'readers and configs'];

function filesOf(folder) {
  return readdirSync(folder, { recursive: true })
    .sort()
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && statSync(path).size < 65_536);
}

/** xorshift32. */
function generator(seed) {
  let state = seed;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

function changed(bytes, next) {
  const out = Buffer.from(bytes);
  for (let change = 0; change <= next(4) && out.length > 0; ++change) out[next(out.length)] = next(256);
  return out.subarray(0, next(4) === 0 ? next(out.length + 1) : out.length);
}

/** `count` inputs of each kind, packed as replay.cpp reads them. */
function cases(root, count) {
  const next = generator(20_263);
  const seeds = ['tests/fuzz/corpus', 'tests/files/hostile'].flatMap((name) => filesOf(join(root, name)));
  const inputs = kinds.flatMap((_, kind) =>
    Array.from({ length: count }, (_, at) => {
      if (kind < 3) return [kind, Buffer.from(Array.from({ length: 4 + next(400) }, () => next(256)))];
      const bytes = readFileSync(seeds[at % seeds.length]);
      return [kind, at < seeds.length ? bytes : changed(bytes, next)];
    }),
  );
  const parts = inputs.flatMap(([kind, bytes]) => {
    const head = Buffer.alloc(5);
    head.writeUInt8(kind);
    head.writeUInt32LE(bytes.length, 1);
    return [head, bytes];
  });
  return { inputs, packed: Buffer.concat(parts) };
}

/**
 * Compares the programs; `work` is a folder for the inputs. Prints a line per kind, returns how many inputs gave
 * different digests. Throws when one of the programs ends early.
 */
export function compareBuilds(root, native, wasm, work, count) {
  const { inputs, packed } = cases(root, count);
  const path = join(work, 'replay_cases');
  writeFileSync(path, packed);
  const options = { encoding: 'utf8', maxBuffer: 1 << 28 };
  const digestsOf = (program, args) => execFileSync(program, args, options).trimEnd().split('\n');
  const [left, right] = [digestsOf(native, [path]), digestsOf(process.execPath, [wasm, path])];
  if (left.length !== inputs.length || right.length !== inputs.length)
    throw new Error(`of ${inputs.length} inputs, ${left.length} were run natively and ${right.length} in WebAssembly`);
  let differences = 0;
  for (const [kind, name] of kinds.entries()) {
    const own = inputs.flatMap(([of], at) => (of === kind ? [at] : []));
    const wrong = own.filter((at) => left[at] !== right[at]);
    const distinct = new Set(own.map((at) => left[at])).size;
    differences += wrong.length;
    process.stdout.write(
      `native against WebAssembly, ${name}: ${own.length} inputs, ${distinct} answers, ${wrong.length} differences\n`,
    );
    for (const at of wrong.slice(0, 5))
      process.stdout.write(`  input ${at}: ${inputs[at][1].subarray(0, 40).toString('hex')}…\n`);
  }
  return differences;
}
