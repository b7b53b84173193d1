// Shows the API's document, and sends what is tried out as this page: with its login and its token.
(() => {
  const place = document.getElementById("reference");
  if (!place || !window.SwaggerUIBundle) return;
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => root.classList.toggle("dark-mode", (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark");
  addEventListener("themechange", paint);
  dark.addEventListener("change", paint);
  paint();
  const safe = new Set(["GET", "HEAD", "OPTIONS"]);
  SwaggerUIBundle({
    domNode: place,
    url: place.dataset.document,
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    docExpansion: "none",
    filter: true,
    layout: "BaseLayout",
    presets: [SwaggerUIBundle.presets.apis],
    syntaxHighlight: { activated: false },
    tryItOutEnabled: true,
    validatorUrl: null,
    requestInterceptor: (request) => {
      const inside = new URL(request.url, location.href).origin === location.origin;
      // Who sends a token of their own is not taken for a page.
      if (inside && !safe.has(request.method) && !request.headers.Authorization) request.headers["X-CSRF-Token"] = place.dataset.token;
      return request;
    },
  });
})();
