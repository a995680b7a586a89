import { useSignal } from '@preact/signals';
import type { PlannedTensor } from 'wasmquant';
import { bytesText, countText, shapeText } from '../../present/units';
import { type TreeNode, treeOf } from './tensor-tree';

/** Nodes with more children than this start closed. */
const openUpTo = 12;

function Sizes({ node }: { node: { bytesBefore: number; bytesAfter: number } }) {
  const { bytesBefore, bytesAfter } = node;
  return (
    <>{bytesBefore === bytesAfter ? bytesText(bytesAfter) : `${bytesText(bytesBefore)} → ${bytesText(bytesAfter)}`}</>
  );
}

function Leaf({ node, row }: { node: TreeNode; row: PlannedTensor }) {
  const became = row.action === 'copy' ? row.dtype : `${row.dtype} → ${row.spec?.dtype ?? ''}`;
  return (
    <div class="tree-leaf">
      <code>{node.label}</code>
      <span class="fine">{[row.layerType, shapeText(row.shape), became].filter(Boolean).join(', ')}</span>
      <span class="fine tree-size">
        <Sizes node={node} />
      </span>
    </div>
  );
}

interface TreeProps {
  depth: number;
  isSearched: boolean;
}

/** `isOnly`: without others next to it, so that what is inside is what there is to see. */
function Branch({ node, depth, isSearched, isOnly }: TreeProps & { node: TreeNode; isOnly: boolean }) {
  const isOpen = useSignal(isSearched || isOnly || (depth < 2 && node.children.length <= openUpTo));
  return (
    <details
      open={isOpen.value}
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>
        <code>{node.label}</code> <span class="fine">{countText(node.tensors)} tensors</span>
        <span class="fine tree-size">
          <Sizes node={node} />
        </span>
      </summary>
      {/* Thousands of tensors are no matter as long as closed branches draw nothing. */}
      {isOpen.value && <Nodes nodes={node.children} depth={depth + 1} isSearched={isSearched} />}
    </details>
  );
}

function Nodes({ nodes, depth, isSearched }: TreeProps & { nodes: TreeNode[] }) {
  const branches = nodes.filter(({ children }) => children.length > 0).length;
  return (
    <ul>
      {nodes.map((node) => (
        <li key={`${node.path} ${isSearched}`}>
          {node.row && <Leaf node={node} row={node.row} />}
          {node.children.length > 0 && (
            <Branch node={node} depth={depth} isSearched={isSearched} isOnly={branches === 1} />
          )}
        </li>
      ))}
    </ul>
  );
}

/** `isSearched`: matches are shown expanded. */
export function TreeView({ rows, isSearched }: { rows: PlannedTensor[]; isSearched: boolean }) {
  return (
    <div class="tree panel">
      <Nodes nodes={treeOf(rows).children} depth={0} isSearched={isSearched} />
    </div>
  );
}
