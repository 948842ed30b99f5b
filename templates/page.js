"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  /** Create an element; strings become text nodes, so data is never parsed as markup. */
  function make(name, className, ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) element.append(child);
    }
    return element;
  }

  // Theme: the system's until the button is clicked ---------------------------------------------------
  const darkIsSet = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const nameTheme = () => { get("theme").textContent = darkIsSet() ? "Light" : "Dark"; };
  get("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = darkIsSet() ? "light" : "dark";
    nameTheme();
  });
  nameTheme();

  /** Add a button after a command that copies it. */
  function copyable(code) {
    const button = Object.assign(make("button", "small copy", "Copy"), { type: "button" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent).then(() => { button.textContent = "Copied"; },
        () => { getSelection().selectAllChildren(code); button.textContent = "Selected"; });
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    return make("span", "copyable", code, " ", button);
  }
  for (const code of all("code.command")) {
    const place = document.createTextNode("");
    code.replaceWith(place);
    place.replaceWith(copyable(code));
  }

  // Tables: rows, columns, order -----------------------------------------------------------------------
  const NUMBER = "td[data-metrics]";
  const tables = all("section.table");
  const numbersOf = new Map(tables.map((section) => [section, all(NUMBER, section)]));
  const width = (cells) => [...cells].reduce((sum, cell) => sum + cell.colSpan, 0);
  const dataRows = (body) => [...body.rows].filter((row) => row.querySelector("td"));
  /** Return the number of columns taken by the title of a row's group, which is in another row. */
  const taken = (row) => width(row.closest("table").tHead.rows[0].cells) - width(row.cells);
  const shownFirst = (cell) => cell.childNodes[0]?.textContent ?? "";

  /** Move the title of a row group to its first visible row, spanning the visible rows. */
  function settle(body) {
    const visible = dataRows(body).filter((row) => !row.hidden);
    body.hidden = visible.length === 0;
    const title = body.querySelector("th[scope=rowgroup]");
    if (!title || body.hidden) return;
    title.rowSpan = visible.length;
    visible[0].prepend(title);
  }

  /** Sort each row group by a column: descending, then ascending, then as in the paper. */
  function sort(head) {
    const table = head.closest("table");
    const order = { none: "descending", descending: "ascending", ascending: "none" }[head.ariaSort ?? "none"];
    for (const other of all("th", table)) other.removeAttribute("aria-sort");
    if (order !== "none") head.ariaSort = order;
    const column = width([...head.parentElement.cells].slice(0, head.cellIndex));
    const sign = order === "ascending" ? 1 : -1;
    for (const body of head.closest("thead") ? table.tBodies : [head.closest("tbody")]) {
      const rows = dataRows(body);
      rows.forEach((row, place) => { row.place ??= place; });
      const titled = body.querySelector("th[scope=rowgroup]");
      titled?.remove();
      const value = (row) => shownFirst(row.cells[column - taken(row)] ?? row);
      rows.sort((one, other) => {
        if (order === "none") return one.place - other.place;
        const [a, b] = [parseFloat(value(one)), parseFloat(value(other))];
        if (isNaN(a) && isNaN(b)) return sign * value(one).localeCompare(value(other));
        return isNaN(a) - isNaN(b) || sign * (a - b);
      });
      if (titled) rows[0].prepend(titled);
      body.append(...rows);
      settle(body);
    }
  }

  // One's own rows come first; rows that were not run are folded behind a line ----------------------------
  const own = new Set(document.querySelector("main").dataset.own.split(" ").filter(Boolean));
  const isNotRun = (row) => row.classList.contains("not-run");
  for (const section of tables) {
    const table = section.querySelector("table");
    const rows = [...table.tBodies].flatMap(dataRows);
    for (const body of [...table.tBodies].reverse()) {
      const mine = dataRows(body).filter((row) => own.has(row.dataset.model));
      if (!mine.length) continue;
      for (const row of mine) row.classList.add("own");
      body.querySelector("tr:has(td)").before(...mine.filter((row) => row !== body.querySelector("tr:has(td)")));
      settle(body);
      // A body with other column headings keeps its place.
      if (mine.length === dataRows(body).length && mine.length === body.rows.length) table.tHead.after(body);
    }
    const folded = rows.filter(isNotRun);
    if (!folded.length || folded.length === rows.length) continue;
    const models = new Set(folded.map((row) => row.dataset.model));
    const what = models.has(undefined) || [...models].some((model) => own.has(model))
      ? `${folded.length} ${folded.length === 1 ? "row" : "rows"}`
      : `${models.size} printed ${models.size === 1 ? "model" : "models"}`;
    const button = Object.assign(make("button", "small"), { type: "button" });
    const name = () => {
      button.textContent = "unfolded" in section.dataset ? "hide" : "show";
      button.ariaExpanded = String("unfolded" in section.dataset);
    };
    button.addEventListener("click", () => {
      if ("unfolded" in section.dataset) delete section.dataset.unfolded; else section.dataset.unfolded = "";
      name();
      filter();
    });
    name();
    section.dataset.folds = "";
    section.querySelector(".layout").after(make("p", "fold", `${what} not run: `, button));
  }

  // Filters, and the address that stores them ------------------------------------------------------------
  const filters = ["study", "search", "differs", "run-only"];
  const read = (id) => (get(id).type === "checkbox" ? (get(id).checked ? "yes" : "") : get(id).value.trim());
  const assign = (id, value) => {
    if (get(id).type === "checkbox") get(id).checked = Boolean(value); else get(id).value = value;
  };
  let anchor = "";
  let opened = "";

  function address() {
    const given = filters.filter(read).map((id) => `&${id}=${encodeURIComponent(read(id))}`).join("");
    const hash = anchor + (opened ? `&number=${opened}` : "") + given;
    history.replaceState(null, "", `#${hash}`);
  }

  const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const words = (element) => (element.words ??= `${element.dataset.words ?? ""} ${element.textContent}`.toLowerCase());
  function filter() {
    const [study, differs, runOnly] = [read("study"), read("differs"), read("run-only")];
    const wanted = read("search").toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => wanted.every((word) => text.includes(word));
    const ofStudy = (element) => !study || element.dataset.paper === study;
    let [claims, rows] = [0, 0];
    for (const section of tables) {
      const about = words(section.querySelector("h3")) + words(section.querySelector("caption"));
      section.hidden = !ofStudy(section);
      let shown = 0;
      for (const body of section.querySelector("table").tBodies) {
        const title = body.querySelector("th[scope=rowgroup]")?.textContent.toLowerCase() ?? "";
        for (const row of dataRows(body)) {
          const isFolded = "folds" in section.dataset && !("unfolded" in section.dataset) && !wanted.length;
          row.hidden = (differs && !row.querySelector(".not-reproduced")) ||
            ((runOnly || isFolded) && isNotRun(row)) || !has(`${about} ${title} ${words(row)}`);
          shown += !row.hidden;
        }
        settle(body);
      }
      const table = section.querySelector("table");
      if (table.tFoot) table.tFoot.hidden = !table.querySelector("tr.not-run:not([hidden])");
      let listed = 0;
      for (const item of all(".differing li", section)) {
        item.hidden = !has(`${about} ${words(item)}`);
        listed += !item.hidden;
      }
      section.hidden ||= shown + listed === 0;
      rows += section.hidden ? 0 : shown;
    }
    for (const group of all("details.claims")) {
      const kept = all(".claim", group).filter((claim) => {
        claim.hidden = !ofStudy(claim) || !has(words(claim)) || (differs && !("differs" in claim.dataset));
        return !claim.hidden;
      });
      group.hidden = kept.length === 0;
      const [every, some] = all("summary .soft", group);
      some.hidden = kept.length === all(".claim", group).length;
      every.hidden = !some.hidden;
      some.textContent = `${count(kept.length, "claim")} shown`;
      claims += kept.length;
    }
    for (const other of all("figure, .absent")) {
      other.hidden = !ofStudy(other) || Boolean(differs) || !has(words(other)) || (runOnly && other.matches(".absent"));
    }
    for (const part of all(".index section")) {
      const entries = all("li", part);
      for (const entry of entries) entry.hidden = get(entry.querySelector("a").hash.slice(1)).hidden;
      part.hidden = entries.every((entry) => entry.hidden);
    }
    get("shown").textContent = `${count(rows, "row")} of tables and ${count(claims, "claim")}`;
  }

  /** Go to the target of an address's hash, and reset filters that hide it. */
  function go(hash) {
    const parts = new URLSearchParams(hash.slice(1));
    const target = [...parts].find(([, value]) => !value)?.[0] ?? "";
    if (filters.some((id) => parts.has(id))) for (const id of filters) assign(id, parts.get(id) ?? "");
    filter();
    const element = target && get(target);
    anchor = element ? target : "";
    if (element) {
      if (element.closest("[hidden]")) {
        for (const id of filters) assign(id, "");
        filter();
      }
      for (let place = element; place; place = place.parentElement) if (place.tagName === "DETAILS") place.open = true;
      element.scrollIntoView();
    }
    const number = element && numbersOf.get(element)?.[parts.get("number")];
    if (number) {
      show(number);
    } else {
      opened = "";
      dialog.close();
    }
    address();
  }

  for (const id of filters) get(id).addEventListener("input", () => {
    filter();
    address();
    const { top, bottom } = get("tables").parentElement.getBoundingClientRect();
    if (top > innerHeight || bottom < 0) get("tables").scrollIntoView();
  });
  // Use the event's URL: the late close event of a dialog may have rewritten the address.
  addEventListener("hashchange", (event) => go(new URL(event.newURL).hash));

  // Keyboard: each table is one tab stop, and arrow keys move within it -----------------------------------
  const heads = (table) => all("th[scope=col]", table);
  for (const [section, cells] of numbersOf) {
    for (const head of heads(section)) if (head.textContent) head.classList.add("sorts");
    if (!cells.length) continue;
    section.querySelector("table").setAttribute("role", "grid");
    cells[0].tabIndex = 0;
  }
  function focus(cell) {
    for (const other of all("[tabindex]", cell.closest("table"))) other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  }
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[role=grid] :is(td, th)");
    if (!cell) return;
    const row = cell.parentElement;
    const inRow = (other) => all(`${NUMBER}, th.sorts`, other);
    if (event.key === "Enter" || event.key === " ") press(cell);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const cells = inRow(row);
      const next = cells[cells.indexOf(cell) + (event.key === "ArrowLeft" ? -1 : 1)];
      if (next) focus(next);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const rows = all("tr", row.closest("table")).filter((other) => !other.closest("[hidden]") && inRow(other).length);
      const next = rows[rows.indexOf(row) + (event.key === "ArrowUp" ? -1 : 1)];
      const left = (other) => Math.abs(other.getBoundingClientRect().right - cell.getBoundingClientRect().right);
      if (next) focus(inRow(next).reduce((best, other) => (left(other) < left(best) ? other : best)));
    } else return;
    event.preventDefault();
  });
  function press(cell) {
    if (cell.matches("th.sorts")) return sort(cell);
    if (!cell.matches(NUMBER)) return undefined;
    focus(cell);
    return show(cell);
  }
  document.addEventListener("click", (event) => {
    const cell = event.target.closest(`.layout ${NUMBER}, .layout th.sorts`);
    if (cell) press(cell);
  });

  // Details of a number, loaded on demand from files of the page -----------------------------------------
  const dialog = get("dialog");
  const arriving = {};
  window.pieline = (name, packed) => arriving[name](packed);
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }
  const loaded = {};
  const load = (name) => (loaded[name] ??= new Promise((resolve, reject) => {
    arriving[name] = resolve;
    const script = make("script");
    script.src = `${dialog.dataset.items}/${name}.js`;
    script.onerror = () => {
      delete loaded[name];
      reject(new Error(`${script.getAttribute("src")} is missing: copy the folder ${dialog.dataset.items} together with this page`));
    };
    document.head.append(script);
  }).then(unpack));

  const marked = (text) => [text.parts[0], text.parts[1] ? make("mark", "", text.parts[1]) : null, text.parts[2]];
  const badge = (right, yes = "right", no = "wrong") =>
    right === null || right === undefined ? null : make("span", `badge ${right ? "right" : "wrong"}`, right ? yes : no);
  const soft = (...parts) => make("span", "soft", ...parts);
  const recorded = (row, evidence) => evidence.recording && row.keys.length ? soft(`recording key ${row.keys.map((key) => `${key}…`).join(", ")}`) : null;
  const named = (text) => String(text).replaceAll("_", " ");
  function file(path, digest) {
    const link = make("a", "", path);
    link.href = `${dialog.dataset.root}/${path}`;
    return make("p", "file", link, digest ? [make("br"), soft(`SHA-256 ${digest}`)] : null);
  }
  const folded = (title, ...parts) => make("details", "", make("summary", "", title), ...parts);
  const listed = (fields) => make("dl", "", Object.entries(fields).flatMap(([name, value]) => [
    make("dt", "", named(name)),
    make("dd", "", typeof value === "object" ? JSON.stringify(value) : Number.isInteger(value) || typeof value !== "number" ? String(value) : value.toFixed(4)),
  ]));

  /** Display of each kind of evidence: its texts, the main text of a row, and whether a row is right. */
  const kinds = {
    ranking: {
      noun: "queries", texts: "queries", lead: (row) => row.query, errors: "first document is not relevant", rule: "A ranking is right if its first document is relevant.",
      right: (row) => Boolean(row.best[0]?.[2]),
      show(row, queries, texts, evidence) {
        const documents = texts[evidence.documents];
        const query = queries[row.query];
        const relevant = row.best.filter((item) => item[2]).length;
        return make("details", "sentence",
          make("summary", "", badge(this.right(row), "first is relevant", "first is not relevant"), " ", marked(query), " ",
            soft(`${query.usage}, ${query.subject}; ${relevant} of ${row.best.length} relevant; ${row.query}`)),
          make("ol", "", row.best.map(([name, score, isRelevant]) => make("li", "",
            badge(Boolean(isRelevant), "relevant", "not relevant"), " ", marked(documents[name]), " ",
            soft(`${documents[name].usage}, ${documents[name].pie}, ${documents[name].subject}; score ${score}; ${name}`)))));
      },
    },
    detection: {
      noun: "sentences", texts: "sentences", lead: (row) => row.sentence, errors: "errors", rule: "", right: (row) => row.right,
      show: (row, texts, _, evidence) => make("div", "sentence",
        badge(row.right), " ", marked(texts[row.sentence]), " ",
        soft(`${texts[row.sentence].usage}, ${texts[row.sentence].pie}; ${row.sentence}`),
        make("br"), `Answer: ${row.answer} `, recorded(row, evidence)),
    },
    identification: {
      noun: "originals", texts: "sentences", lead: (row) => row.sentences[0]?.sentence, errors: "errors", rule: "An original is right if all its sentences are.",
      right: (row) => row.sentences.every((item) => item.right !== false),
      show(row, texts, _, evidence) {
        const [first] = row.sentences;
        const right = row.sentences.filter((item) => item.right).length;
        return make("details", "sentence",
          make("summary", "", badge(this.right(row), "all right"), " ", first ? marked(texts[first.sentence]) : row.original, " ",
            soft(`${first ? texts[first.sentence].usage : ""}; ${right} of ${row.sentences.length} right; ${row.original}`)),
          make("ul", "", row.sentences.map((item) => make("li", "",
            badge(item.right), " ",
            soft(texts[item.sentence].variant ? `variant ${texts[item.sentence].variant}: ` : "original: "),
            marked(texts[item.sentence]), make("br"), `Answer: ${item.answer} `, recorded(item, evidence)))));
      },
    },
  };
  const PAGE = 25;

  /** Return items in pages, with filters: the first of `parts` (label and test) is preselected, and PIEs. */
  function paged(items, noun, pieOf, parts, display) {
    const part = make("select", "", parts.map(([label, test]) => make("option", "", `${label} (${items.filter(test).length})`)));
    const pie = make("select", "", make("option", "", "all"), [...new Set(items.map(pieOf))].sort().map((name) => make("option", "", name)));
    const [before, after] = ["Previous", "Next"].map((text) => Object.assign(make("button", "", text), { type: "button" }));
    const status = make("output");
    const list = make("div", "rows");
    let start = 0;
    function draw() {
      const rows = items.filter((row) => parts[part.selectedIndex][1](row) && (pie.selectedIndex === 0 || pieOf(row) === pie.value));
      start = Math.max(0, Math.min(start, rows.length - 1));
      start -= start % PAGE;
      before.disabled = start === 0;
      after.disabled = start + PAGE >= rows.length;
      status.textContent = rows.length ? `${start + 1} to ${Math.min(start + PAGE, rows.length)} of ${rows.length} ${noun}` : `no such ${noun}`;
      list.replaceChildren(...rows.slice(start, start + PAGE).map(display));
    }
    for (const control of [part, pie]) control.addEventListener("change", () => { start = 0; draw(); });
    before.addEventListener("click", () => { start -= PAGE; draw(); });
    after.addEventListener("click", () => { start += PAGE; draw(); });
    draw();
    return [make("div", "pager", make("label", "", "Show ", part), make("label", "", "PIE ", pie), before, after, status), list];
  }

  /** Return the rows of evidence in pages. */
  function pages(evidence, texts) {
    const kind = kinds[evidence.kind];
    const own = texts[evidence[kind.texts]];
    return paged(evidence.rows, kind.noun, (row) => own[kind.lead(row)]?.pie ?? "",
      [[`all ${kind.noun}`, () => true], [kind.errors, (row) => !kind.right(row)]], (row) => kind.show(row, own, texts, evidence));
  }

  const textsOf = async (metric) => Object.fromEntries(await Promise.all(
    Object.entries(metric.texts).map(async ([path, name]) => [path, await load(name)])));

  /** Return the items on which two runs differ, given their metric files and names. */
  async function differences(numbers, names) {
    const metrics = await Promise.all(numbers.map(load));
    const runs = await Promise.all(metrics.map(async ({ evidence, texts }) => {
      const kind = kinds[evidence.kind];
      const known = await textsOf({ texts });
      const own = known[evidence[kind.texts]];
      return { kind, own, known, evidence, rows: new Map(evidence.rows.map((row) => [kind.lead(row), row])) };
    }));
    const [one, other] = runs;
    if (one.kind !== other.kind) throw new Error("These two rows have no items in common.");
    const both = [...one.rows.keys()].filter((id) => other.rows.has(id));
    if (!both.length) throw new Error("These two rows have no items in common.");
    const right = (run, id) => run.kind.right(run.rows.get(id));
    const only = (first, second) => (id) => right(first, id) && !right(second, id);
    return [
      make("h3", "", `${one.kind.noun[0].toUpperCase()}${one.kind.noun.slice(1)} on which they differ`),
      make("p", "soft", `${both.length} ${one.kind.noun} in both. ${one.kind.rule}`),
      ...paged(both, one.kind.noun, (id) => one.own[id]?.pie ?? "", [
        ["all that differ", (id) => right(one, id) !== right(other, id)],
        [`only ${names[0]} is right`, only(one, other)],
        [`only ${names[1]} is right`, only(other, one)],
        ["both are wrong", (id) => !right(one, id) && !right(other, id)],
      ], (id) => make("div", "pair", runs.map((run, place) => make("div", "", make("strong", "", names[place]),
        run.kind.show(run.rows.get(id), run.own, run.known, run.evidence))))),
    ];
  }

  async function describe(number) {
    const metric = await load(number);
    const texts = await textsOf(metric);
    const evidence = metric.evidence;
    const inputs = Object.entries(metric.inputs).filter(([path]) => path !== evidence?.predictions).map(([path, digest]) => file(path, digest));
    const fields = Object.entries(metric.fields).filter(([, value]) => value !== "").map(([name, value]) => `${named(name)}: ${value}`).join(", ");
    const scores = Object.fromEntries(Object.entries(metric.scores).filter(([name]) => !(name in metric.fields)));
    return [
      make("h3", "", "Metric file"), file(metric.path, metric.digest), make("p", "soft", fields),
      make("p", "", "Computed again by ", copyable(make("code", "command", metric.command))),
      folded("Numbers", listed(scores)),
      Object.keys(metric.settings).length ? folded("Settings and weights", listed(metric.settings)) : null,
      evidence ? [make("h3", "", "Predictions"), file(evidence.predictions, metric.inputs[evidence.predictions])] : null,
      folded(evidence ? "Other inputs" : "Inputs", inputs),
      evidence?.recording ? [make("h3", "", "Recorded answers"), file(evidence.recording)] : null,
      evidence ? [make("h3", "", "Sentences"), pages(evidence, texts)] : null,
    ].flat().filter(Boolean);
  }
  /** Fill an element with the details of a metric file. */
  async function fill(element, number, content = describe(number)) {
    element.replaceChildren(make("p", "soft", "Loading …"));
    element.replaceChildren(...(await content.catch((error) => [make("p", "note", error.message)])).flat());
  }
  const single = (cell) => (cell.dataset.metrics.includes(" ") ? "" : cell.dataset.metrics);
  const columnOf = (cell) => taken(cell.parentElement) + width([...cell.parentElement.cells].slice(0, cell.cellIndex));
  const rowName = (cell) => [cell.parentElement.parentElement.querySelector("th[scope=rowgroup]"), ...all("th[scope=row]", cell.parentElement)]
    .map((head) => head ? shownFirst(head).trim() : "").filter(Boolean).join(", ");

  /** Return a choice of a second row of the table, which shows the items on which the two rows differ. */
  function comparison(cell) {
    const others = numbersOf.get(cell.closest("section.table")).filter((other) =>
      single(other) && single(other) !== single(cell) && columnOf(other) === columnOf(cell));
    if (!single(cell) || !others.length) return null;
    const choice = make("select", "", make("option", "", "choose a row"), others.map((other) => make("option", "", rowName(other))));
    const inside = make("div");
    choice.addEventListener("change", () => {
      const other = others[choice.selectedIndex - 1];
      if (!other) return inside.replaceChildren();
      return fill(inside, "", differences([single(cell), single(other)], [rowName(cell), rowName(other)]));
    });
    return make("div", "", make("p", "", make("label", "", `Compare ${rowName(cell)} with `, choice)), inside);
  }

  const traced = (command) => make("p", "trace", "Trace it through the code: ", copyable(make("code", "command", command)));

  /** Open the dialog with a title and content that is not a cell of a table. */
  function open(title, content, trace) {
    get("dialog-title").textContent = title;
    const inside = make("div");
    fill(inside, "", content);
    get("behind").replaceChildren(...(trace ? [traced(trace)] : []), inside);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-compare], [data-open]");
    if (!button) return;
    const names = JSON.parse(button.dataset.names);
    if (button.dataset.open) open(names.join(" = "), describe(button.dataset.open), button.dataset.trace);
    else open(names.join(" and "), differences(button.dataset.compare.split(" "), names));
  });

  /** Return the column headings and row labels of a number. */
  function labelsOf(cell) {
    const row = cell.parentElement;
    const own = [...row.parentElement.rows].filter((other) => !other.querySelector("td"));
    const column = taken(row) + width([...row.cells].slice(0, cell.cellIndex));
    const over = (own.length ? own : [...row.closest("table").tHead.rows]).map((head) =>
      [...head.cells].find((other, place) => {
        const start = width([...head.cells].slice(0, place));
        return start <= column && column < start + other.colSpan;
      }));
    const title = row.parentElement.querySelector("th[scope=rowgroup]");
    return [...new Set([title, ...all("th[scope=row]", row), ...over])].map((head) => head ? shownFirst(head).trim() : "").filter(Boolean);
  }

  function show(cell) {
    const section = cell.closest("section.table");
    const verdict = ["reproduced", "within-sampling-range", "not-reproduced", "not-comparable"].find((name) => cell.classList.contains(name));
    const printed = cell.querySelector("small")?.textContent;
    const ours = [...cell.childNodes].filter((node) => node.nodeName !== "SMALL").map((node) => node.textContent).join("");
    get("dialog-title").textContent = `${section.querySelector("h3").textContent}: ${labelsOf(cell).join(", ")} = ${ours}`;
    const metrics = cell.dataset.metrics.split(" ");
    const parts = [make("p", "", printed ? `Printed: ${printed} ` : null,
      verdict && printed ? make("span", `badge ${verdict}`, verdict.replaceAll("-", " ")) : null, cell.title ? ` ${cell.title}` : ""),
      make("p", "", "Table: ", section.querySelector(".files").cloneNode(true)),
      traced(section.dataset.trace.replace("MEASURE", cell.dataset.measure))];
    parts.push(comparison(cell));
    if (metrics.length === 1) {
      const inside = make("div");
      parts.push(inside);
      fill(inside, metrics[0]);
    } else {
      parts.push(make("p", "", `Computed from ${metrics.length} metric files.`));
      metrics.forEach((number, place) => {
        const inside = make("div");
        const details = folded(`Metric file ${place + 1} of ${metrics.length}`, inside);
        details.addEventListener("toggle", () => { if (details.open && !inside.firstChild) fill(inside, number); });
        details.open = place === 0;
        parts.push(details);
      });
    }
    get("behind").replaceChildren(...parts.filter(Boolean));
    anchor = section.id;
    opened = String(numbersOf.get(section).indexOf(cell));
    address();
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
  get("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { if (!dialog.open) { opened = ""; address(); } });

  go(location.hash);
})();
