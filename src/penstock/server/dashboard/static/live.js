// Says "live" on the page whenever the store changed: what has hx-trigger="live from:body" asks anew.
(() => {
  const { live } = document.body.dataset;
  if (!live || !window.EventSource) return;
  const AGAIN_MS = 2000;
  const REFRESH_MS = 30000;
  const ask = () => document.body.dispatchEvent(new Event("live"));
  const sign = document.getElementById("connection");
  const tell = (state, words) => {
    if (!sign) return;
    sign.hidden = false;
    sign.className = `badge is-${state}`;
    if (sign.firstElementChild.textContent !== words) sign.firstElementChild.textContent = words;
  };
  let source = null;
  let waiting = null;
  let lost = false;
  const close = () => { source?.close(); source = null; clearTimeout(waiting); waiting = null; };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(live);
    source.addEventListener("changed", ask);
    source.addEventListener("open", () => {
      clearTimeout(waiting);
      waiting = null;
      tell("running", "live");
      if (lost) ask();
      lost = false;
    });
    // A stream ends by itself now and then, and is back at once; only one that stays away is lost.
    // The browser gives up for good when it was answered with an error: then we ask again.
    source.addEventListener("error", () => {
      waiting ??= setTimeout(() => {
        lost = true;
        tell("silent", "connection lost");
        close();
        open();
      }, AGAIN_MS);
    });
  };
  // A tab that nobody looks at costs nothing.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); return; }
    open();
    ask();
  });
  addEventListener("pagehide", close);
  // "5 min ago" grows old although nothing happens.
  setInterval(() => { if (!document.hidden && !lost) ask(); }, REFRESH_MS);
  tell("over", "connecting");
  open();
})();
