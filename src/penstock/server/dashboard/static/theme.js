// Loaded before the page is painted, so that a chosen theme does not flash.
(() => {
  const kept = localStorage.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
  addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-toggle-theme]");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
      dispatchEvent(new Event("themechange"));
    });
  });
})();
