// Polls every [data-live] element for the partial it was rendered from, and swaps it when it moved.

const SLOW_SECONDS = 15;
const LONGEST_WAIT_SECONDS = 60;

for (const region of document.querySelectorAll("[data-live]")) follow(region);

function follow(region) {
  let etag = null;
  let nFailures = 0;
  let timer = null;

  const isDone = () => region.querySelector("[data-live-done]") !== null;

  function seconds() {
    const wanted = region.querySelector("[data-live-every]")?.dataset.liveEvery;
    const pause = Number(wanted) || SLOW_SECONDS;
    return Math.min(pause * 2 ** nFailures, LONGEST_WAIT_SECONDS);
  }

  function plan() {
    clearTimeout(timer);
    if (!isDone() && !document.hidden) timer = setTimeout(poll, 1000 * seconds());
  }

  async function poll() {
    try {
      const headers = etag ? { "If-None-Match": etag } : {};
      const answer = await fetch(region.dataset.live, { headers, cache: "no-store" });
      if (answer.ok) {
        etag = answer.headers.get("ETag");
        swap(region, await answer.text());
      }
      nFailures = answer.ok || answer.status === 304 ? 0 : nFailures + 1;
    } catch {
      nFailures += 1;
    }
    plan();
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : plan()));
  plan();
}

// Keeps what the reader did: opened details, scrolled boxes, and the place of the focus.
function swap(region, html) {
  if (region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) return;
  const open = new Set([...region.querySelectorAll("details[open][id]")].map((item) => item.id));
  const boxes = [...region.querySelectorAll(".scroll, .code-box")].map((box) => [box.scrollLeft, box.scrollTop]);
  const links = [...region.querySelectorAll("a, [tabindex]")];
  const focused = links.indexOf(document.activeElement);
  const href = focused >= 0 ? links[focused].getAttribute("href") : null;

  region.innerHTML = html;

  for (const id of open) region.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  [...region.querySelectorAll(".scroll, .code-box")].forEach((box, index) => {
    if (boxes[index]) [box.scrollLeft, box.scrollTop] = boxes[index];
  });
  if (focused >= 0) {
    const now = [...region.querySelectorAll("a, [tabindex]")];
    const same = href === null ? now[focused] : now.find((item) => item.getAttribute("href") === href);
    same?.focus({ preventScroll: true });
  }
}
