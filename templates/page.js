"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  /** An element with a class and children; text becomes text nodes, so nothing of the data is markup. */
  function make(name, className, ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) element.append(child);
    }
    return element;
  }

  // Theme: the system's until the button is pressed. ------------------------------------------------
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

  // Filters ------------------------------------------------------------------------------------------
  function filter() {
    const study = get("study").value;
    const model = get("model").value;
    const verdict = get("verdict").value;
    const notRun = get("notrun").checked;
    const ofStudy = (element) => !study || element.dataset.paper === study;
    let claims = 0;
    let numbers = 0;
    for (const claim of all(".claim")) {
      const ofModel = !model || claim.dataset.models.split(" ").includes(model);
      claim.hidden = !(ofStudy(claim) && ofModel && (!verdict || claim.dataset.printed === verdict));
      claims += !claim.hidden;
    }
    for (const title of all("#claims h3")) {
      title.hidden = !all(`.claim[data-paper="${title.dataset.paper}"]`).some((claim) => !claim.hidden);
    }
    for (const table of all("section.table")) {
      let shown = 0;
      for (const row of all(".list tbody tr", table)) {
        const ofModel = !model || row.dataset.model === model;
        row.hidden = !ofModel || (!notRun && row.dataset.verdict === "not-run");
        shown += !row.hidden;
      }
      for (const note of all(".hidden-rows", table)) note.hidden = notRun || Boolean(model);
      table.hidden = !ofStudy(table) || (Boolean(model) && shown === 0);
      numbers += table.hidden ? 0 : shown;
    }
    for (const figure of all("figure")) figure.hidden = !ofStudy(figure);
    get("shown").textContent = `${claims} claims and ${numbers} numbers shown`;
  }
  for (const id of ["study", "model", "verdict", "notrun"]) get(id).addEventListener("change", filter);
  filter();

  // The way down -------------------------------------------------------------------------------------
  const data = JSON.parse(get("evidence").textContent);
  const marked = (text) => [text.parts[0], text.parts[1] ? make("mark", "", text.parts[1]) : null, text.parts[2]];
  const badge = (right, yes, no) =>
    right === null || right === undefined ? null : make("span", `badge ${right ? "relevant" : "wrong"}`, right ? yes : no);
  const file = (path, digest) =>
    make("p", "file", make("code", "", path), make("br"), make("span", "soft", `SHA-256 ${digest}`));

  function ranking(evidence) {
    const queries = data.texts[evidence.queries];
    const documents = data.texts[evidence.documents];
    return evidence.rows.map((row) => {
      const query = queries[row.query];
      const relevant = row.best.filter((item) => item[2]).length;
      const list = make("ol", "", row.best.map(([name, score, isRelevant]) => make("li", "",
        badge(Boolean(isRelevant), "relevant", "not relevant"), " ", marked(documents[name]), " ",
        make("span", "soft", `${documents[name].usage}, ${documents[name].pie}, ${documents[name].subject}; score ${score}; ${name}`))));
      return make("details", "sentence",
        make("summary", "", marked(query), " ",
          make("span", "soft", `${query.usage}, ${query.subject}; ${relevant} of ${row.best.length} relevant; ${row.query}`)),
        list);
    });
  }

  function detection(evidence) {
    const texts = data.texts[evidence.sentences];
    return [make("ul", "", evidence.rows.map((row) => make("li", "sentence",
      badge(row.right, "right", "wrong"), " ", marked(texts[row.sentence]), " ",
      make("span", "soft", `${texts[row.sentence].usage}, ${texts[row.sentence].pie}; ${row.sentence}`),
      make("br"), `Answer: ${row.answer} `, make("span", "soft", `recorded under ${row.key.slice(0, 12)}…`))))];
  }

  function identification(evidence) {
    const texts = data.texts[evidence.sentences];
    return evidence.rows.map((row) => {
      const right = row.sentences.filter((item) => item.right).length;
      const [first] = row.sentences;
      return make("details", "sentence",
        make("summary", "", first ? marked(texts[first.sentence]) : row.original, " ",
          make("span", "soft", `${first ? texts[first.sentence].usage : ""}; ${right} of ${row.sentences.length} right; ${row.original}`)),
        make("ul", "", row.sentences.map((item) => make("li", "",
          badge(item.right, "right", "wrong"), " ",
          make("span", "soft", texts[item.sentence].variant ? `variant ${texts[item.sentence].variant}: ` : "original: "),
          marked(texts[item.sentence]), make("br"), `Answer: ${item.answer}`))));
    });
  }

  const readers = { ranking, detection, identification };
  const noun = { ranking: "queries", detection: "sentences", identification: "originals" };

  function describe(metric) {
    const fields = Object.entries(metric.fields).map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`);
    const scores = Object.entries(metric.scores)
      .filter(([name]) => !(name in metric.fields))
      .map(([name, value]) => make("li", "", `${name.replaceAll("_", " ")}: ${Number.isInteger(value) ? value : value.toFixed(4)}`));
    const parts = [
      make("h3", "", "Metric file"), file(metric.path, metric.digest), make("p", "soft", fields.join(", ")),
      make("details", "", make("summary", "", "Its numbers"), make("ul", "", scores)),
    ];
    const inputs = Object.entries(metric.inputs)
      .filter(([path]) => !metric.evidence || path !== metric.evidence.predictions)
      .map(([path, digest]) => file(path, digest));
    if (metric.evidence) {
      const evidence = metric.evidence;
      parts.push(make("h3", "", "Predictions"), file(evidence.predictions, metric.inputs[evidence.predictions]));
      parts.push(make("details", "", make("summary", "", "What else it was computed from"), inputs));
      parts.push(make("h3", "", `Sentences (${evidence.rows.length} of ${evidence.of} ${noun[evidence.kind]})`));
      parts.push(...readers[evidence.kind](evidence));
    } else {
      parts.push(make("h3", "", "Computed from"), ...inputs);
    }
    return parts;
  }

  const dialog = get("dialog");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.way");
    if (!button) return;
    const row = button.closest("tr");
    const keys = all("td.key", row).map((cell) => cell.textContent.trim()).filter(Boolean);
    const caption = row.closest("section").querySelector("h3").textContent;
    get("dialog-title").textContent = `${caption}: ${keys.join(", ")} = ${button.textContent}`;
    const metrics = button.dataset.metrics.split(" ").map((number) => data.files[number]);
    const parts = metrics.length === 1 ? describe(metrics[0]) : metrics.map((metric, place) => {
      const details = make("details", "", make("summary", "", metric.path), make("div", "", describe(metric)));
      details.open = place === 0;
      return details;
    });
    get("way").replaceChildren(...parts);
    dialog.showModal();
    dialog.scrollTop = 0;
  });
  get("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
})();
