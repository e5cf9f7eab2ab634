"use strict";
// Walks the tree with the arrow keys, marks the program that is shown, and zooms. Without it the
// links in the tree show the same programs.
(() => {
  const tree = document.querySelector(".tree"), picture = tree.querySelector("svg");
  const panels = [...document.querySelectorAll("article")];
  if (!panels.length) return;
  document.documentElement.classList.add("scripted");
  const marks = panels.map((_, at) => document.getElementById(`m${at}`));
  const around = panels.map(panel => {
    const [parent, ...children] = panel.dataset.row.split(" ");
    return { parent: parent === "" ? null : Number(parent), children: children.map(Number) };
  });
  const depth = [];
  around.forEach(({ parent }, at) => { depth[at] = parent === null ? 0 : depth[parent] + 1; });
  const left = at => marks[at].getBBox().x;
  const first = panels.findIndex(panel => panel.classList.contains("first"));
  const named = () => panels.findIndex(panel => `#${panel.id}` === location.hash);
  const shown = () => named() < 0 ? first : named();
  const natural = picture.getBoundingClientRect().width;

  function follow(focus) {
    const at = shown();
    marks.forEach((mark, each) => {
      mark.setAttribute("tabindex", each === at ? "0" : "-1");
      if (each === at) mark.setAttribute("aria-current", "true");
      else mark.removeAttribute("aria-current");
    });
    document.querySelector("aside").scrollTop = 0;
    if (focus) marks[at].focus({ preventScroll: true });
    reveal(marks[at]);
  }

  function reveal(mark) {
    const box = mark.getBoundingClientRect(), frame = tree.getBoundingClientRect(), room = 60;
    if (box.left < frame.left + room) tree.scrollLeft -= frame.left + room - box.left;
    if (box.right > frame.right - room) tree.scrollLeft += box.right - frame.right + room;
    if (box.top < frame.top + room) tree.scrollTop -= frame.top + room - box.top;
    if (box.bottom > frame.bottom - room) tree.scrollTop += box.bottom - frame.bottom + room;
  }

  function open(at) {
    if (at === null || at === undefined || at < 0 || at >= panels.length) return;
    const { scrollX, scrollY } = window;
    location.replace(`#n${at}`);
    scrollTo(scrollX, scrollY);
    follow(true);
  }

  function beside(at, way) {
    const row = marks.map((_, each) => each).filter(each => depth[each] === depth[at]);
    row.sort((a, b) => left(a) - left(b));
    return row[row.indexOf(at) + way];
  }

  const moves = {
    ArrowUp: at => around[at].parent,
    ArrowDown: at => around[at].children[0],
    ArrowLeft: at => beside(at, -1),
    ArrowRight: at => beside(at, 1),
    Home: () => 0,
    End: () => panels.length - 1,
  };

  tree.addEventListener("keydown", event => {
    if (!(event.key in moves) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    open(moves[event.key](shown()));
  });

  document.addEventListener("click", event => {
    const link = event.target.closest('a[href^="#n"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(Number((link.getAttribute("href")).slice(2)));
  });

  const widths = {
    in: now => now * 1.25,
    out: now => now / 1.25,
    fit: () => tree.clientWidth - 22,
  };
  document.querySelectorAll("[data-zoom]").forEach(button => button.addEventListener("click", () => {
    const now = picture.getBoundingClientRect().width;
    const width = widths[button.dataset.zoom](now);
    picture.style.width = `${Math.min(Math.max(width, 200), natural * 4)}px`;
    reveal(marks[shown()]);
  }));

  addEventListener("hashchange", () => follow(false));
  tree.scrollLeft = (tree.scrollWidth - tree.clientWidth) / 2;
  follow(false);
})();
