// Looks at every page of the site, and has axe look at some; posts what it found to the server that sent it.
const OUTSIDE = /^(https?:)?\/\//;

async function read(path) {
  const answer = await fetch(path);
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
}

function facts(page) {
  const all = (what) => [...page.querySelectorAll(what)];
  const fetched = all("script[src], link[rel=stylesheet], link[rel=icon], link[rel=preconnect], img, iframe, source");
  return {
    title: page.title,
    lang: page.documentElement.lang,
    ids: all("[id]").map((each) => each.id),
    names: all("a[name]").map((each) => each.name),
    links: all("a[href]").map((each) => each.getAttribute("href")),
    images: all("img").map((each) => each.getAttribute("src")),
    noAlt: all("article img").filter((each) => !each.alt.trim()).map((each) => each.getAttribute("src")),
    noText: all("article a[href]").filter((each) => !(each.textContent.trim() || each.title || each.querySelector("img[alt]")))
      .map((each) => each.getAttribute("href")),
    levels: all("article h1, article h2, article h3, article h4, article h5, article h6").map((each) => +each.tagName[1]),
    outside: fetched.map((each) => each.getAttribute("src") || each.getAttribute("href")).filter((each) => OUTSIDE.test(each)),
  };
}

async function shown(path, scheme) {
  const frame = document.createElement("iframe");
  frame.style = "width:1200px;height:900px;border:0";
  frame.src = path;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; });
  const page = frame.contentDocument;
  const still = page.createElement("style");  // or colors would still fade in
  still.textContent = "*, ::before, ::after { transition: none !important; animation: none !important; }";
  page.head.append(still);
  page.body.setAttribute("data-md-color-scheme", scheme);
  const script = page.createElement("script");
  script.src = "/axe.js";
  page.head.append(script);
  await new Promise((done) => { script.onload = done; });
  // The theme names its nested navigation twice, once for small screens, and makes code that scrolls reachable
  // by keys once it has been seen, later than axe looks.
  const found = await frame.contentWindow.axe.run(page, { resultTypes: ["violations"],
    ...(scheme === "default" ? { rules: { "landmark-unique": { enabled: false },
      "scrollable-region-focusable": { enabled: false } } } : { runOnly: ["color-contrast"] }) });
  const wide = page.documentElement.scrollWidth;
  const asked = frame.contentWindow.performance.getEntriesByType("resource").map((each) => each.name);
  frame.remove();
  return {
    violations: found.violations.map((each) => ({ rule: each.id, at: each.nodes.slice(0, 4).map((node) => node.html.slice(0, 160)),
      why: each.nodes[0].failureSummary })),
    wide, outside: asked.filter((each) => !each.startsWith(location.origin)),
  };
}

(async () => {
  const plan = await (await fetch("/plan.json")).json();
  const told = { pages: {}, shown: {} };
  try {
    for (const path of plan.pages) {
      const page = await read("/" + path);
      told.pages[path] = page && facts(page);
    }
    for (const path of plan.shown) for (const scheme of ["default", "slate"]) {
      told.shown[`${path} ${scheme}`] = await shown("/" + path, scheme);
    }
  } catch (error) { told.error = String(error && error.stack || error); }
  await fetch("/told", { method: "POST", body: JSON.stringify(told) });
})();
