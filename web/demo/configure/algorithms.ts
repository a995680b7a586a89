// The algorithms that this page switches on and off in a config; a config may name more of them.

export interface Algorithm {
  name: string;
  title: string;
  description: string;
  /** Key of the config that lists it; algorithms of one key run in this order. */
  key: 'pre_quant_opt_config' | 'algo_config';
}

export const algorithms: readonly Algorithm[] = [
  {
    name: 'smoothquant',
    title: 'SmoothQuant',
    description: 'moves outliers of activations into the weights; for 8-bit activations',
    key: 'pre_quant_opt_config',
  },
  {
    name: 'awq',
    title: 'AWQ',
    description: 'scales up channels that matter before rounding',
    key: 'algo_config',
  },
  {
    name: 'gptq',
    title: 'GPTQ',
    description: 'rounds column by column, each compensating for the error of earlier ones',
    key: 'algo_config',
  },
];

type Config = Record<string, unknown>;

function listOf(config: Config, key: Algorithm['key']): { name: string }[] {
  const value = config[key];
  const list = Array.isArray(value) ? value : value ? [value] : [];
  return list.filter((entry) => typeof entry === 'object' && entry !== null && typeof entry.name === 'string');
}

const isCalled = (entry: { name: string }, name: string) =>
  entry.name.toLowerCase() === name || (name === 'smoothquant' && entry.name.toLowerCase() === 'smooth');

export function hasAlgorithm(config: Config, { name, key }: Algorithm): boolean {
  return listOf(config, key).some((entry) => isCalled(entry, name));
}

/** The config with or without an algorithm; options of the others are kept. */
export function withAlgorithm(config: Config, algorithm: Algorithm, isWanted: boolean): Config {
  const { key, name } = algorithm;
  const others = listOf(config, key).filter((entry) => !isCalled(entry, name));
  const order = (entry: { name: string }) => algorithms.findIndex((known) => isCalled(entry, known.name));
  const list = isWanted ? [...others, { name }].sort((a, b) => order(a) - order(b)) : others;
  const { [key]: _, ...rest } = config;
  return list.length > 0 ? { ...rest, [key]: list } : rest;
}
