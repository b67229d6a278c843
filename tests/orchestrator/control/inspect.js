// What lies badly on a page, a line each: see `find_problems` in layout.py.
() => {
  const found = [], told = (what, element) => {
    const text = (element.innerText || element.textContent || "").trim().slice(0, 40);
    found.push(`${what}: <${element.localName} ${element.className?.baseVal ?? element.className}> ${text}`);
  };
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`scrolls sideways: ${root.scrollWidth}`);
  const free = (element) => element.closest(".wide, .drawn, .diff, .skip, select, textarea");
  const seen = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement, text = node.data.trim();
    if (!text || !parent.checkVisibility() || parent.closest("script, noscript, svg")) continue;
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((each) => each.width > 0);
    const lines = new Set(rects.map((each) => Math.round(each.top))).size;
    if (lines >= 3 && text.length / lines < 3) told("letters one below the other", parent);
    if (lines >= 2 && text.length <= 12 && /^\w+$/.test(text)) told("breaks inside a word", parent);
    if (free(parent)) continue;
    let block = parent;
    while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
    const box = block.getBoundingClientRect();
    if (rects.some((each) => each.right > innerWidth + 1 || each.left < -1)) told("cut off", parent);
    if (rects.some((each) => each.right > box.right + 1)) told("runs out of its box", parent);
  }
  for (const node of document.querySelectorAll(".drawn .node")) {
    const [box, text] = [node.querySelector("rect"), node.querySelector("text")];
    if (box && seen(node) && text.getBoundingClientRect().right > box.getBoundingClientRect().right)
      told("runs out of its box", node);
  }
  const kinds = "button, input:not([type=hidden]), select, textarea, summary, a, h1, h2, h3, h4, p, "
    + "pre, td, th, li, dt, dd, legend, figcaption, .badge, progress, figure, .node, .brand, .frozen";
  const boxes = [...document.querySelectorAll(kinds)]
    .filter((element) => seen(element) && !element.closest(".skip"))
    .map((element) => ({ element, rects: [...element.getClientRects()] }))
    .sort((one, other) => one.rects[0].top - other.rects[0].top);
  const meet = (one, other) => one.left < other.right - 2 && other.left < one.right - 2
    && one.top < other.bottom - 2 && other.top < one.bottom - 2;
  for (const [index, one] of boxes.entries()) {
    const foot = Math.max(...one.rects.map((each) => each.bottom));
    for (const other of boxes.slice(index + 1)) {
      if (other.rects[0].top >= foot) break;
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      if (one.rects.some((each) => other.rects.some((their) => meet(each, their))))
        told(`lies on <${one.element.localName}> ${one.element.textContent.slice(0, 20)}`, other.element);
    }
  }
  return found.slice(0, 20);
}
