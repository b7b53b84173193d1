// Ticks all rows at once, says how many are ticked, and keeps actions shut while none is.
(() => {
  const boxes = (form) => [...form.querySelectorAll("input[name=id]")];
  const show = (form) => {
    const all = boxes(form);
    const ticked = all.filter((box) => box.checked).length;
    for (const place of form.querySelectorAll("[data-ticked]")) place.textContent = ticked ? `${ticked} selected` : "";
    for (const button of form.querySelectorAll("[data-needs-ticks]")) button.disabled = ticked === 0;
    const every = form.querySelector("[data-tick-all]");
    if (!every) return;
    every.hidden = false;
    every.checked = ticked > 0 && ticked === all.length;
    every.indeterminate = ticked > 0 && ticked < all.length;
  };
  const all = () => document.querySelectorAll("form[data-pick]").forEach(show);
  document.addEventListener("change", ({ target }) => {
    const form = target.closest?.("form[data-pick]");
    if (!form) return;
    if (target.matches("[data-tick-all]")) for (const box of boxes(form)) box.checked = target.checked;
    show(form);
  });
  addEventListener("pageshow", all);
  document.body.addEventListener("htmx:afterSwap", all);
  all();
})();
