// Tells times in the zone of the reader, with UTC behind them; without this script UTC stays.
(() => {
  const two = (number) => String(number).padStart(2, "0");
  const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const told = {
    full: (at) => `${day(at)} ${clock(at)}`,
    clock: (at) => (day(at) === day(new Date()) ? clock(at) : told.full(at)),
    minute: (at) => told.clock(at).slice(0, -3),
  };
  const toUtc = (text) => new Date(text).toISOString().slice(0, 16);
  const translate = (place) => {
    for (const time of place.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const words = told[time.dataset.told];
      if (words) time.textContent = words(at);
      else time.title = `${told.full(at)}, ${time.title}`;
    }
    for (const label of place.querySelectorAll("[data-zone]")) label.textContent = "your time";
    for (const field of place.querySelectorAll("input[data-utc]")) {
      const at = new Date(`${field.getAttribute("value")}Z`);
      if (!Number.isNaN(at.getTime())) field.setAttribute("value", `${day(at)}T${clock(at).slice(0, 5)}`);
    }
  };
  // What a form sends is UTC, so that its address means the same to everybody.
  document.addEventListener("formdata", ({ target, formData }) => {
    for (const field of target.querySelectorAll("input[data-utc]")) if (field.value) formData.set(field.name, toUtc(field.value));
  });
  addEventListener("newer", ({ detail }) => translate(detail));
  for (const place of document.querySelectorAll("[data-zone-name]")) place.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  translate(document);
})();
