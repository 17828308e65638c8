// Browsers refuse workers of pages that are opened from disk. There the search's worker runs in a
// hidden frame of the page, with the same messages.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class {
    onmessage = null;
    #frame = document.createElement("iframe");
    #inner;

    constructor(url) {
      this.#frame.hidden = true;
      this.#inner = new Promise((ready) => {
        this.#frame.onload = () => {
          const inner = this.#frame.contentWindow;
          inner.postMessage = (data) => this.onmessage?.(new MessageEvent("message", { data }));
          const script = inner.document.createElement("script");
          script.src = new URL(url, location.href).href;
          script.onload = () => ready(inner);
          inner.document.body.append(script);
        };
      });
      this.#frame.srcdoc = "<!doctype html><title>search</title>";
      document.documentElement.append(this.#frame);
    }

    postMessage(data) {
      this.#inner.then((inner) => inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
