// Talks to the service: every request carries the token of this tab, and nothing else is ever asked.

const KEY = "eventide-token";

export class Refused extends Error {
  constructor(status, title) {
    super(title);
    this.status = status;
  }
}

export const signedIn = () => sessionStorage.getItem(KEY) !== null;
export const signIn = (token) => sessionStorage.setItem(KEY, token);
export const signOut = () => sessionStorage.removeItem(KEY);

// A token behind # never reaches a server or its logs; it is taken out of the address at once.
export function takeTokenFromAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    signIn(given);
    history.replaceState(null, "", location.pathname + location.search);
  }
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(token ? { Authorization: "Bearer " + token } : {}) };
  const response = await fetch(path, { ...options, headers, credentials: "omit" });
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new Refused(response.status, problem.title || "The service answered " + response.status);
  }
  return response;
}

export const get = async (path) => (await ask(path)).json();
export const getBlob = async (path) => (await ask(path)).blob();
export const streamPath = (name, rest = "") => "/v1/streams/" + encodeURIComponent(name) + rest;

const LONGEST_SILENCE = 45_000; // milliseconds; the service says something every 15 seconds

// Follows the releases of a stream from a step on, through lost connections, until the signal says stop.
export async function follow(name, next, signal, onRelease, onState) {
  let pause = 500;
  while (!signal.aborted) {
    const silent = new AbortController();
    let watch;
    const heard = () => { clearTimeout(watch); watch = setTimeout(() => silent.abort(), LONGEST_SILENCE); };
    try {
      heard();
      const headers = next > 0 ? { "Last-Event-ID": String(next - 1) } : {};
      const response = await ask(streamPath(name, "/stream"), { signal: AbortSignal.any([signal, silent.signal]), headers });
      onState("live");
      pause = 500;
      for await (const event of events(response.body, heard)) {
        const release = JSON.parse(event);
        next = release.step + 1;
        onRelease(release);
      }
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Refused && [401, 403, 404].includes(problem.status)) throw problem;
    } finally {
      clearTimeout(watch);
    }
    onState("lost");
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(2 * pause, 10_000);
  }
}

// The data of each server-sent event of a body; whatever comes is heard of.
async function* events(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    held += value;
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").filter((line) => line.startsWith("data: "));
      if (data.length) yield data.map((line) => line.slice(6)).join("\n");
    }
  }
}
