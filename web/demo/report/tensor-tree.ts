// Tensors by the components of their names: model → layers → 0 → mlp. Chains without a fork are one node.
import type { PlannedTensor } from 'wasmquant';

export interface TreeNode {
  /** Last component of the name, or several of a chain, with dots. */
  label: string;
  /** Whole name up to here. */
  path: string;
  children: TreeNode[];
  /** Of a leaf. */
  row: PlannedTensor | null;
  tensors: number;
  bytesBefore: number;
  bytesAfter: number;
}

interface Branch {
  children: Map<string, Branch>;
  row: PlannedTensor | null;
}

function nodeOf(label: string, path: string, branch: Branch): TreeNode {
  const only = branch.children.size === 1 && !branch.row ? [...branch.children][0] : undefined;
  if (only && path !== '') return nodeOf(`${label}.${only[0]}`, `${path}.${only[0]}`, only[1]);
  const children = [...branch.children].map(([name, child]) => nodeOf(name, path ? `${path}.${name}` : name, child));
  const own = branch.row;
  const sum = (of: (node: { bytesBefore: number; bytesAfter: number }) => number) =>
    children.reduce((total, child) => total + of(child), own ? of(own) : 0);
  return {
    label,
    path,
    children,
    row: own,
    tensors: children.reduce((total, child) => total + child.tensors, own ? 1 : 0),
    bytesBefore: sum(({ bytesBefore }) => bytesBefore),
    bytesAfter: sum(({ bytesAfter }) => bytesAfter),
  };
}

export function treeOf(rows: readonly PlannedTensor[]): TreeNode {
  const root: Branch = { children: new Map(), row: null };
  for (const row of rows) {
    let branch = root;
    for (const part of row.name.split('.')) {
      const next: Branch = branch.children.get(part) ?? { children: new Map(), row: null };
      branch.children.set(part, next);
      branch = next;
    }
    branch.row = row;
  }
  return nodeOf('', '', root);
}
