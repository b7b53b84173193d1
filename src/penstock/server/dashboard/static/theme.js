// Loaded before the page is painted, so that a chosen theme does not flash.
(() => {
  const root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
  const change = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    dispatchEvent(new Event("themechange"));
  };
  addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-toggle-theme]")) {
      button.hidden = false;
      button.addEventListener("click", change);
    }
  });
})();
