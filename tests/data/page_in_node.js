// Runs the script of a page of results, from standard input, without a browser: prints its columns and a row.
const page = require("fs").readFileSync(0, "utf8");
const scripts = [...page.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map((match) => match[1]);

const node = () => ({
  children: [],
  parts: [],
  style: { setProperty() {} },
  append(...parts) { this.parts.push(...parts); },
  prepend(...parts) { this.parts.unshift(...parts); },
  replaceChildren(...parts) { this.parts = parts; },
  addEventListener() {},
  setAttribute() {},
  showModal() {},
  get textContent() { return this.parts.map((part) => part.textContent ?? part).join(" "); },
  set textContent(text) { this.parts = [text]; },
});
const nodes = { data: { textContent: scripts[0] } };
globalThis.document = {
  getElementById: (id) => (nodes[id] ??= node()),
  createElement: node,
  addEventListener() {},
};
let options;
globalThis.agGrid = {
  themeQuartz: { withParams() {} },
  createGrid(_, given) {
    options = given;
    return {
      getDisplayedRowAtIndex: (index) => ({ data: given.rowData[index] }),
      getDisplayedRowCount: () => given.rowData.length,
    };
  },
};
(0, eval)(scripts.at(-1));

const named = ({ headerName, children }) => children.map((child) => ({ ...child, headerName }));
const columns = options.columnDefs
  .flatMap((column) => (column.children ? named(column) : [column]))
  .filter((column) => column.valueGetter);
const read = (column, data) => column.valueFormatter({ value: column.valueGetter({ data }) });
const cells = columns.map((column) => [column.headerName, options.rowData.map((data) => read(column, data))]);
options.onRowClicked({ node: { rowIndex: 0 } });
console.log(JSON.stringify({ cells, row: nodes.content.textContent }));
