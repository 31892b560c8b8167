"use strict";
// Without this script the page is a plain form. With it, results come in one
// by one, the preview follows what is written, and files can be dropped.
(() => {
	const form = document.forms[0];
	const find = (id) => document.getElementById(id);
	const outcome = find("outcome"), results = find("results"), send = find("send");
	for (const e of document.querySelectorAll(".with-script")) e.hidden = false;
	for (const e of document.querySelectorAll(".without-script")) e.hidden = true;

	// --- files ---

	const files = find("files"), drop = find("drop"), chosen = find("chosen");
	let picked = [];

	function setFiles(list) {
		const t = new DataTransfer();
		for (const f of list) t.items.add(f);
		files.files = t.files;
		picked = [...t.files];
		chosen.replaceChildren(...picked.map((f) => {
			const item = document.createElement("li"), name = document.createElement("span"), remove = document.createElement("button");
			name.textContent = `${f.name} (${bytes(f.size)})`;
			remove.type = "button";
			remove.textContent = "Remove";
			remove.setAttribute("aria-label", `Remove ${f.name}`);
			remove.addEventListener("click", () => {
				setFiles(picked.filter((x) => x !== f));
				files.focus();
			});
			item.append(name, remove);
			return item;
		}));
	}

	function bytes(n) {
		const units = ["B", "KiB", "MiB", "GiB"];
		let i = 0;
		for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
		return `${n < 10 && i > 0 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
	}

	if (files) {
		files.addEventListener("change", () => setFiles([...picked, ...files.files]));
		const holdsFiles = (e) => e.dataTransfer && [...e.dataTransfer.types].includes("Files");
		// A file dropped beside the field would otherwise replace the page.
		document.addEventListener("dragover", (e) => {
			if (!holdsFiles(e)) return;
			e.preventDefault();
			drop.classList.add("over");
		});
		document.addEventListener("dragleave", (e) => {
			if (!e.relatedTarget) drop.classList.remove("over");
		});
		document.addEventListener("drop", (e) => {
			if (!holdsFiles(e)) return;
			e.preventDefault();
			drop.classList.remove("over");
			setFiles([...picked, ...e.dataTransfer.files]);
		});
		setFiles(files.files); // the browser may keep them over a reload
	}

	// --- preview ---

	const preview = find("preview"), frame = preview.querySelector("iframe");
	let timer, rendering;

	async function render() {
		rendering?.abort();
		rendering = new AbortController();
		const body = new URLSearchParams();
		for (const name of ["title", "body", "format"]) body.set(name, form.elements[name].value);
		try {
			const r = await fetch(form.dataset.preview, { method: "POST", headers: { Accept: "text/html" }, body, signal: rendering.signal });
			frame.srcdoc = await r.text();
		} catch (e) {
			if (e.name !== "AbortError") frame.srcdoc = "The gateway cannot be reached.";
		}
	}

	preview.addEventListener("toggle", () => { if (preview.open) render(); });
	form.addEventListener("input", (e) => {
		if (!preview.open || !["title", "body", "format"].includes(e.target.name)) return;
		clearTimeout(timer);
		timer = setTimeout(render, 300);
	});

	// --- sending ---

	const words = { delivered: "delivered", failed: "failed", skipped: "not sent", cancelled: "cancelled" };

	function show(item, d, status, text) {
		item.className = status;
		const name = document.createElement("strong");
		name.textContent = d.service || "URL";
		item.replaceChildren(name);
		if (d.tags.length) {
			const tags = document.createElement("small");
			tags.textContent = ` (${d.tags.join(", ")})`;
			item.append(tags);
		}
		item.append(` ${text}`);
		return item;
	}

	function showResult(item, r) {
		const seconds = r.elapsed_ms < 100 ? "<0.1" : (r.elapsed_ms / 1000).toFixed(1);
		const tries = r.attempts > 1 ? `, ${r.attempts} attempts` : "";
		if (r.status === "queued") return show(item, r, "optional", queuedText(r));
		if (r.status === "cancelled") return show(item, r, "", words.cancelled);
		if (!r.error) return show(item, r, r.status, `${words[r.status]} in ${seconds} s${tries}`);
		// A URL that cannot be used is skipped with an error.
		return show(item, r, r.optional ? "optional" : "failed", `${words[r.status]}${r.optional ? " (optional)" : ""}: ${r.error}`);
	}

	function queuedText(r) {
		const next = r.next_attempt && new Date(r.next_attempt);
		const when = next && next > Date.now() ? `, next attempt at ${next.toLocaleTimeString()}` : "";
		return `queued${when}${r.error ? `: ${r.error}` : ""}`;
	}

	function take(line) {
		if (line.sending) {
			results.replaceChildren(...line.sending.map((d) => show(document.createElement("li"), d, "", "sending…")));
		} else if (line.result) {
			showResult(results.children[line.index], line.result);
		}
		return "status" in line ? line : null;
	}

	async function* linesOf(r) {
		const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = "";
		for (;;) {
			const { value, done } = await reader.read();
			if (done) break;
			const lines = (rest + value).split("\n");
			rest = lines.pop();
			yield* lines;
		}
	}

	async function post() {
		const r = await fetch(form.action, { method: "POST", headers: { Accept: "application/x-ndjson" }, body: new FormData(form) });
		if (!(r.headers.get("Content-Type") || "").startsWith("application/x-ndjson")) {
			return `The message was not sent: the server answered ${r.status} ${r.statusText}`.trim() + ".";
		}
		let last = null;
		for await (const line of linesOf(r)) last = take(JSON.parse(line)) || last;
		if (!last) return "The connection broke before all results arrived. Deliveries that have begun continue.";
		// Only this line has the results of URLs that could not be used.
		if (last.results.length !== results.children.length) {
			results.replaceChildren(...last.results.map((x) => showResult(document.createElement("li"), x)));
		}
		const queued = last.results.some((x) => x.status === "queued");
		if (queued) follow(last.id);
		if (last.error) {
			const notSent = last.results.length ? "" : "The message was not sent: ";
			return notSent + (notSent ? last.error : last.error[0].toUpperCase() + last.error.slice(1)) + ".";
		}
		for (const name of ["title", "body"]) form.elements[name].value = "";
		if (files) setFiles([]);
		if (preview.open) render();
		return queued ? "Queued: the gateway keeps trying." : "Sent.";
	}

	// --- following a queued message ---

	const states = { delivered: "Delivered.", failed: "Not delivered to all.", cancelled: "Cancelled." };
	let followed; // the ID of the message whose results are shown

	async function follow(id) {
		followed = id;
		for (let pause = 1000; ; pause = Math.min(pause * 1.5, 30000)) {
			await new Promise((done) => setTimeout(done, pause));
			if (followed !== id) return;
			try {
				const r = await fetch(form.dataset.messages + id, { headers: { Accept: "application/json" } });
				if (r.status === 404) return; // it is no longer kept
				if (!r.ok) continue;
				const m = await r.json();
				if (followed !== id) return;
				m.results.forEach((x, i) => results.children[i] && showResult(results.children[i], x));
				if (m.state !== "queued") {
					outcome.textContent = states[m.state];
					return;
				}
			} catch {
				// The gateway cannot be reached now. The message is stored.
			}
		}
	}

	let sending = false;

	async function submit() {
		if (sending) return;
		sending = true;
		followed = null;
		send.setAttribute("aria-disabled", "true");
		results.replaceChildren();
		outcome.textContent = "Sending…";
		try {
			outcome.textContent = await post();
		} catch {
			outcome.textContent = "The connection to the gateway failed, so the result is unknown.";
		}
		outcome.scrollIntoView({ block: "nearest" });
		send.removeAttribute("aria-disabled");
		sending = false;
	}

	form.addEventListener("submit", (e) => {
		if (e.submitter?.formTarget) return; // the preview's own button
		e.preventDefault();
		submit();
	});
	form.addEventListener("keydown", (e) => {
		if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
			e.preventDefault();
			form.requestSubmit(send);
		}
	});
})();
