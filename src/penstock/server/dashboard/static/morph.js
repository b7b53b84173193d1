// Changes a page into its newer self in place: focus, ticks, open details and scrolling stay.
(() => {
  if (!window.htmx) return;
  const left = new Set(["open", "hidden"]);
  const attributes = (from, to) => {
    for (const { name, value } of to.attributes)
      if (from.getAttribute(name) !== value && !left.has(name)) from.setAttribute(name, value);
    for (const { name } of [...from.attributes])
      if (!to.hasAttribute(name) && !left.has(name) && name !== "data-drawn") from.removeAttribute(name);
  };
  const blank = (node) => node?.nodeType === Node.TEXT_NODE && !node.nodeValue.trim();
  // Not node.id: a form has its fields as properties, and one of them may be called so.
  const id = (node) => node.getAttribute?.("id");
  const children = (from, to) => {
    const named = new Map([...from.children].filter(id).map((node) => [id(node), node]));
    let at = from.firstChild;
    const step = () => { const here = at; at = at.nextSibling; return here; };
    for (const next of [...to.childNodes]) {
      while (blank(at) && !blank(next)) step().remove();
      const known = id(next) && named.get(id(next));
      if (known) {
        if (known === at) step(); else from.insertBefore(known, at);
        morph(known, next);
      } else if (at && !id(at) && !id(next) && at.nodeName === next.nodeName) morph(step(), next);
      else from.insertBefore(next, at);
    }
    while (at) step().remove();
  };
  const morph = (from, to) => {
    if (from.nodeName !== to.nodeName) { from.replaceWith(to); return; }
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    if ("keep" in from.dataset || from.isEqualNode(to)) return;
    attributes(from, to);
    if (!("drawn" in from.dataset)) children(from, to);
  };
  htmx.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap: (style, target, fragment) => {
      if (style !== "morph") return false;
      dispatchEvent(new CustomEvent("newer", { detail: fragment }));
      const newer = fragment.querySelector(`#${target.id}`);
      if (newer) children(target, newer);
      return true;
    },
  });
})();
