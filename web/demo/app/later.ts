// The states that need a model.
export { ChooseView } from '../choose/choose-view';
export { ResultView } from '../result/result-view';

import './views.css';
import '../choose/choose.css';
import '../configure/configure.css';
import '../run/run.css';
import '../result/result.css';
import '../report/tensor-table.css';
import '../report/tensor-row.css';
import '../report/tree.css';
import '../inspect/inspect.css';
import '../improve/improve.css';
import '../compare/compare.css';
import '../quality/quality.css';
import '../feeds/feeds.css';
import '../export/export.css';
import '../try/try.css';
