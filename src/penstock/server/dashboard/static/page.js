// Small conveniences: copying an id, a flow that opens at this job, and "/" to search.
(() => {
  const clipboard = navigator.clipboard;
  const buttons = () => {
    if (clipboard) for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
  };
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest?.("[data-copy]");
    if (!button) return;
    await clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  const inSight = () => {
    const graph = document.querySelector(".graph");
    const here = graph?.querySelector(".here");
    if (here) {
      const [outer, inner] = [graph.getBoundingClientRect(), here.getBoundingClientRect()];
      graph.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
      graph.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
    }
  };
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    const field = document.querySelector("[role=search] input:not([type=hidden])");
    if (!field) return;
    event.preventDefault();
    field.focus();
  });
  document.body.addEventListener("htmx:afterSwap", buttons);
  buttons();
  inSight();
})();
