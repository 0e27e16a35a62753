"use strict";
// The page of `Results.to_html`. All text of models enters it as text nodes, never as HTML.

// The data are lines: the head, each prompt, a bracket, and each row. A row is parsed when it is first needed.
const lines = document.getElementById("data").textContent.split("\n");
const { runs, states, same: sameColumns, first_row: firstRow, expected: EXPECTED } = JSON.parse(`${lines[0].slice(0, lines[0].lastIndexOf(","))}}`);
const parseLine = (at) => JSON.parse(lines[at].endsWith(",") ? lines[at].slice(0, -1) : lines[at]);
const sideBySide = runs.length > 1;
const byId = (id) => document.getElementById(id);

/** An element with a class and a text, or with children. */
function element(tag, name = "", ...children) {
  const node = document.createElement(tag);
  node.className = name;
  node.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return node;
}

/** A text whose invisible controls are written out: those of terminals, and those that reorder text. */
function visible(text) {
  const code = (mark) => `[U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`;
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g, code);
}

const asText = (value) =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 1);

/** The text of a message, whose parts are texts or short descriptions of media. */
function contentText(content) {
  if (!Array.isArray(content)) return asText(content);
  return content.map((part) => part.text ?? `[${part.type ?? "part"}] ${asText(part)}`).join("\n");
}

/** A prompt as one text: of messages, the last one of the user. */
function promptText(prompt) {
  if (!Array.isArray(prompt)) return asText(prompt);
  return contentText((prompt.findLast((message) => message.role === "user") ?? prompt.at(-1))?.content);
}

class Row {
  #sides;
  constructor(number, state) {
    this.number = number;
    this.state = state;
  }
  get sides() {
    this.#sides ??= parseLine(firstRow + this.number).map((side, run) => side && readSide(side, runs[run]));
    return this.#sides;
  }
}

/** A side of a row, with its cells by their names. */
function readSide(side, run) {
  // Without a prototype: a column may be named like a method of every object.
  const cells = { __proto__: null };
  run.columns.forEach((name, column) => { cells[name] = side.cells[column]; });
  // Samples of one call have one prompt, which is a line of its own.
  cells.prompt = run.first_prompt && parseLine(run.first_prompt + cells.input_index);
  return { ...side, cells };
}

// Rows are in the order of their states.
const rows = [];
for (const [state, count] of Object.entries(states)) for (let left = count; left; left--) rows.push(new Row(rows.length, state));

/** Spaces and line ends as one space, so that a phrase is found over the end of a line. */
const flat = (text) => text.toLowerCase().replace(/\s+/g, " ");

/** What a search looks through: each text and number as the row shows it, made when it is first searched. */
function searchText(row) {
  const texts = [];
  const collect = (value, name) => {
    if (Array.isArray(value)) value.forEach((part) => collect(part, name));
    else if (value !== null && typeof value === "object") Object.entries(value).forEach(([key, part]) => collect(part, key));
    else if (value !== null && name !== "role" && !String(value).startsWith("data:image/")) {
      texts.push(flat(visible(String(value))));
      if (typeof value === "number") texts.push(show(value, name));
    }
  };
  row.searchText ??= (collect(row.sides), texts.join("\n"));
  return row.searchText;
}

/** The words and the phrases in quotes of a search. A quote that is not closed yet is a word of its own. */
const parseSearch = (text) => [...flat(text).matchAll(/"([^"]+)"|(\S+)/g)].map(([, phrase, word]) => phrase ?? word);

// Texts for the search are made while the reader does nothing else, so that the first search is fast too.
let prepared = 0;
globalThis.requestIdleCallback?.(function prepare(deadline) {
  while (prepared < rows.length && deadline.timeRemaining() > 2) searchText(rows[prepared++]);
  if (prepared < rows.length) requestIdleCallback(prepare);
});

// The table.

const LONG = new Set(["prompt", "text"]);
const WIDTHS = { __proto__: null, input_index: 76, sample: 84, prompt: sideBySide ? 230 : 330 };
const STATES = { __proto__: null, single: "only one" };
const NONE = Object.create(null);
const TITLES = {
  __proto__: null,
  input_index: "#", finish_reason: "finish reason", input_tokens: "input tokens",
  output_tokens: "output tokens", cache_read_input_tokens: "tokens from cache", reasoning_output_tokens: "reasoning tokens",
  cost_at_least: "cost at least", cost_at_most: "cost at most", seconds: "seconds", text: "answer",
};
const title = (name) => TITLES[name] ?? name;
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const USD = new Set(["cost", "cost_at_least", "cost_at_most", "price"]);

/** The decimal places of an amount with four digits, at least two. */
const decimals = (amount) => (amount ? Math.min(20, Math.max(2, 3 - Math.floor(Math.log10(Math.abs(amount))))) : 2);
const usd = [...Array(21).keys()].map((digits) => new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: Math.max(2, digits) }));
/** USD with four digits, and with at least two decimal places, as Python's `format_usd` has them. */
const formatUsd = (amount) => `$${usd[decimals(amount)].format(amount)}`;

/** A number with six digits; a small or a very large one with four and its power of ten. */
const power = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, notation: "scientific" });
const formatNumber = (value) => (value && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e15) ? power : number).format(value);

/** Numbers of metadata, such as a year or an expected value, stay as they are, but for long fractions. */
const isOwn = (name) => /_tokens$|^seconds$|^scores?(\.|$)/.test(name);
const isLong = (value) => !Number.isSafeInteger(value) && String(value).length > 12;
const formatCell = (value, name) => (USD.has(name) ? formatUsd(value) : isOwn(name) || isLong(value) ? formatNumber(value) : String(value));
const show = (value, name) => (typeof value !== "number" ? asText(value) : formatCell(value, name));
const CELL_CHARACTERS = 400;

const isScore = (name) => /^scores?(\.|$)/.test(name);
/** The class of a score: green for right, red for wrong, and no colour between. Nothing else is green or red. */
const scoreClass = (value) => ({ __proto__: null, 1: "right", true: "right", 0: "wrong", false: "wrong" })[value] ?? "";

/** What a cell of the table has: a failed row has its error in the place of the answer. */
function cellValue(name, cells) {
  const value = (name === "text" ? cells.text ?? cells.error_message : cells[name]) ?? null;
  return name === "prompt" ? promptText(value) : value !== null && typeof value === "object" ? asText(value) : value;
}

/** The order of cells: empty ones, numbers, and then texts, as a column may have all of them. */
const rank = (value) => ({ string: 2, number: 1, boolean: 1 })[typeof value] ?? 0;
const compareCells = (left, right) => rank(left) - rank(right) || (left > right) - (left < right);

/** The column of one value, of a run or of the first run that has it. */
function column(name, run, header = title(name)) {
  const cells = ({ sides }) => (run === undefined ? sides.find((side) => (side?.cells[name] ?? null) !== null) : sides[run])?.cells;
  const numbers = (run === undefined ? runs : [runs[run]]).map((each) => each.numbers).filter((each) => Object.hasOwn(each, name));
  const numeric = numbers.length > 0;
  // The least amount of USD has the longest text.
  const least = Math.min(...numbers.map((each) => each[name] || 1));
  const long = LONG.has(name);
  return {
    headerName: visible(header),
    colId: `${name} ${run ?? ""}`,
    valueGetter: ({ data }) => cellValue(name, cells(data) ?? NONE),
    valueFormatter: ({ value }) => visible(show(value, name).slice(0, CELL_CHARACTERS).trim().replace(/\s*\n\s*/g, " ↵ ")),
    cellClass: long ? "clipped" : isScore(name) ? ({ value }) => `ag-right-aligned-cell ${scoreClass(value)}` : undefined,
    cellRenderer: long ? ({ valueFormatted, data }) => element("span", cells(data)?.text ?? name === "prompt" ? "long" : "long missing", valueFormatted ?? "") : undefined,
    comparator: compareCells,
    filter: numeric ? "agNumberColumnFilter" : "agTextColumnFilter",
    suppressFloatingFilterButton: !numeric || name in WIDTHS,
    type: numeric ? "numericColumn" : undefined,
    width: WIDTHS[name] ?? (long ? (sideBySide ? 300 : 420) : numeric ? Math.max(124, 56 + 8 * decimals(least)) : 130),
    hide: narrow.matches && !long,
    flex: narrow.matches ? 1 : null,
  };
}

/** A phone shows the prompt and the answer, and the rest in the open row. */
const narrow = globalThis.matchMedia?.("(max-width: 700px)") ?? { matches: false };
narrow.addEventListener?.("change", () => {
  for (const [name, value] of Object.entries({ columnDefs: columns(), ...sizes() })) grid.setGridOption(name, value);
});
const sizes = () => ({ rowHeight: narrow.matches ? 92 : 50, floatingFiltersHeight: narrow.matches ? 0 : 40 });

/** The columns that say nothing, because one value is in all rows. They are named above the table. */
const SHOWN = new Set(["prompt", "text", "input_index", "error"]);
const hidden = rows.length < 2 ? [] : [...new Set(runs.flatMap((run) => run.columns))].filter(
  (name) => !SHOWN.has(name) && !isScore(name) && runs.every((run) => !run.columns.includes(name) || Object.hasOwn(run.constants, name)),
);

function columns() {
  const state = {
    headerName: "state",
    field: "state",
    width: 122,
    pinned: "left",
    hide: narrow.matches,
    filter: "agTextColumnFilter",
    suppressFloatingFilterButton: true,
    comparator: (left, right) => Object.keys(states).indexOf(left) - Object.keys(states).indexOf(right),
    cellRenderer: ({ value }) => element("span", `state ${value}`, STATES[value] ?? value),
  };
  const names = [...new Set(runs.flatMap((run) => run.columns))].filter((name) => name !== "error_message" && !hidden.includes(name));
  // Of two runs, what is the same in all rows has one column.
  const group = (name) => ({ headerName: visible(title(name)), marryChildren: true, children: runs.map((run, index) => column(name, index, run.name)) });
  return [state, ...names.map((name) => (!sideBySide || (name !== "text" && sameColumns.includes(name)) ? column(name, sideBySide ? undefined : 0) : group(name)))];
}

let shownState = "all";
let words = [];
const grid = agGrid.createGrid(byId("table"), {
  theme: agGrid.themeQuartz.withParams({
    accentColor: "var(--accent)", backgroundColor: "var(--surface)", borderColor: "var(--line)",
    foregroundColor: "var(--text)", textColor: "var(--text)", headerTextColor: "var(--muted)", iconColor: "var(--muted)",
    chromeBackgroundColor: "var(--page)", headerBackgroundColor: "var(--page)", rowHoverColor: "var(--hover)",
    inputPlaceholderTextColor: "var(--muted)", browserColorScheme: "inherit", fontFamily: "inherit", fontSize: 13,
    headerHeight: 34, rowHeight: 50, wrapperBorder: false, wrapperBorderRadius: 0,
  }),
  rowData: rows,
  columnDefs: columns(),
  defaultColDef: { sortable: true, resizable: true, floatingFilter: true, suppressHeaderFilterButton: true },
  getRowId: ({ data }) => String(data.number),
  ensureDomOrder: true,
  ...sizes(),
  valueCache: true,
  animateRows: false,
  // A row is 50 pixels high: more rows than these outside the view would cost a fast scroll its frames.
  rowBuffer: 3,
  isExternalFilterPresent: () => shownState !== "all" || words.length > 0,
  doesExternalFilterPass: ({ data }) =>
    (shownState === "all" || data.state === shownState) && words.every((word) => searchText(data).includes(word)),
  onRowClicked: ({ node }) => openRow(node.rowIndex),
  onCellKeyDown: ({ event, node }) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    openRow(node.rowIndex);
  },
  onModelUpdated: ({ api }) => {
    const count = api.getDisplayedRowCount();
    byId("count").textContent = `${number.format(count)} of ${number.format(rows.length)} rows`;
  },
});

// Search and the states of rows.

byId("title").textContent = visible(runs.map((run) => run.name).join("  ·  "));
byId("summary").textContent = visible(runs.map((run) => (sideBySide ? `${run.name}: ${run.summary}` : run.summary)).join("\n"));
document.title = byId("title").textContent;

const same = hidden.filter((name) => name !== "model").map((name) => [title(name), runs.map((run) => show(run.constants[name], name) || "–")]);
byId("same").textContent = visible(
  same.filter(([, values]) => values.some((value) => value !== "–")).map(([name, values]) => `${name} ${[...new Set(values)].join(" / ").slice(0, 80)}`).join(" · "),
);
byId("same").prepend(...(byId("same").textContent ? ["The same in all rows: "] : []));

/** A histogram: how often the numbers are in each part of their range. */
function histogram({ counts, low, high }, name) {
  const most = Math.max(...counts);
  const bars = element("span", "bars", ...counts.map((count) => {
    const bar = element("i");
    bar.style.height = `${count && Math.max(8, (100 * count) / most)}%`;
    return bar;
  }));
  bars.role = "img";
  bars.title = bars.ariaLabel = `${name} from ${formatNumber(low)} to ${formatNumber(high)}: ${counts.join(", ")}`;
  return bars;
}

/** The strip above the table: a line for each model of each run. */
function strip() {
  const models = runs.flatMap((run) => run.models);
  const scored = models.some((line) => line.mean !== undefined);
  const of = [...new Set(models.map((line) => line.bars_of))].join(", ");
  // Calls that failed, and samples without a score, are in no mean.
  const count = (each, name) => {
    const all = number.format(each.counts[name]);
    return [all, undefined].includes(each[name]) ? all : `${each[name]} scored of ${all}`;
  };
  const score = ({ mean, interval }) => (interval ? `${mean} ${interval}` : mean ?? "");
  const time = ({ seconds }) => (typeof seconds === "string" ? seconds : `${number.format(+seconds.toFixed(2))} s`);
  const titles = ["model", "questions", "samples", ...(scored ? ["score, 95 % interval"] : []), "price", "paid now", "median time", "errors", visible(of)];
  const line = (each) => [
    each.model, count(each, "questions"), count(each, "samples"), ...(scored ? [score(each)] : []), each.price, each.cost, time(each),
    number.format(each.errors), each.bars ? histogram(each.bars, each.bars_of) : "",
  ];
  const cells = (tag, values) => element("tr", "", ...values.map((value) => element(tag, "", value)));
  byId("strip").append(element("thead", "", cells("th", titles)), element("tbody", "", ...models.map((each) => cells("td", line(each)))));
}
strip();

let waiting;
byId("search").addEventListener("input", ({ target }) => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    words = parseSearch(target.value);
    grid.onFilterChanged();
  }, 120);
});
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.target.value) event.target.blur();
  if (event.key !== "ArrowDown" && event.key !== "Enter") return;
  event.preventDefault();
  focusRow(0);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select");
  if (typing || byId("row").open || event.ctrlKey || event.metaKey || event.altKey) return;
  const isFree = document.activeElement === document.body || document.activeElement === null;
  if (event.key === "/") byId("search").select();
  else if (isFree && ["ArrowDown", "ArrowUp", "PageDown", "Home"].includes(event.key)) focusRow(0);
  else if (isFree && event.key === "Enter") openRow(0);
  else return;
  event.preventDefault();
});

for (const [state, count] of [["all", rows.length], ...Object.entries(states)]) {
  if (!count) continue;
  const button = element("button", "", `${STATES[state] ?? state} ${number.format(count)}`);
  button.type = "button";
  button.setAttribute("aria-pressed", String(state === shownState));
  button.addEventListener("click", () => {
    shownState = state;
    for (const other of byId("states").children) other.setAttribute("aria-pressed", String(other === button));
    grid.onFilterChanged();
  });
  byId("states").append(button);
}

function focusRow(index) {
  if (index >= grid.getDisplayedRowCount()) return;
  grid.ensureIndexVisible(index);
  grid.setFocusedCell(index, grid.getFocusedCell()?.column ?? "state");
}

// A row that is open.

let openIndex = 0;
const dialog = byId("row");

function openRow(index) {
  const row = grid.getDisplayedRowAtIndex(index)?.data;
  if (!row) return;
  openIndex = index;
  const sides = row.sides.map((side, run) => side && { ...side, name: runs[run].name });
  const label = row.sides.find(Boolean).cells;
  byId("row-title").textContent = `Row ${label.input_index}${hidden.includes("sample") || label.sample === undefined ? "" : `, sample ${label.sample}`}`;
  byId("row-title").append(" ", element("span", `state ${row.state}`, STATES[row.state] ?? row.state));
  byId("previous").disabled = index === 0;
  byId("next").disabled = index + 1 >= grid.getDisplayedRowCount();
  dialog.style.setProperty("--width", sideBySide ? "1240px" : "820px");
  byId("content").style.setProperty("--runs", sides.length);
  byId("content").style.setProperty("--sides", sides.length + (expectedValue(sides) === null ? 0 : 1));
  byId("content").replaceChildren(...details(sides));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

const move = (step) => openRow(openIndex + step);
byId("previous").addEventListener("click", () => move(-1));
byId("next").addEventListener("click", () => move(1));
byId("close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
// The event comes late: the reader may be in the search already.
dialog.addEventListener("close", () => document.activeElement?.matches("input") || focusRow(openIndex));
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") move(-1);
  if (event.key === "ArrowRight") move(1);
  if (event.key === "m" && !event.ctrlKey && !event.metaKey && !event.altKey) toggleMarkdown();
});

// Markdown is parsed when the reader asks for it. Only its tokens are taken, never HTML: a tag that is not in
// the list is not made, an image is its description and address, and a link is its text and address.
const TAGS = new Set([
  "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "em", "strong", "s",
  "table", "thead", "tbody", "tr", "th", "td",
]);
const MOST_MARKDOWN = 200_000;
let rendersMarkdown = false;

function markdown(text) {
  const root = element("div", "rendered");
  root.dir = "auto";
  const links = [];
  let at = root;
  const add = (token) => {
    if (token.type === "inline") token.children.forEach(add);
    else if (token.type === "image") at.append(visible(`[${token.content}] (${token.attrGet("src")})`));
    else if (token.type === "link_open") links.push(token.attrGet("href"));
    else if (token.type === "link_close") at.append(visible(` (${links.pop()})`));
    else if (token.hidden) return;
    else if (token.nesting < 0) at = at.parentNode;
    else if (token.nesting > 0) {
      const node = element(TAGS.has(token.tag) ? token.tag : "div");
      if (token.tag === "ol") node.start = Number(token.attrGet("start") ?? 1);
      at.append(node);
      at = node;
    } else if (token.type === "fence" || token.type === "code_block") at.append(element("pre", "code", token.content.trimEnd()));
    else if (token.type === "code_inline") at.append(element("code", "", token.content));
    else if (token.type.endsWith("break")) at.append(element("br"));
    else if (token.type === "hr") at.append(element("hr"));
    else at.append(visible(token.content));
  };
  markdownit({ html: false }).parse(text, {}).forEach(add);
  return root;
}

function toggleMarkdown() {
  rendersMarkdown = !rendersMarkdown;
  byId("markdown").setAttribute("aria-pressed", String(rendersMarkdown));
  openRow(openIndex);
}
byId("markdown").addEventListener("click", toggleMarkdown);

/** A block of text in the direction of its script. */
function block(text, name = "") {
  if (rendersMarkdown && !name && text && text.length <= MOST_MARKDOWN) return markdown(text);
  const node = element("pre", name, text);
  node.dir = "auto";
  return node;
}

function messages(conversation) {
  if (!Array.isArray(conversation)) return [block(asText(conversation))];
  return conversation.map(({ role, content, tool_calls: calls, ...rest }) =>
    element(
      "div", `bubble ${["system", "developer", "user", "assistant", "tool"].includes(role) ? role : ""}`,
      element("p", "role", [role, rest.name ?? rest.tool_call_id].filter(Boolean).join(" · ")),
      ...(asText(content) ? [block(contentText(content))] : []),
      ...(calls ?? []).map((call) => block(`${call.function?.name}(${call.function?.arguments})`, "code")),
    ));
}

/** The value that was expected, by the metadata of a row; null if there is none. */
function expectedValue(sides) {
  const cells = sides.filter(Boolean).flatMap((side) => Object.entries(side.cells));
  for (const expected of EXPECTED) {
    const found = cells.find(([name, value]) => value !== null && name.toLowerCase().replace(/^metadata_/, "") === expected);
    if (found) return asText(found[1]);
  }
  return null;
}

const asCode = (values) => values.map((value) => block(asText(value), "code"));
const asCalls = (calls) => calls.map((call) => block(`${call.name}(${asText(call.arguments)})`, "code"));
const SECTIONS = [
  ["Prompt", ({ cells, extra }) => !extra.messages && cells.prompt !== null && messages(cells.prompt)],
  ["Conversation", ({ extra }) => extra.messages && messages(extra.messages)],
  ["Reasoning", ({ extra }) => extra.reasoning && [block(extra.reasoning)]],
  ["Tool calls", ({ extra }) => extra.tool_calls && asCalls(extra.tool_calls)],
  ["Tools that the provider ran", ({ extra }) => extra.server_tool_calls && asCode(extra.server_tool_calls)],
  ["Answer", ({ cells }) => (cells.error ? [block(`${cells.error}: ${cells.error_message}`, "failed")] : cells.text && [block(cells.text)])],
  ["Images", ({ extra }) => extra.images?.map(picture)],
  ["Sources", ({ extra }) => extra.citations?.map((source) => block(Object.values(source).map(asText).join("\n")))],
  ["Requests that failed before", ({ extra }) => extra.failures && asCode(extra.failures)],
];

function picture({ address, description }) {
  if (!address) return element("p", "note", description);
  const image = element("img");
  image.src = address;
  image.alt = description;
  return image;
}

/** The sections of a row: what both sides share once, the rest side by side, and a table of the facts. */
function details(sides) {
  const expected = expectedValue(sides);
  const nodes = sideBySide ? sides.map((side, run) => element("p", "name", runs[run].name + (side ? "" : ": no such row"))) : [];
  if (sideBySide && expected !== null) nodes.push(element("p", "name"));
  for (const [name, read] of SECTIONS) {
    let contents = sides.map((side) => (side && read(side)) || null);
    if (!contents.some(Boolean)) continue;
    const texts = contents.map((content) => content?.map((node) => node.textContent).join("\n"));
    const once = name === "Prompt" ? !texts[1] || !texts[0] || texts[0] === texts[1] : texts[0] === texts.at(-1);
    if (once) contents = [contents.find(Boolean)];
    else if (name === "Answer" && !rendersMarkdown && sides.every((side) => side?.cells.text)) contents = differences(sides);
    const heading = name === "Answer" && once && sideBySide ? "Answer of both" : name;
    const isAnswer = name === "Answer";
    nodes.push(...contents.map((content) => element(
      "section", once ? (isAnswer ? "both" : "wide") : "", ...(content ? [element("h3", "", heading), ...content] : []))));
    if (expected !== null && isAnswer) nodes.push(element("section", "", element("h3", "", "Expected"), block(expected)));
    else if (expected !== null && !once) nodes.push(element("section"));
  }
  return [...nodes, element("section", "wide", element("h3", "", "Facts"), facts(sides))];
}

/** Two answers with the words that only one of them has; plain where that takes longer than half a second. */
function differences(sides) {
  const [before, after] = sides.map(({ cells }) => visible(cells.text));
  const parts = Diff.diffWordsWithSpace(before, after, { timeout: 500 });
  if (!parts) return [[block(before)], [block(after)]];
  const marked = (other, tag) => {
    const node = block("");
    node.append(...parts.filter((part) => !part[other]).map((part) => (part.added || part.removed ? element(tag, "", part.value) : part.value)));
    return [node];
  };
  return [marked("added", "del"), marked("removed", "ins")];
}

function facts(sides) {
  const each = sides.map((side) => {
    if (!side) return NONE;
    const { prompt, text, error, error_message: message, input_index: index, sample, ...cells } = side.cells;
    return { __proto__: null, ...cells, ...side.extra.facts };
  });
  const names = [...new Set(each.flatMap(Object.keys))].filter((name) => each.some((values) => (values[name] ?? null) !== null));
  const line = (name) => {
    const values = each.map((side) => show(side[name], name));
    const row = element("tr", values.length > 1 && values[0] !== values[1] ? "differs" : "");
    const head = element("th", "", title(name));
    head.scope = "row";
    row.append(head, ...values.map((value) => element("td", "", value)));
    return row;
  };
  return element("table", "", element("tbody", "", ...names.map(line)));
}
