// Says "live" on the page whenever the store changed: what has hx-trigger="live from:body" asks anew.
(() => {
  const { live } = document.body.dataset;
  if (!live || !window.EventSource) return;
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(live);
    source.addEventListener("changed", () => document.body.dispatchEvent(new Event("live")));
  };
  const close = () => { source?.close(); source = null; };
  // A tab that nobody looks at costs nothing.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); return; }
    open();
    document.body.dispatchEvent(new Event("live"));
  });
  addEventListener("pagehide", close);
  open();
})();
