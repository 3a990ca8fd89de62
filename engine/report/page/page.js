// Draws the page of `hmmjit report` from its data. The document holds only the visible rows: a hundred
// thousand domains open as quickly as ten. Text from files enters as text nodes only.
"use strict";

const byId = id => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node && name !== "role") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// ---------------------------------------------------------------------------------------------
// Numbers, formatted like the tables of a search.

// printf's %.2g
function general(value) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "inf";
  const [digits, power] = value.toExponential(1).split("e"), exponent = Number(power);
  if (exponent >= -4 && exponent < 2) return String(Number(value.toPrecision(2)));
  return digits.replace(/\.0$/, "") + (exponent < 0 ? "e-" : "e+") +
      String(Math.abs(exponent)).padStart(2, "0");
}

// printf's %.1f and %.2f: ties (odd multiples of 1/4 and 1/8) round to the even digit.
function fixed(value, digits) {
  const power = 10 ** digits, half = Math.abs(value * 2 ** (digits + 1) % 2) === 1;
  return (half ? 2 * Math.round(value * power / 2) / power : value).toFixed(digits);
}
// Scores and biases are floats.
const bits = value => fixed(Math.fround(value), 1);

const count = value => value.toLocaleString("en");
const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
const shortened = (text, room) => text.length > room ? `${text.slice(0, room - 1)}…` : text;

// ---------------------------------------------------------------------------------------------
// Lists.

const range = (from, to) => Array.from({length: to - from}, (_, i) => from + i);
// The items whose flag is set.
const flagged = flags => range(0, flags.length).filter(i => flags[i]);
// How often each value is in a list, in the order of their first places.
function tally(list) {
  const counts = new Map();
  for (const value of list) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
// The values of a list of numbers, the most frequent first: [value, how often].
const byFrequency = list => [...tally(list)].sort((a, b) => b[1] - a[1] || a[0] - b[0]);

// ---------------------------------------------------------------------------------------------
// The data: gzip-compressed JSON in base64. Alignments come in parts; a part is unpacked when one of its
// domains is shown.

async function unpack(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

let models, targets, hits, domains, results, partSize;
let alignmentParts = [];
const unpackedParts = new Map();

const numbers = list => Float64Array.from(list, value => value === null ? Infinity : value);

// Converts the number of items per owner to the owner of each item and the first item of each owner.
function owners(counts, total) {
  const owner = new Int32Array(total), first = new Int32Array(counts.length + 1);
  let at = 0;
  for (let i = 0; i < counts.length; ++i) {
    first[i] = at;
    for (let n = 0; n < counts[i]; ++n) owner[at++] = i;
  }
  first[counts.length] = at;
  return [owner, first];
}

async function readData() {
  const data = await unpack(byId("data").textContent);
  ({models, targets, hits, domains} = data);
  partSize = data.part_size;
  models.count = models.name.length;
  targets.count = targets.name.length;
  hits.count = hits.model.length;
  domains.count = domains.number.length;
  for (const column of ["evalue", "score", "bias"]) hits[column] = numbers(hits[column]);
  for (const column of ["c_evalue", "i_evalue", "score", "accuracy"])
    domains[column] = numbers(domains[column]);
  [hits.target, targets.firstHit] = owners(targets.hits, hits.count);
  [domains.hit, hits.firstDomain] = owners(hits.domains, domains.count);
  domains.model = Int32Array.from(domains.hit, hit => hits.model[hit]);
  domains.target = Int32Array.from(domains.hit, hit => hits.target[hit]);
  const lower = (list, i) =>
      `${list.name[i]} ${list.accession[i]} ${list.description[i]}`.toLowerCase();
  models.text = models.name.map((_, i) => lower(models, i));
  targets.text = targets.name.map((_, i) => lower(targets, i));
  // Multiples of the golden angle: neighbouring models get distant hues.
  models.hue = models.name.map((_, i) => Math.floor((i * 137.508) % 360));
  targets.file ??= new Array(targets.count).fill(0);
  targets.text = targets.text.map((text, t) => `${text} ${(data.results[targets.file[t]] ?? "").toLowerCase()}`);
  results = data.results;
  domains.best = bestOfRegions();
  const packed = byId("alignments").textContent.trim();
  if (packed) alignmentParts = packed.split("\n");
}

// Marks the domains that the search kept. If the result lacks this: the included domains that
// --resolve-overlaps keeps, those that share less than half of the shorter envelope with every better one
// kept of another model.
function bestOfRegions() {
  const known = domains.kept ?? new Array(domains.count).fill(null), best = Uint8Array.from(known);
  for (let t = 0; t < targets.count; ++t) {
    if (known[firstDomainOf(t)] !== null) continue;
    const list = domainsOf(t).filter(d => domains.included[d] && hits.included[domains.hit[d]]);
    const chosen = new Map();  // by model, which may have very many domains in a protein
    list.sort((a, b) => domains.i_evalue[a] - domains.i_evalue[b] || domains.score[b] - domains.score[a] ||
                        domains.model[a] - domains.model[b]);
    const size = d => domains.env_to[d] - domains.env_from[d] + 1;
    const compete = (a, b) => 2 * (Math.min(domains.env_to[a], domains.env_to[b]) -
        Math.max(domains.env_from[a], domains.env_from[b]) + 1) >= Math.min(size(a), size(b));
    for (const d of list) {
      const model = domains.model[d];
      if ([...chosen].some(([other, theirs]) => other !== model && theirs.some(o => compete(d, o)))) continue;
      if (!chosen.has(model)) chosen.set(model, []);
      chosen.get(model).push(d);
      best[d] = 1;
    }
  }
  return best;
}

// {model, match, target, pp} of a domain; null: no alignment.
async function alignmentOf(domain) {
  const part = Math.floor(domain / partSize);
  if (part >= alignmentParts.length) return null;
  if (!unpackedParts.has(part)) unpackedParts.set(part, unpack(alignmentParts[part]));
  const lines = (await unpackedParts.get(part))[domain % partSize];
  return lines ? {model: lines[0], match: lines[1], target: lines[2], pp: lines[3]} : null;
}

// Links from names and accessions to public databases.
const kModelLinks = [
  [/^(PF\d{5})/, "pfam"], [/^((?:TIGR|NF)\d{5,6})/, "ncbifam"], [/^(SM\d{5})/, "smart"],
  [/^(PTHR\d{5})/, "panther"], [/^(PIRSF\d{6})/, "pirsf"], [/^(cd\d{5})/, "cdd"],
].map(([pattern, place]) => [pattern, "InterPro", `www.ebi.ac.uk/interpro/entry/${place}/*/`]);
const kUniProt = "[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2}";
const kUniProtName = new RegExp(`^(?:(?:sp|tr)\\|)?(${kUniProt})(?:[|.-].*)?$`);
const kTargetLinks = [
  [kUniProtName, "UniProt", "www.uniprot.org/uniprotkb/*"],
  [/^(UniRef(?:100|90|50)_\S+)$/, "UniRef", "www.uniprot.org/uniref/*"],
  [/^(?:ref\|)?([ANYXW]P_\d+(?:\.\d+)?)\|?$/, "NCBI", "www.ncbi.nlm.nih.gov/protein/*"],
];

// The database of an item of `list` and its address there; null: none is known.
function linkOf(list, item, links) {
  for (const text of [list.accession[item], list.name[item]]) {
    for (const [pattern, database, address] of links) {
      const found = pattern.exec(text);
      if (found) return [database, `https://${address.replace("*", encodeURIComponent(found[1]))}`];
    }
  }
  return null;
}
const modelLink = model => linkOf(models, model, kModelLinks);
const targetLink = target => linkOf(targets, target, kTargetLinks);

function databaseLink(name, link, text) {
  return element("a", {href: link[1], target: "_blank", rel: "noopener noreferrer",
                       title: `${name} in ${link[0]}`, "aria-label": `${name} in ${link[0]}`}, text);
}
// "name UniProt", with a link on the database.
const named = (name, link) => link ? [name, " ", databaseLink(name, link, link[0])] : [name];
// The same for tables, which have less room: an arrow before the name.
const arrowed = (name, link) => link ? [databaseLink(name, link, "\u2197"), ` ${name}`] : [name];

// A shorter name: the entry name of a UniProt identifier.
const shortName = target => targets.name[target].replace(/^(?:sp|tr)\|[^|]+\|/, "");

function swatch(model) {
  const node = element("span", {className: "swatch"});
  node.style.setProperty("--hue", models.hue[model]);
  return node;
}

// ---------------------------------------------------------------------------------------------
// A list of any length; only rows in view are in the document. `heights`: the height of every row, or the
// offsets of all rows and of the end, in pixels. Browsers cut elements off at about 17 million pixels: a
// longer list gets a shorter element and scales scrolling.

const kTallest = 15e6, kMargin = 300;

class VirtualList {
  constructor(scroller, draw, fixedHead = null) {
    Object.assign(this, {scroller, draw, fixedHead});
    this.rows = new Map();
    this.length = 0;
    this.body = element("div", {className: "rows", role: "presentation"});
    scroller.append(this.body);
    scroller.addEventListener("scroll", () => this.update(), {passive: true});
    new ResizeObserver(() => this.update()).observe(scroller);
  }

  show(length, heights) {
    this.length = length;
    this.heights = heights;
    this.total = this.offset(length);
    this.body.style.height = `${Math.min(this.total, kTallest)}px`;
    this.redraw();
  }

  offset(i) { return typeof this.heights === "number" ? i * this.heights : this.heights[i]; }

  // The row at a position in pixels.
  at(position) {
    if (typeof this.heights === "number") return Math.floor(position / this.heights);
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.heights[middle + 1] <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  view() { return this.scroller.clientHeight - (this.fixedHead ? this.fixedHead.offsetHeight : 0); }
  // Pixels of the whole list per pixel of the scroll bar.
  scale() {
    if (this.total <= kTallest) return 1;
    return (this.total - this.view()) / Math.max(1, kTallest - this.view());
  }

  update() {
    if (this.scroller.offsetParent === null && !this.printing) return;
    const top = this.scroller.scrollTop, position = top * this.scale();
    const first = this.printing ? 0 : Math.max(0, this.at(position - kMargin));
    const last = this.printing ? Math.min(this.length, kPrinted) :
                                 Math.min(this.length, this.at(position + this.view() + kMargin) + 1);
    for (const [i, row] of this.rows) {
      if (i >= first && i < last) continue;
      row.remove();
      this.rows.delete(i);
    }
    let next = this.body.firstChild;
    for (let i = first; i < last; ++i) {
      let row = this.rows.get(i);
      if (row) {
        next = row.nextSibling;
      } else {
        row = this.draw(i);
        this.rows.set(i, row);
        this.body.insertBefore(row, next);
      }
      row.style.transform = `translateY(${this.offset(i) - position + top}px)`;
    }
  }

  // Scrolls row i into view.
  reveal(i) {
    const scale = this.scale(), position = this.scroller.scrollTop * scale;
    if (this.offset(i) < position) {
      this.scroller.scrollTop = this.offset(i) / scale;
    } else if (this.offset(i + 1) > position + this.view()) {
      this.scroller.scrollTop = (this.offset(i + 1) - this.view()) / scale;
    }
    this.update();
  }

  redraw() {
    this.rows.clear();
    this.body.replaceChildren();
    this.update();
  }
}

// Most rows in print; the count beside them gives the total.
const kPrinted = 2000;

// ---------------------------------------------------------------------------------------------
// A table. Column heads sort it, arrow keys move through it, Enter opens a row.

class Table {
  constructor(panel, label, columns, open, describe) {
    Object.assign(this, {panel, columns, open, describe});
    this.order = this.shown = [];
    this.active = -1;
    const head = element("div", {className: "row head", role: "row", "aria-rowindex": 1});
    columns.forEach((column, i) => {
      const button = element("button", {type: "button", title: column.help ?? ""}, column.title);
      button.addEventListener("click", () => this.sort(i));
      head.append(element("div", {role: "columnheader", className: this.classes(column)}, button));
    });
    this.head = head;
    this.scroller = element("div", {className: "scroller grid", tabIndex: 0, role: "grid",
                                    "aria-label": label, "aria-colcount": columns.length}, head);
    panel.append(this.scroller);
    this.list = new VirtualList(this.scroller, i => this.drawRow(i), head);
    this.scroller.addEventListener("keydown", event => this.key(event));
    this.widths();
    for (const query of [kNarrow, kMiddle])
      query.addEventListener("change", () => { this.widths(); this.list.redraw(); });
  }

  classes(column) { return column.number ? "n" : ""; }
  visible() {
    return this.columns.filter(column => !(kMiddle.matches && column.wide) &&
                                         !(kNarrow.matches && column.middle));
  }

  widths() {
    const visible = this.visible();
    const width = column => kNarrow.matches ? column.narrow ?? column.width : column.width;
    this.template = visible.map(column => column.grow ? `minmax(${width(column)}px, ${column.grow}fr)` :
                                                        `${width(column)}px`).join(" ");
    const least = visible.reduce((sum, column) => sum + width(column), kNarrow.matches ? 16 : 32);
    this.head.style.gridTemplateColumns = this.template;
    this.head.style.width = this.list.body.style.width = `max(100%, ${least}px)`;
    this.columns.forEach((column, i) => { this.head.children[i].hidden = !visible.includes(column); });
  }

  drawRow(i) {
    const item = this.shown[i];
    const row = element("div", {className: "row", role: "row", id: `${this.panel.id}-row-${i}`,
                                "aria-rowindex": i + 2});
    row.style.gridTemplateColumns = this.template;
    if (this.weak && this.weak(item)) row.classList.add("weak");
    if (i === this.active) row.classList.add("active");
    for (const column of this.visible()) {
      const text = column.text(item);
      const cell = element("div", {role: "gridcell", className: this.classes(column), title: text});
      cell.append(...(column.cell ? column.cell(item, text) : [text]));
      row.append(cell);
    }
    row.addEventListener("click", event => {
      if (event.target.closest("a")) return;
      this.activate(i);
      this.open(item, i);
    });
    return row;
  }

  // `keep[i]`: whether item i is shown.
  fill(total, keep) {
    this.keep = keep;
    if (this.order.length !== total) this.order = range(0, total);
    this.shown = this.order.filter(item => keep[item]);
    this.scroller.setAttribute("aria-rowcount", this.shown.length + 1);
    this.active = -1;
    this.scroller.removeAttribute("aria-activedescendant");
    this.list.show(this.shown.length, 27);
  }

  sort(index) {
    const column = this.columns[index], headers = [...this.head.children];
    const before = headers[index].getAttribute("aria-sort");
    const down = before ? before === "ascending" : Boolean(column.descending);
    headers.forEach(header => header.removeAttribute("aria-sort"));
    headers[index].setAttribute("aria-sort", down ? "descending" : "ascending");
    const length = this.order.length, sign = down ? -1 : 1;
    const keys = range(0, length).map(column.value);
    this.order = range(0, length).sort((a, b) => keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b);
    this.scroller.scrollTop = 0;
    this.fill(length, this.keep);
  }

  activate(i) {
    this.list.rows.get(this.active)?.classList.remove("active");
    this.active = i;
    this.list.reveal(i);
    const row = this.list.rows.get(i);
    row.classList.add("active");
    this.scroller.setAttribute("aria-activedescendant", row.id);
  }

  key(event) {
    if (event.target !== this.scroller || event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.list.view() / 27) - 1), last = this.shown.length - 1;
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (last < 0) return;
    if (event.key in steps) {
      event.preventDefault();
      this.activate(Math.min(last, Math.max(0, this.active < 0 ? (event.key === "End" ? last : 0) :
                                                                  this.active + steps[event.key])));
    } else if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault();  // else it also presses the button that gets the focus
      this.open(this.shown[this.active], this.active);
    }
  }
}

// Narrower windows hide columns: below kMiddle those marked `wide`, below kNarrow those marked `middle`.
const kNarrow = matchMedia("(max-width: 40rem)"), kMiddle = matchMedia("(max-width: 70rem)");

// ---------------------------------------------------------------------------------------------
// The filter: one set of domains, hits, sequences and models for all views.

const filter = {words: [], model: -1, evalue: Infinity, included: false, best: false, empty: false, result: -1};
const kept = {};

function applyFilter() {
  const {words, model, evalue, included, best, result} = filter;
  kept.domains = new Uint8Array(domains.count);
  kept.hits = new Uint8Array(hits.count);
  kept.targets = new Uint8Array(targets.count);
  kept.models = new Uint8Array(models.count);
  const inModel = words.map(word => models.text.map(text => text.includes(word)));
  const inTarget = words.map(word => targets.text.map(text => text.includes(word)));
  // A hit without a reported domain has no domain E-value: it passes unless these filters are set.
  const bare = evalue === Infinity && !best;
  const counts = {domains: 0, hits: 0, targets: 0, models: 0};
  for (let hit = 0; hit < hits.count; ++hit) {
    const m = hits.model[hit], t = hits.target[hit];
    if ((model >= 0 && m !== model) || (result >= 0 && targets.file[t] !== result)) continue;
    if (!words.every((_, w) => inModel[w][m] || inTarget[w][t])) continue;
    const from = hits.firstDomain[hit], to = hits.firstDomain[hit + 1];
    let keep = from === to && bare && !(included && !hits.included[hit]);
    for (let d = from; d < to; ++d) {
      if (domains.i_evalue[d] > evalue || (included && !domains.included[d]) || (best && !domains.best[d]))
        continue;
      kept.domains[d] = 1;
      ++counts.domains;
      keep = true;
    }
    if (!keep) continue;
    kept.hits[hit] = 1;
    ++counts.hits;
    if (!kept.targets[t]) ++counts.targets;
    kept.targets[t] = 1;
    if (!kept.models[m]) ++counts.models;
    kept.models[m] = 1;
  }
  if (filter.empty && model < 0) {
    for (let m = 0; m < models.count; ++m) {
      if (kept.models[m] || !words.every((_, w) => inModel[w][m])) continue;
      kept.models[m] = 1;
      ++counts.models;
    }
  }
  const of = (n, total, noun) => n === total ? counted(total, noun) :
                                               `${count(n)} of ${counted(total, noun)}`;
  const all = counts.domains === domains.count && counts.targets === targets.count &&
      counts.models === modelsWithHits();
  byId("counts").textContent = (all ? "" : "Shown: ") +
      [of(counts.domains, domains.count, "domain"), of(counts.targets, targets.count, "sequence"),
       of(counts.models, modelsWithHits(), "model") + (modelsWithHits() < models.count ? " with hits" : "")].join(", ") +
      (counts.targets + counts.models === 0 && !all ? ". Nothing matches the filter." : ".");
  const chip = byId("model-chip");
  chip.hidden = model < 0;
  if (model >= 0) chip.firstElementChild.textContent = models.name[model] + " ";
  stale = new Set(Object.keys(views));
  drawView();
}

const modelsWithHits = () => filter.empty ? models.count : new Set(hits.model).size;

function chooseModel(model) {
  filter.model = model;
  applyFilter();
}

function readFilter() {
  filter.words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = byId("evalue").value.trim(), value = Number(text);
  const usable = text === "" || !Number.isNaN(value);
  byId("evalue").setAttribute("aria-invalid", String(!usable));
  filter.evalue = text === "" || !usable ? Infinity : value;
  for (const name of ["included", "best", "empty"]) filter[name] = byId(name).checked;
  filter.result = Number(byId("result").value);
  applyFilter();
}

// ---------------------------------------------------------------------------------------------
// Views. One is shown at a time, and drawn when shown.

const views = {overview: drawOverview, models: drawModels, proteins: drawProteins,
               domains: drawDomains, stack: drawStack};
let stale = new Set(), current = "overview";
let modelTable, domainTable, proteinList, stackList;

function drawView() {
  if (!domains || !stale.has(current)) return;
  stale.delete(current);
  views[current]();
}

function showView(name, focus) {
  current = name;
  for (const view of Object.keys(views)) {
    const tab = byId(`tab-${view}`), shown = view === name;
    tab.setAttribute("aria-selected", String(shown));
    tab.tabIndex = shown ? 0 : -1;
    byId(view).hidden = !shown;
    if (shown && focus) tab.focus();
  }
  try {
    history.replaceState(null, "", `#${name}`);
  } catch { /* a frame without an address */ }
  drawView();
  for (const list of [modelTable?.list, domainTable?.list, proteinList, stackList]) list?.update();
}

// ----- models

function makeModels() {
  const text = column => i => models[column][i];
  const integer = (title, column, help, more = {}) => ({
    title, help, number: true, width: 78, descending: true, value: i => models[column][i],
    text: i => String(models[column][i]), ...more});
  const columns = [
    {title: "model", width: 150, narrow: 108, grow: 2, value: text("name"), text: text("name"),
     cell: (i, name) => [swatch(i), name]},
    {title: "accession", width: 130, narrow: 106, value: text("accession"), text: text("accession"),
     cell: (i, accession) => arrowed(accession, modelLink(i))},
    {title: "description", width: 180, grow: 4, middle: true, value: text("description"), text: text("description")},
    integer("length", "length", "match positions", {middle: true}),
    integer("hits reported", "reported", "hits that meet the reporting threshold", {width: 90, narrow: 80}),
    integer("hits included", "included", "hits that meet the inclusion threshold", {width: 90, narrow: 80}),
  ];
  if (models.targets) {
    for (const [title, column] of [["searched", "targets"], ["passed MSV", "msv"], ["bias", "bias"],
                                   ["Viterbi", "viterbi"], ["Forward", "forward"]])
      columns.push(integer(title, column, "sequences (nhmmer: residues) that passed this filter", {wide: true, width: 84}));
  }
  modelTable = new Table(byId("models"), "Models", columns, model => {
    chooseModel(model);
    showView("domains", true);
  });
}

function drawModels() {
  if (!modelTable) makeModels();
  modelTable.fill(models.count, kept.models);
}

// ----- domains

function domainTitle(d) {
  const m = domains.model[d];
  return `${models.name[m]} ${domains.env_from[d]}-${domains.env_to[d]} (model ${domains.hmm_from[d]}-` +
      `${domains.hmm_to[d]} of ${models.length[m]}), i-Evalue ${general(domains.i_evalue[d])}, ` +
      `${bits(domains.score[d])} bits${domains.included[d] ? "" : ", below the inclusion threshold"}`;
}

const kDomainColumns = [
  {title: "sequence", width: 130, narrow: 122, grow: 3, value: d => targets.name[domains.target[d]],
   cell: (d, name) => arrowed(kMiddle.matches ? shortName(domains.target[d]) : name, targetLink(domains.target[d]))},
  {title: "model", width: 112, narrow: 104, grow: 1, value: d => models.name[domains.model[d]],
   cell: (d, name) => [swatch(domains.model[d]), name]},
  {title: "E-value", help: "of the whole hit", number: true, width: 84, middle: true,
   value: d => hits.evalue[domains.hit[d]], show: general},
  {title: "score", help: "of the whole hit, bits", number: true, width: 66, wide: true,
   descending: true, value: d => hits.score[domains.hit[d]], show: bits},
  {title: "bias", help: "of the whole hit, bits", number: true, width: 58, wide: true,
   value: d => hits.bias[domains.hit[d]], show: bits},
  {title: "domain", help: "number of the domain among those of this sequence and model", number: true,
   width: 74, wide: true, value: d => domains.number[d]},
  {title: "c-Evalue", help: "conditional E-value of the domain", number: true, width: 90, wide: true,
   value: d => domains.c_evalue[d], show: general},
  {title: "i-Evalue", help: "independent E-value of the domain", number: true, width: 84, narrow: 78,
   value: d => domains.i_evalue[d], show: general},
  {title: "domain score", help: "bits", number: true, width: 64, narrow: 60, descending: true,
   value: d => domains.score[d], show: bits},
  ...[["on the model", "hmm", "first and last position of the model"],
      ["aligned", "ali", "first and last aligned residue"],
      ["envelope", "env", "first and last residue of the envelope"]].map(([title, of, help]) => ({
    title, help, number: true, width: 96, [of === "env" ? "middle" : "wide"]: true, value: d => domains[`${of}_from`][d],
    show: (from, d) => `${from}\u2013${domains[`${of}_to`][d]}`})),
  {title: "accuracy", help: "mean posterior probability of the aligned residues", number: true, width: 84,
   wide: true, descending: true, value: d => domains.accuracy[d], show: value => fixed(value, 2)},
];
for (const column of kDomainColumns)
  column.text = d => column.show ? column.show(column.value(d), d) : String(column.value(d));

function drawDomains() {
  if (!domainTable) {
    domainTable = new Table(byId("domains"), "Domains", kDomainColumns,
                            (domain, i) => openDetail(domain, domainTable.shown, i));
    domainTable.weak = domain => !domains.included[domain];
  }
  domainTable.fill(domains.count, kept.domains);
}

// ----- sequences

const kLane = 20;
let shownProteins = [], longest = 1, laneOf, lanesOf, undrawnOf;

// Overlapping boxes go on different lanes, at most this many. A sequence that needs more shows as many of its
// best domains as fit, and a line with the number of the others.
const kMostLanes = 40;

// Gives each domain of `list`, sorted by start, the first lane on which it overlaps no other. Returns the
// number of lanes; stops at the first domain for which they do not suffice.
function layOut(list) {
  const ends = [];  // the last residue on each lane
  for (const d of list) {
    let lane = ends.findIndex(end => end < domains.env_from[d]);
    if (lane < 0) lane = ends.length;
    if (lane === kMostLanes) return kMostLanes + 1;
    ends[lane] = domains.env_to[d];
    laneOf[d] = lane;
  }
  return ends.length;
}

function assignLanes() {
  laneOf = new Int32Array(domains.count);
  lanesOf = new Int32Array(targets.count);
  undrawnOf = new Int32Array(targets.count);
  const byStart = (a, b) => domains.env_from[a] - domains.env_from[b] || a - b;
  for (let t = 0; t < targets.count; ++t) {
    longest = Math.max(longest, targets.length[t]);
    const list = domainsOf(t).sort(byStart);
    let lanes = layOut(list);
    if (lanes > kMostLanes) {
      const best = Int32Array.from(list).sort((a, b) => domains.i_evalue[a] - domains.i_evalue[b] || a - b);
      const take = n => best.slice(0, n).sort(byStart);
      let low = kMostLanes, high = list.length;  // `low` domains fit, `high` do not
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (layOut(take(middle)) <= kMostLanes) low = middle;
        else high = middle;
      }
      lanes = layOut(take(low));
      for (const d of best.subarray(low)) laneOf[d] = -1;  // clears the lane of an earlier attempt
      undrawnOf[t] = list.length - low;
    }
    lanesOf[t] = Math.max(1, lanes);
  }
}
const firstDomainOf = target => hits.firstDomain[targets.firstHit[target]];
const domainsOf = target => range(firstDomainOf(target), firstDomainOf(target + 1));
const hitsOf = target => range(targets.firstHit[target], targets.firstHit[target + 1]);
const bestEvalue = target => hitsOf(target).reduce((best, hit) => Math.min(best, hits.evalue[hit]), Infinity);
const bestScore = target => hitsOf(target).reduce((best, hit) => Math.max(best, hits.score[hit]), -Infinity);

const kProteinOrders = {
  evalue: t => t,  // the order of the data
  score: t => -bestScore(t),
  domains: t => firstDomainOf(t) - firstDomainOf(t + 1),
  length: t => -targets.length[t],
  name: t => targets.name[t],
  index: t => targets.index[t],
};

function tickStep(length, most) {
  const rough = Math.max(1, length / most), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough);
}

// The last residue of a sequence's axis.
const axisEnd = target => byId("protein-scale").value === "common" ? longest : targets.length[target];

// Models with boxes too small for a name: [model, boxes].
function modelsWithoutRoom(target) {
  const room = (proteinList.scroller.clientWidth - 32) / axisEnd(target);  // pixels of a residue
  const nameless = domainsOf(target).filter(d => laneOf[d] >= 0 && kept.domains[d] && !nameFits(d, room));
  return tally(nameless.map(d => domains.model[d]));
}
const nameFits = (d, room) =>
    room * (domains.env_to[d] - domains.env_from[d] + 1) > 7 * models.name[domains.model[d]].length + 4;

function drawProtein(i) {
  const t = shownProteins[i], length = targets.length[t];
  const end = axisEnd(t), percent = x => `${100 * x / end}%`;
  const room = (proteinList.scroller.clientWidth - 32) / end;  // pixels of a residue
  const row = element("div", {className: "protein", role: "listitem", "aria-posinset": i + 1,
                              "aria-setsize": shownProteins.length});
  row.append(
      element("p", {}, element("b", {}, targets.name[t]), " ",
              ...named(targets.accession[t], targetLink(t)), " ",
              ...(results.length > 1 ? [results[targets.file[t]], " "] : []),
              saveButton(() => proteinPicture(t), targets.name[t])),
      element("p", {title: targets.description[t]},
              `${counted(length, "residue")}, E-value ${general(bestEvalue(t))}, ${bits(bestScore(t))} bits `,
              element("span", {className: "dim"}, targets.description[t])));
  const track = element("div", {className: "track"});
  track.style.height = `${lanesOf[t] * kLane}px`;
  const backbone = element("div", {className: "backbone"});
  backbone.style.width = percent(length);
  track.append(backbone);
  for (const d of domainsOf(t)) {
    if (laneOf[d] < 0) continue;
    const from = domains.env_from[d], to = domains.env_to[d], title = domainTitle(d);
    const box = element("button", {type: "button", className: "box", title, "aria-label": title},
                        nameFits(d, room) ? models.name[domains.model[d]] : "");
    if (!domains.included[d]) box.classList.add("low");
    if (!kept.domains[d]) box.classList.add("other");
    box.style.setProperty("--hue", models.hue[domains.model[d]]);
    box.style.left = percent(from - 1);
    box.style.width = percent(to - from + 1);
    box.style.top = `${laneOf[d] * kLane}px`;
    box.addEventListener("click", () => openDetail(d, shownDomainsOf(t), null));
    track.append(box);
  }
  const axis = element("div", {className: "axis-labels", "aria-hidden": "true"});
  const step = tickStep(end, Math.max(2, proteinList.scroller.clientWidth / 90));
  for (let x = 0; x < end - step / 2; x += step) {
    const label = element("span", {}, String(x === 0 ? 1 : x));
    label.style.left = percent(x);
    axis.append(label);
  }
  const last = element("span", {}, String(end));
  last.style.left = "100%";
  axis.append(last);
  row.append(track, axis);
  const names = modelsWithoutRoom(t);
  if (names.size > 0) {
    const line = element("p", {className: "names", "aria-hidden": "true"});  // each box already announces its name
    for (const [model, boxes] of names) {
      line.append(element("span", {}, swatch(model),
                          models.name[model] + (boxes > 1 ? ` \u00d7${count(boxes)}` : "")));
    }
    row.append(line);
  }
  if (undrawnOf[t] > 0) {
    const all = element("button", {type: "button"}, "show all");
    all.addEventListener("click", () => {
      byId("filter").value = targets.name[t];
      readFilter();
      showView("domains", true);
    });
    row.append(element("p", {className: "more"},
                       all, ` ${counted(undrawnOf[t], "domain")} of higher E-value not drawn`));
  }
  return row;
}

const shownDomainsOf = target =>
    domainsOf(target).sort((a, b) => domains.env_from[a] - domains.env_from[b]);

function drawProteins() {
  if (!proteinList) {
    proteinList = new VirtualList(byId("protein-list"), drawProtein);
    assignLanes();
  }
  const order = kProteinOrders[byId("protein-order").value];
  const keys = new Array(targets.count);
  shownProteins = flagged(kept.targets);
  for (const t of shownProteins) keys[t] = order(t);
  shownProteins.sort((a, b) => keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b);
  const heights = new Float64Array(shownProteins.length + 1);
  for (let i = 0; i < shownProteins.length; ++i) {
    const t = shownProteins[i];
    heights[i + 1] = heights[i] + 66 + kLane * lanesOf[t] + (modelsWithoutRoom(t).size > 0 ? 20 : 0) +
        (undrawnOf[t] > 0 ? 26 : 0);
  }
  const legend = byId("legend");
  legend.replaceChildren(...shownModels().slice(0, 8).map(([model, n]) => {
    const button = element("button", {type: "button", title: `show only ${models.name[model]}`},
                           swatch(model), `${models.name[model]} ${counted(n, "domain")}`);
    button.addEventListener("click", () => chooseModel(model));
    return button;
  }));
  proteinList.show(shownProteins.length, heights);
}

// The models with shown domains, those with the most first: [model, domains].
const shownModels = () => byFrequency(flagged(kept.domains).map(d => domains.model[d]));

// ----- overview

const kSvg = "http://www.w3.org/2000/svg";
function svg(tag, attributes, ...children) {
  const node = document.createElementNS(kSvg, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function figure(title, note, picture) {
  byId("figures").append(element("figure", {}, element("figcaption", {}, title, " ", saveButton(() => picture, title),
                                 element("small", {}, note)), picture));
}

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], {type}));
  element("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// A picture as a self-contained file, with the values of the style sheet in its elements.
function svgText(picture) {
  const copy = picture.cloneNode(true), [, , width, height] = picture.getAttribute("viewBox").split(" ");
  for (const [name, value] of Object.entries({xmlns: kSvg, width, height})) copy.setAttribute(name, value);
  const from = [...picture.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of ["fill", "stroke", "stroke-dasharray", "font-family", "font-size"])
      node.setAttribute(name, style.getPropertyValue(name));
  });
  return new XMLSerializer().serializeToString(copy);
}

// Pressing the button calls `picture`.
function saveButton(picture, name) {
  const button = element("button", {type: "button", className: "save", title: `Save ${name} as SVG`}, "SVG");
  button.addEventListener("click", () => {
    const node = picture(), shown = node.isConnected;
    if (!shown) document.body.append(node);  // only elements in the document have styles
    download(`${name.replace(/[^A-Za-z0-9._-]+/g, "_")}.svg`, "image/svg+xml", svgText(node));
    if (!shown) node.remove();
  });
  return button;
}

// The domains of a sequence, drawn like in the list of sequences.
function proteinPicture(t) {
  const width = 800, room = (width - 20) / targets.length[t], base = 24 + lanesOf[t] * kLane;
  const x = residue => 10 + (residue - 1) * room;
  const picture = svg("svg", {viewBox: `0 0 ${width} ${base + 20}`, class: "saved"},
      svg("text", {x: 10, y: 14}, targets.name[t]),
      svg("rect", {x: 10, width: width - 20, y: 33, height: 3, class: "line"}));
  for (const d of shownDomainsOf(t)) {
    if (laneOf[d] < 0 || !kept.domains[d]) continue;
    const wide = (domains.env_to[d] - domains.env_from[d] + 1) * room, y = 24 + laneOf[d] * kLane;
    const box = svg("rect", {x: x(domains.env_from[d]), y, width: wide, height: 18, rx: 5, class: "domain"});
    box.style.setProperty("--hue", models.hue[domains.model[d]]);
    picture.append(svg("g", {}, svg("title", {}, domainTitle(d)), box));
    if (nameFits(d, room))
      picture.append(svg("text", {x: x(domains.env_from[d]) + 4, y: y + 13}, models.name[domains.model[d]]));
  }
  for (const residue of [1, targets.length[t]])
    picture.append(svg("text", {x: x(residue), y: base + 14, "text-anchor": residue === 1 ? "start" : "end"},
                       String(residue)));
  return picture;
}

const kNotIncluded = "reported only";
function keyOfColours(threshold = null) {
  const keys = [["", "included"], ["low", kNotIncluded]];
  if (threshold !== null) keys.push(["line", "inclusion threshold"]);
  return element("span", {className: "keys"}, ...keys.map(
      ([kind, text]) => element("span", {}, element("span", {className: `key ${kind}`}), `${text} `)));
}

// bins: [{included, low, title}]; ticks: [[bin position, label]]; threshold: bin position or null.
function histogram(label, bins, ticks, threshold) {
  const width = figureWidth(), height = 170, left = 42, bottom = 22, top = 14;
  const most = Math.max(1, ...bins.map(bin => bin.included + bin.low));
  const step = (width - left - 6) / bins.length, scale = (height - bottom - top) / most;
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
  const base = height - bottom;
  for (const value of [0, most / 2, most].filter(Number.isInteger)) {
    picture.append(svg("text", {x: left - 4, y: base - value * scale + 4, "text-anchor": "end"}, count(value)));
    picture.append(svg("line", {x1: left, x2: width - 6, y1: base - value * scale, y2: base - value * scale,
                                class: "axis", "stroke-opacity": value === 0 ? 1 : .2}));
  }
  bins.forEach((bin, i) => {
    const x = left + i * step, wide = Math.max(1, step - 1);
    const group = svg("g", {}, svg("title", {}, bin.title));
    group.append(svg("rect", {x, width: wide, y: base - bin.included * scale, height: bin.included * scale, class: "bar"}));
    group.append(svg("rect", {x, width: wide, y: base - (bin.included + bin.low) * scale,
                              height: bin.low * scale, class: "bar low"}));
    picture.append(group);
  });
  for (const [position, text] of ticks) {
    const x = left + position * step;
    const anchor = x < left + 15 ? "start" : x > width - 20 ? "end" : "middle";
    picture.append(svg("text", {x, y: height - 6, "text-anchor": anchor}, text));
    picture.append(svg("line", {x1: x, x2: x, y1: base, y2: base + 4, class: "axis"}));
  }
  if (threshold !== null) {
    const x = left + threshold * step;
    picture.append(svg("line", {x1: x, x2: x, y1: top - 8, y2: base, class: "threshold"}));
  }
  return picture;
}

function figureWidth() {
  const all = byId("figures").clientWidth, inRow = Math.max(1, Math.floor(all / 440));
  return Math.max(240, Math.min(620, all / inRow - 30));
}

// Counts values in bins of equal width, included ones separately. `show` formats a bound.
function binned(values, included, low, high, bins, show) {
  const out = Array.from({length: bins}, () => ({included: 0, low: 0}));
  const width = (high - low) / bins || 1;
  for (let i = 0; i < values.length; ++i) {
    const bin = Math.min(bins - 1, Math.max(0, Math.floor((values[i] - low) / width)));
    if (included[i]) ++out[bin].included;
    else ++out[bin].low;
  }
  out.forEach((bin, i) => {
    bin.title = `${show(low + i * width)} to ${show(low + (i + 1) * width)}: ` +
        `${count(bin.included)} included, ${count(bin.low)} ${kNotIncluded}`;
  });
  return out;
}

// Ticks at round values between low and high, as bin positions.
function ticksOf(low, high, bins, show, most = 6) {
  const step = tickStep(high - low, most), ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step)
    ticks.push([(value - low) / (high - low) * bins, show(value)]);
  return ticks;
}

// A value between the included and the other values; null if thresholds of several models leave none.
function boundary(values, included, up) {
  const sign = up ? 1 : -1;
  let inside = Infinity, outside = -Infinity;
  values.forEach((value, i) => {
    if (included[i]) inside = Math.min(inside, sign * value);
    else outside = Math.max(outside, sign * value);
  });
  return Number.isFinite(inside - outside) && inside >= outside ? sign * (inside + outside) / 2 : null;
}

function drawOverview() {
  const figures = byId("figures");
  figures.replaceChildren();
  const shown = flagged(kept.hits);
  if (shown.length === 0) {
    figures.append(element("p", {}, hits.count === 0 ? "The search reported no hit." :
                                                       "Nothing matches the filter."));
    return;
  }
  const included = shown.map(hit => hits.included[hit]);
  const spread = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);

  // Hits of each model.
  const perModel = new Map();
  shown.forEach((hit, i) => {
    const entry = perModel.get(hits.model[hit]) ?? {all: 0, included: 0};
    ++entry.all;
    entry.included += included[i] ? 1 : 0;
    perModel.set(hits.model[hit], entry);
  });
  const rows = [...perModel].sort((a, b) => b[1].all - a[1].all || a[0] - b[0]);
  const top = rows.slice(0, 12);
  const width = figureWidth();
  const bars = svg("svg", {viewBox: `0 0 ${width} ${top.length * 17 + 4}`, role: "img",
                           "aria-label": "Hits of the models with the most"});
  const scale = (width - 190) / top[0][1].all;
  top.forEach(([model, n], i) => {
    const y = i * 17 + 2, name = models.name[model];
    const group = svg("g", {class: "pick"}, svg("title", {}, `${name}: ${counted(n.all, "hit")}, ` +
        `${count(n.included)} included; a click shows this model only`));
    group.append(svg("text", {x: 118, y: y + 11, "text-anchor": "end"}, shortened(name, 18)));
    group.append(svg("rect", {x: 122, y, width: n.included * scale, height: 13, class: "bar"}));
    group.append(svg("rect", {x: 122 + n.included * scale, y, width: (n.all - n.included) * scale, height: 13, class: "bar low"}));
    group.append(svg("text", {x: 126 + n.all * scale, y: y + 11}, count(n.all)));
    group.addEventListener("click", () => chooseModel(model));
    bars.append(group);
  });
  const note = rows.length > top.length ?
      `the ${top.length} models with the most; ${count(rows.length)} models have hits` :
      `${counted(rows.length, "model")} with hits`;
  figure("Hits of each model", element("span", {}, `${note}. `, keyOfColours()), bars);

  if (results.length > 1) drawResults(rows.map(([model]) => model));

  // Logarithms of E-values; an E-value of 0 counts as the smallest positive number.
  const kSmallest = -324;
  const logs = shown.map(hit => hits.evalue[hit] > 0 ? Math.log10(hits.evalue[hit]) : kSmallest);
  let [low, high] = spread(logs);
  [low, high] = [Math.floor(low), Math.ceil(high + 1e-9)];
  if (high === low) high = low + 1;
  let bins = Math.min(40, Math.max(4, high - low));
  const power = value => Math.round(value) === 0 ? "1" : `1e${Math.round(value)}`;
  let edge = boundary(logs, included, false);
  const place = value => value === null ? null : (value - low) / (high - low) * bins;
  figure("E-values of hits", keyOfColours(edge),
         histogram("Distribution of E-values", binned(logs, included, low, high, bins, power),
                   ticksOf(low, high, bins, power, 5), place(edge)));

  const scores = shown.map(hit => hits.score[hit]);
  [low, high] = spread(scores);
  [low, high] = [Math.min(0, Math.floor(low)), Math.ceil(high + 1e-9)];
  bins = 40;
  edge = boundary(scores, included, true);
  const plain = value => count(Math.round(value));
  figure("Scores of hits, bits", keyOfColours(edge),
         histogram("Distribution of scores", binned(scores, included, low, high, bins, plain),
                   ticksOf(low, high, bins, plain), place(edge)));

  const list = flagged(kept.domains);
  const ofDomains = list.map(d => domains.included[d]);
  const share = list.map(d => 100 * (domains.hmm_to[d] - domains.hmm_from[d] + 1) / models.length[domains.model[d]]);
  const percent = value => `${Math.round(value)} %`;
  if (list.length > 0) {
    figure("Share of the model that a domain covers", keyOfColours(),
           histogram("Distribution of model coverage", binned(share, ofDomains, 0, 100, 20, percent),
                     ticksOf(0, 100, 20, percent), null));
    const [model, n] = shownModels()[0];
    figure(`Coverage along ${models.name[model]}`,
           `domains over each of its ${count(models.length[model])} positions` +
               (filter.model < 0 && models.count > 1 ? "; choose another model in Models" : ""),
           coverage(model, list, n));
  }

  const sequences = flagged(kept.targets);
  const isIncluded = sequences.map(t => hitsOf(t).some(hit => kept.hits[hit] && hits.included[hit]));
  const lengths = sequences.map(t => Math.log10(Math.max(1, targets.length[t])));
  [low, high] = spread(lengths);
  [low, high] = [Math.floor(low * 4) / 4, Math.ceil(high * 4 + 1e-9) / 4];
  const raised = value => count(Math.round(10 ** value));
  const ticks = [];
  for (let value = 1; Math.log10(value) <= high; value *= 10) {
    for (const factor of [1, 2, 5]) {
      const at = Math.log10(value * factor);
      if (at >= low && at <= high) ticks.push([(at - low) / (high - low) * 24, count(value * factor)]);
    }
  }
  figure("Lengths of sequences, residues", "on a logarithmic axis",
         histogram("Distribution of lengths", binned(lengths, isIncluded, low, high, 24, raised), ticks, null));
}

// Hits of each model in each result.
function drawResults(order) {
  const kMost = 40, list = order.slice(0, kMost), cell = 34, left = 130, head = 90;
  const counts = tally(flagged(kept.hits).map(hit => `${hits.model[hit]} ${targets.file[hits.target[hit]]}`));
  const most = [...counts.values()].reduce((a, b) => Math.max(a, b));
  const picture = svg("svg", {viewBox: `0 0 ${left + cell * results.length + 60} ${head + 18 * list.length + 4}`,
                              role: "img", "aria-label": "Hits of each model in each result"});
  results.forEach((name, r) => {
    const x = left + (r + .5) * cell;
    picture.append(svg("text", {x, y: head - 6, transform: `rotate(-45 ${x} ${head - 6})`}, shortened(name, 18)));
  });
  list.forEach((model, i) => {
    const y = head + 18 * i, name = models.name[model];
    picture.append(svg("text", {x: left - 4, y: y + 13, "text-anchor": "end"}, shortened(name, 18)));
    results.forEach((result, r) => {
      const n = counts.get(`${model} ${r}`) ?? 0, x = left + r * cell;
      const group = svg("g", {}, svg("title", {}, `${name} in ${result}: ${counted(n, "hit")}`),
                        svg("rect", {x, y, width: cell - 1, height: 17, class: "bar",
                                     "fill-opacity": n === 0 ? .05 : .2 + .5 * n / most}));
      if (n > 0) group.append(svg("text", {x: x + cell / 2, y: y + 13, "text-anchor": "middle"}, count(n)));
      picture.append(group);
    });
  });
  figure("Hits of each model in each result",
         order.length > kMost ? `the ${kMost} models with the most` : `${counted(results.length, "result")}`, picture);
}

// The number of domains that cover each position of a model.
function coverage(model, list, n) {
  const length = models.length[model], change = new Int32Array(length + 2);
  for (const d of list) {
    if (domains.model[d] !== model) continue;
    ++change[domains.hmm_from[d]];
    --change[domains.hmm_to[d] + 1];
  }
  const width = figureWidth(), height = 170, left = 42, base = height - 22, top = 14;
  const x = k => left + (k - 1) / Math.max(1, length) * (width - left - 6);
  const y = depth => base - depth / n * (base - top);
  let depth = 0, path = `M${x(1)} ${base}`;
  for (let k = 1; k <= length; ++k) {
    depth += change[k];
    if (k === 1 || change[k] !== 0) path += `V${y(depth).toFixed(1)}`;
    if (k === length || change[k + 1] !== 0) path += `H${x(k + 1).toFixed(1)}`;
  }
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
                              "aria-label": `Domains over the positions of ${models.name[model]}`},
                      svg("path", {d: `${path}V${base}Z`, class: "bar"}),
                      svg("line", {x1: left, x2: width - 6, y1: base, y2: base, class: "axis"}),
                      svg("text", {x: left - 4, y: y(n) + 4, "text-anchor": "end"}, count(n)),
                      svg("text", {x: left - 4, y: base + 4, "text-anchor": "end"}, "0"));
  const step = tickStep(length, 6);
  for (let k = 0; k <= length; k += step)
    picture.append(svg("text", {x: x(Math.max(1, k)), y: height - 6, "text-anchor": "middle"}, String(Math.max(1, k))));
  return picture;
}

// ---------------------------------------------------------------------------------------------
// One domain: its numbers and its alignment.

let detailList = [], detailAt = 0;

function openDetail(domain, list, at) {
  detailList = list;
  detailAt = at ?? list.indexOf(domain);
  drawDetail();
  const dialog = byId("detail");
  if (dialog.open) return;
  dialog.showModal();
  // Browsers would apply the attribute autofocus also when they load the page.
  byId("close").focus();
}

function step(by) {
  detailAt = Math.min(detailList.length - 1, Math.max(0, detailAt + by));
  drawDetail();
}

const quality = pp => pp === "*" ? "q3" : pp >= "8" ? "q2" : pp >= "5" ? "q1" : pp >= "0" ? "q0" : "";

function keyOfQuality() {
  const key = element("span", {className: "dim quality"}, "Posterior probability of a residue's place: ");
  for (const [name, text] of [["q3", "95 % and more"], ["q2", "75 to 95 %"], ["q1", "45 to 75 %"], ["q0", "less"]])
    key.append(element("span", {className: name}, text), " ");
  return key;
}

// Colours characters by posterior probability, with one element per run of a colour.
function coloured(parent, text, pp) {
  for (let i = 0; i < text.length;) {
    const name = quality(pp[i]);
    let end = i + 1;
    while (end < text.length && quality(pp[end]) === name) ++end;
    const piece = text.slice(i, end);
    parent.append(name ? element("span", {className: name}, piece) : piece);
    i = end;
  }
}

function drawAlignment(place, d, lines) {
  const model = models.name[domains.model[d]], target = shortName(domains.target[d]);
  const names = Math.min(kNarrow.matches ? 8 : 20, Math.max(model.length, target.length)), digits = 6;
  const label = text => shortened(text, names).padEnd(names);
  const room = Math.floor((byId("detail").clientWidth - 60) / 7.3) - names - 2 * digits - 3;
  const columns = Math.max(20, Math.min(120, Math.floor(room / 10) * 10));
  const block = element("pre", {tabIndex: 0});
  const step = domains.ali_from[d] <= domains.ali_to[d] ? 1 : -1;  // residue numbers of a bottom strand descend
  let k = domains.hmm_from[d], i = domains.ali_from[d];
  const pad = " ".repeat(names + digits + 2);
  for (let at = 0; at < lines.model.length; at += columns) {
    const cut = text => text.slice(at, at + columns);
    const nodes = cut(lines.model).replace(/[.]/g, "").length, residues = cut(lines.target).replace(/-/g, "").length;
    const range = (from, n, by) =>
      [String(n > 0 ? from : from - by).padStart(digits), String(n > 0 ? from + by * (n - 1) : "-").padStart(digits)];
    const [k1, k2] = range(k, nodes, 1), [i1, i2] = range(i, residues, step);
    block.append(`${label(model)} ${k1} ${cut(lines.model)} ${k2.trim()}\n${pad}${cut(lines.match)}\n${label(target)} ${i1} `);
    coloured(block, cut(lines.target), cut(lines.pp));
    block.append(` ${i2.trim()}\n${pad}${cut(lines.pp)} PP\n\n`);
    k += nodes;
    i += step * residues;
  }
  place.append(block, element("p", {}, keyOfQuality()));
}

async function drawDetail() {
  const d = detailList[detailAt], hit = domains.hit[d], m = domains.model[d], t = domains.target[d];
  byId("detail-title").replaceChildren(swatch(m), `${models.name[m]} in ${targets.name[t]}`);
  byId("previous").disabled = detailAt === 0;
  byId("next").disabled = detailAt === detailList.length - 1;
  const facts = element("dl", {className: "facts"});
  const fact = (name, wide, ...value) =>
      facts.append(element("div", {className: wide ? "wide" : ""}, element("dt", {}, name), element("dd", {}, ...value)));
  fact("sequence", true, ...named(`${targets.name[t]} ${targets.accession[t]}`.trim(), targetLink(t)), ` ${targets.description[t]}`);
  fact("model", true, ...named(`${models.name[m]} ${models.accession[m]}`.trim(), modelLink(m)), ` ${models.description[m]}`);
  fact("envelope", false, `${domains.env_from[d]} to ${domains.env_to[d]} of ${count(targets.length[t])}`);
  fact("aligned", false, `${domains.ali_from[d]} to ${domains.ali_to[d]}`);
  fact("on the model", false, `${domains.hmm_from[d]} to ${domains.hmm_to[d]} of ${count(models.length[m])}`);
  fact("i-Evalue", false, general(domains.i_evalue[d]));
  fact("c-Evalue", false, general(domains.c_evalue[d]));
  fact("score of the domain", false, `${bits(domains.score[d])} bits`);
  fact("accuracy", false, fixed(domains.accuracy[d], 2));
  fact("E-value of the hit", false, general(hits.evalue[hit]));
  fact("score of the hit", false, `${bits(hits.score[hit])} bits (bias ${bits(hits.bias[hit])})`);
  fact("inclusion", false, domains.included[d] ? "included" : "below the inclusion threshold");
  const body = byId("detail-body");
  const all = element("button", {type: "button"}, `All domains of ${models.name[m]}, one below the other`);
  all.addEventListener("click", () => {
    byId("detail").close();
    byId("stack-model").value = String(m);
    stale.add("stack");
    showView("stack", true);
  });
  const place = element("div", {});
  body.replaceChildren(facts, place, all);
  const lines = await alignmentOf(d);
  if (detailList[detailAt] !== d) return;
  if (lines) drawAlignment(place, d, lines);
  else place.append(element("p", {className: "dim"}, "The result that this page was made of holds no alignments."));
}

// ---------------------------------------------------------------------------------------------
// All domains of one model, aligned to its positions: match columns only, without insertions. Without
// alignments, bars from the first to the last position.

let stacked = [];

function drawStack() {
  const select = byId("stack-model");
  if (select.options.length === 0) {
    select.append(...byFrequency(domains.model).map(
        ([m, n]) => new Option(`${models.name[m]} (${count(n)})`, String(m))));
  }
  if (filter.model >= 0 && [...select.options].some(option => option.value === String(filter.model)))
    select.value = String(filter.model);
  if (!stackList) {
    const head = element("div", {className: "head", "aria-hidden": "true"});
    byId("stack-list").append(head);
    stackList = new VirtualList(byId("stack-list"), drawStacked, head);
  }
  const model = Number(select.value);
  stacked = flagged(kept.domains).filter(d => domains.model[d] === model);
  byId("stack-note").textContent = stacked.length === 0 ? "No domain of this model matches the filter." :
      `${counted(stacked.length, "domain")}, best sequence first; insertions are left out. `;
  if (stacked.length > 0) {
    alignmentOf(stacked[0]).then(lines => {
      if (lines && byId("stack-note").childElementCount === 0) byId("stack-note").append(keyOfQuality());
    });
  }
  const ruler = element("div", {className: "stack"}, element("span", {}, stackLabel("position")));
  let text = "";
  const length = models.length[model] ?? 0;
  for (let k = 10; k <= length; k += 10) text += String(k).padStart(10);
  ruler.append(text);
  stackList.fixedHead.replaceChildren(ruler);
  stackList.body.style.width = `${7.3 * ((length || 0) + (stackRoom() + 4))}px`;
  stackList.body.style.minWidth = "100%";
  stackList.scroller.scrollTop = 0;
  stackList.show(stacked.length, 19);
}

// Characters before the residues of a row; on a phone just enough for "A0A024R1R8/1234-1300".
const stackRoom = () => kNarrow.matches ? 20 : 32;

const stackLabel = text => shortened(text, stackRoom()).padEnd(stackRoom());

function drawStacked(i) {
  const d = stacked[i], t = domains.target[d], title = domainTitle(d);
  const row = element("div", {className: "stack", role: "listitem", "aria-posinset": i + 1,
                              "aria-setsize": stacked.length, title});
  const place = `/${domains.ali_from[d]}-${domains.ali_to[d]}`;
  const name = kNarrow.matches ? kUniProtName.exec(targets.name[t])?.[1] ?? shortName(t) : shortName(t);
  const room = stackRoom() - place.length;
  const open = element("span", {role: "button", tabIndex: 0},
      stackLabel(room >= 4 ? shortened(name, room) + place : name));
  row.append(open);
  row.addEventListener("click", () => openDetail(d, stacked, i));
  open.addEventListener("keydown", event => {
    if (event.key !== "Enter") return;
    event.preventDefault();  // else it also presses the button that gets the focus
    openDetail(d, stacked, i);
  });
  row.append(" ".repeat(domains.hmm_from[d] - 1));
  const span = domains.hmm_to[d] - domains.hmm_from[d] + 1;
  alignmentOf(d).then(lines => {
    if (!lines) {
      row.append(element("span", {className: "span"}, " ".repeat(span)));
      return;
    }
    let residues = "", pp = "";
    for (let c = 0; c < lines.model.length; ++c) {
      if (lines.model[c] === ".") continue;
      residues += lines.target[c];
      pp += lines.pp[c];
    }
    coloured(row, residues, pp);
  });
  return row;
}

// ---------------------------------------------------------------------------------------------

// Saves the shown domains in the order of the table of domains.
function saveShown() {
  // A field, as --tsv writes it.
  const field = value => {
    const text = String(value).replace(/[\0-\x1f\x7f]/g, " ");
    return /^#|"/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = ["result", "target", "target_accession", "target_length", "model", "model_accession", "model_length",
                   "evalue", "score", "bias", "domain", "c_evalue", "i_evalue", "domain_score", "domain_included",
                   "hmm_from", "hmm_to", "ali_from", "ali_to", "env_from", "env_to", "accuracy", "description"];
  const lines = [columns.join("\t")];
  const order = domainTable ? domainTable.order : range(0, domains.count);
  for (const d of order) {
    if (!kept.domains[d]) continue;
    const hit = domains.hit[d], t = domains.target[d], m = domains.model[d];
    const envelope = [domains.env_from[d], domains.env_to[d]];
    if (domains.ali_from[d] > domains.ali_to[d]) envelope.reverse();  // the bottom strand
    lines.push([results[targets.file[t]] ?? "", targets.name[t], targets.accession[t], targets.length[t], models.name[m], models.accession[m],
                models.length[m], hits.evalue[hit], hits.score[hit], hits.bias[hit], domains.number[d],
                domains.c_evalue[d], domains.i_evalue[d], domains.score[d], domains.included[d],
                domains.hmm_from[d], domains.hmm_to[d], domains.ali_from[d], domains.ali_to[d],
                ...envelope, domains.accuracy[d], targets.description[t]].map(field).join("\t"));
  }
  download("domains.tsv", "text/tab-separated-values", `${lines.join("\n")}\n`);
}

function listen() {
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; readFilter(); });
  };
  const result = byId("result");
  result.append(new Option("all results", "-1"), ...results.map((name, r) => new Option(name, String(r))));
  result.parentElement.hidden = results.length < 2;
  for (const id of ["filter", "evalue", "included", "best", "empty", "result"]) byId(id).addEventListener("input", later);
  byId("filters").addEventListener("submit", event => event.preventDefault());
  byId("clear").addEventListener("click", () => {
    byId("filter").value = byId("evalue").value = "";
    for (const id of ["included", "best", "empty"]) byId(id).checked = false;
    result.value = "-1";
    filter.model = -1;
    readFilter();
  });
  byId("model-chip").lastElementChild.addEventListener("click", () => chooseModel(-1));
  byId("save").addEventListener("click", saveShown);
  byId("protein-order").addEventListener("change", () => {
    byId("protein-list").scrollTop = 0;
    drawProteins();
  });
  byId("protein-scale").addEventListener("change", drawProteins);
  byId("stack-model").addEventListener("change", drawStack);
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  byId("detail").addEventListener("keydown", event => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  const names = Object.keys(views);
  byId("tabs").addEventListener("click", event => {
    const tab = event.target.closest("[role=tab]");
    if (tab) showView(tab.getAttribute("aria-controls"), true);
  });
  byId("tabs").addEventListener("keydown", event => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (by) showView(names[(names.indexOf(current) + by + names.length) % names.length], true);
  });
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      stale.add("overview").add("proteins");
      drawView();
    }, 100);
  });
  const lists = () => [modelTable?.list, domainTable?.list, proteinList, stackList].filter(Boolean);
  addEventListener("beforeprint", () => lists().forEach(list => { list.printing = true; list.update(); }));
  addEventListener("afterprint", () => lists().forEach(list => { list.printing = false; list.update(); }));
}

(async () => {
  try {
    await readData();
  } catch (error) {
    byId("counts").textContent = typeof DecompressionStream === "undefined" ?
        "This browser is too old for this page: it cannot decompress data (Chrome 80, Firefox 113 and Safari 16.4 can)." :
        `The data of this page cannot be read: ${error.message}`;
    return;
  }
  listen();
  const asked = location.hash.slice(1);
  showView(asked in views ? asked : "overview", false);
  readFilter();
  document.documentElement.dataset.ready = "true";
})();
